"""Servers over HTTP that fail: each request gets its answer at once, and the next one is served."""

import asyncio
import gzip
import tracemalloc

import pytest

from clock import jumping
from loopback import Site, always, plain
from mcp_site import McpSite, Message, Script, as_json, cut, in_turn, reply, sends, visiting
from plait.errors import (
    NeedsAuth,
    SessionLost,
    UpstreamBroken,
    UpstreamBusy,
    UpstreamError,
    UpstreamRefused,
    UpstreamUnavailable,
)
from plait.upstream.client import Listener
from plait.upstream.handshake import McpSession
from plait.upstream.http import HttpTransport


def failing(script: Script) -> McpSite:
    """Whose first call goes wrong, and the second one right."""

    async def well(message: Message, writer: asyncio.StreamWriter) -> None:
        writer.write(as_json(reply(message, {"well": True})))

    return McpSite({"tools/call": in_turn(script, well)})


def hung_up(*parts: bytes) -> Script:
    async def script(message: Message, writer: asyncio.StreamWriter) -> None:
        writer.write(b"".join(parts))
        await writer.drain()
        writer.close()

    return script


def error(status: int, text: str = "", **headers: str) -> Script:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": text}}
    return sends(as_json(body, status, **headers))


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        (sends(plain(b"oops", 500)), UpstreamBroken, "HTTP 500"),
        (error(500, "\x1b[31mboom"), UpstreamBroken, r"HTTP 500: \\x1b\[31mboom"),
        (sends(plain(b"", 502)), UpstreamUnavailable, "HTTP 502"),
        (sends(plain(b"", 503, Retry_After="7")), UpstreamUnavailable, "HTTP 503; try again in 7 s"),
        (sends(plain(b"", 429, Retry_After="12")), UpstreamBusy, "HTTP 429; try again in 12 s"),
        (sends(plain(b"", 429, Retry_After="x\tsoon")), UpstreamBusy, "HTTP 429$"),
        (error(403, "go away"), UpstreamBroken, "HTTP 403: go away"),
        (error(400, "bad params"), UpstreamBroken, "HTTP 400: bad params"),
        (sends(plain(b"", 202)), UpstreamBroken, "HTTP 202"),
        (sends(b"HTTP/1.1 204 None\r\n\r\n"), UpstreamBroken, "HTTP 204 and no content type"),
        (sends(plain(b"<html>", Content_Type="text/html")), UpstreamBroken, "content type text/html"),
        (sends(plain(b"", Content_Type="application/json")), UpstreamBroken, "holds no reply"),
        (sends(plain(b"{not json", Content_Type="application/json")), UpstreamBroken, "holds no reply"),
        (sends(as_json({"jsonrpc": "2.0", "id": 99, "result": {}})), UpstreamBroken, "holds no reply"),
        (sends(as_json({"jsonrpc": "2.0", "id": 2, "result": None})), UpstreamBroken, "is no object"),
        (
            sends(plain(b'{"id":2,"result":{}} trailing', Content_Type="application/json")),
            UpstreamBroken,
            "broken",
        ),
        (
            sends(plain(b"x" * 70_000, Content_Type="application/json")),
            UpstreamBroken,
            "longer than 65536 bytes",
        ),
        (sends(b"nonsense\r\n\r\n"), UpstreamBroken, "no HTTP"),
        (
            sends(plain(b"xx", Content_Encoding="br", Content_Type="application/json")),
            UpstreamBroken,
            "packed",
        ),
        (
            sends(plain(b"xx", Content_Encoding="gzip", Content_Type="application/json")),
            UpstreamBroken,
            "packed",
        ),
        (cut, UpstreamBroken, "closed the connection before its answer|connection .* broke"),
        (
            hung_up(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"),
            UpstreamBroken,
            "before its answer was complete",
        ),
        (sends(plain(b"", 303, Location="/x")), UpstreamBroken, "303"),
        (sends(plain(b"", 307, Location="http://127.0.0.1:1/x")), UpstreamBroken, "another origin"),
        (sends(plain(b"", 307, Location="http://169.254.169.254/x")), UpstreamBroken, "another origin"),
    ],
)
async def test_a_fault_fails_its_call_at_once_and_the_next_one_is_served(
    script: Script, kind: type[UpstreamError], message: str
) -> None:
    async with failing(script) as site, visiting(site) as session:
        with pytest.raises(kind, match=message) as caught:
            await session.call_tool("x")
        assert type(caught.value) is kind
        assert str(caught.value).startswith("server 'far'")
        assert len(site.sent("tools/call")) == 1, "a call is never sent twice"
        assert await session.call_tool("x") == {"well": True}


async def test_an_error_in_mcps_own_words_is_the_servers_reply_whatever_the_status() -> None:
    async def refuse(message: Message, writer: asyncio.StreamWriter) -> None:
        body = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "no such tool"}}
        writer.write(as_json(body, 400))

    async with failing(refuse) as site, visiting(site) as session:
        with pytest.raises(UpstreamRefused, match="no such tool"):
            await session.call_tool("x")


@jumping
async def test_an_answer_that_stops_coming_is_given_up() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
    async with failing(sends(head)) as site, visiting(site, timeout=600, patience=1e6) as session:
        with pytest.raises(UpstreamBroken, match="stopped coming for 30 s"):
            await session.call_tool("x")
        assert await session.call_tool("x") == {"well": True}


async def test_a_gzip_bomb_fails_its_call_and_costs_no_memory() -> None:
    bomb = gzip.compress(bytes(200 * 1024 * 1024), 9)
    packed = plain(bomb, Content_Encoding="gzip", Content_Type="application/json")
    async with failing(sends(packed)) as site, visiting(site, limit=1024 * 1024) as session:
        tracemalloc.start()
        try:
            with pytest.raises(UpstreamBroken, match="longer than 1048576 bytes"):
                await session.call_tool("x")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 8 * 1024 * 1024
        assert await session.call_tool("x") == {"well": True}


# ---- not there


async def test_a_server_that_is_not_there_says_so() -> None:
    async with Site(always(plain())) as site:
        port = site.port
    with pytest.raises(
        UpstreamUnavailable, match=r"server 'far', initialize: 127\.0\.0\.1 cannot be reached"
    ):
        await McpSession.connect(HttpTransport(f"http://127.0.0.1:{port}/"), name="far")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://169.254.169.254/latest", "metadata"),
        ("http://metadata.google.internal/", "metadata"),
        ("ftp://127.0.0.1/", "http and https"),
        ("http://ada:hush@127.0.0.1/", "put credentials into a header"),
    ],
)
async def test_where_nobody_may_go_nothing_is_sent(url: str, message: str) -> None:
    with pytest.raises(UpstreamUnavailable, match=message) as caught:
        await McpSession.connect(HttpTransport(url))
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("header", ["Host", "Transfer-Encoding", "Proxy-Authorization"])
async def test_a_header_that_cannot_be_sent_is_complained_of(header: str) -> None:
    with pytest.raises(UpstreamUnavailable, match=f"the header {header}"):
        await McpSession.connect(HttpTransport("http://127.0.0.1:1/", {header: "x"}))


async def test_a_redirect_elsewhere_takes_no_credentials_along() -> None:
    async with Site(always(plain())) as other:
        away = plain(b"", 307, Location=other.url("/", host="127.0.0.1"))
        scripts = {"GET": sends(away), "DELETE": sends(away)}
        async with McpSite(scripts) as site, visiting(site, {"X-Key": "hush"}) as session:
            await site.until_asked("GET")
            assert await session.call_tool("x") == {"content": []}
        assert len(site.asked("DELETE")) == 1
        assert other.connections == 0


# ---- who are you?


@pytest.mark.parametrize("status", [401, 403])
async def test_a_server_that_wants_a_sign_in_says_what_to_do_and_repeats_no_secret(status: int) -> None:
    script = error(status, "the token sk-hush is no good", WWW_Authenticate='Bearer realm="x"')
    async with McpSite({"initialize": script}) as site:
        transport = HttpTransport(site.mcp, {"Authorization": "Bearer sk-hush"})
        with pytest.raises(NeedsAuth, match="sign-in") as caught:
            await McpSession.connect(transport)
    assert caught.value.kind == "needs auth"
    assert caught.value.challenge == 'Bearer realm="x"'
    assert '"headers"' in str(caught.value)
    assert "sk-hush" not in str(caught.value)
    assert len(site.received) == 1


# ---- lost sessions


class Ear(Listener):
    def __init__(self) -> None:
        self.end = ""
        self.over = asyncio.Event()

    def ended(self, reason: str) -> None:
        self.end = reason
        self.over.set()


@pytest.mark.parametrize(
    "script",
    [error(404, "Session not found"), sends(plain(b"", 404)), error(400, "No valid session ID provided")],
)
async def test_a_server_that_forgot_the_session_ends_the_conversation(script: Script) -> None:
    ear = Ear()
    async with failing(script) as site:
        async with visiting(site, listener=ear) as session:
            with pytest.raises(SessionLost) as caught:
                await session.call_tool("x")
            assert caught.value.kind == "unavailable"
            assert ear.end == "the server forgot the session"
            with pytest.raises(UpstreamUnavailable, match="forgot the session"):
                await session.call_tool("x")
        assert len(site.sent("tools/call")) == 1
        assert site.asked("DELETE") == [], "there is nothing left to be ended"


async def test_a_404_without_a_session_is_a_fault_like_any_other() -> None:
    script = in_turn(sends(plain(b"", 404)), sends(as_json({"jsonrpc": "2.0", "id": 3, "result": {}})))
    async with McpSite({"tools/call": script}, session=None) as site, visiting(site) as session:
        with pytest.raises(UpstreamBroken, match="HTTP 404"):
            await session.call_tool("x")
        assert await session.call_tool("x") == {}


async def test_a_notification_finds_out_too_that_the_session_is_lost() -> None:
    ear = Ear()
    script = sends(plain(b"", 404))
    async with McpSite({"notifications/x": script}) as site, visiting(site, listener=ear) as session:
        session.notify("notifications/x")
        await ear.over.wait()
        assert ear.end == "the server forgot the session"


async def test_an_impossible_session_id_is_not_sent_back() -> None:
    async with McpSite(session="two words") as site:
        with pytest.raises(UpstreamBroken, match="session id"):
            await McpSession.connect(HttpTransport(site.mcp))
