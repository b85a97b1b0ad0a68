"""Servers over Streamable HTTP: what goes over the wire when all is well."""

import asyncio
import json

import pytest

from loopback import PATIENCE, plain
from mcp_site import (
    END,
    STREAM,
    WELCOME,
    McpSite,
    Message,
    answer,
    as_json,
    chunk,
    event,
    in_turn,
    reply,
    sends,
    silence,
    streams,
    visiting,
)
from plait.errors import UpstreamTimeout
from plait.session.exchange import Exchange, Reply
from plait.upstream.client import Answer, Listener, McpClient
from plait.upstream.handshake import McpSession
from plait.upstream.http import HttpTransport
from plait.wire.address import as_raw
from plait.wire.envelope import Fields


class Ear(Listener):
    """Remembers what is said unasked, and answers questions."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.questions: list[tuple[str, Exchange | None]] = []
        self.end = ""
        self.counts: list[str] = []

    def heard(self, method: str, params: Fields) -> None:
        self.notes.append(method)

    def consulted(
        self, id: bytes, method: str, params: Fields, answer: Answer, exchange: Exchange | None
    ) -> None:
        self.questions.append((method, exchange))
        answer(Reply(result=as_raw({"roots": []})))

    def counted(self, what: str, detail: str) -> None:
        self.counts.append(what)

    def ended(self, reason: str) -> None:
        self.end = reason


class Person:
    """A client whose request is relayed."""

    identity = "test"
    revision = "2025-11-25"

    def __init__(self) -> None:
        self.capabilities: Fields = {}

    def notify(self, method: str, params: Fields | None, within: bytes | None = None) -> None: ...

    async def ask(
        self,
        method: str,
        params: Fields | None,
        on_progress: object = None,
        within: bytes | None = None,
    ) -> Reply:
        raise AssertionError("nobody asks")


def a_call() -> Exchange:
    return Exchange(b"1", "tools/call", {}, "x", Person())


async def test_a_conversation_is_posts_with_session_and_revision_and_a_delete() -> None:
    async with McpSite() as site:
        async with visiting(site, {"X-Key": "k"}) as session:
            assert session.instructions == "be kind"
            assert await session.call_tool("echo") == {"content": []}
            await site.until_asked("GET")
        first, second, *_ = site.asked("POST")
        assert first.target == "/mcp"
        assert first.headers["accept"] == "application/json, text/event-stream"
        assert first.headers["content-type"] == "application/json"
        assert "mcp-session-id" not in first.headers
        assert "mcp-protocol-version" not in first.headers
        assert second.headers["mcp-session-id"] == "s-1"
        methods = [message["method"] for message in site.sent()]
        assert methods == ["initialize", "notifications/initialized", "tools/call"]
        for received in site.received[1:]:
            assert received.headers["mcp-session-id"] == "s-1"
            assert received.headers["mcp-protocol-version"] == "2025-11-25"
        assert all(received.headers["x-key"] == "k" for received in site.received)
        assert site.received[-1].method == "DELETE"


async def test_a_server_without_sessions_is_given_none_and_nothing_is_deleted() -> None:
    async with McpSite(session=None) as site:
        async with visiting(site) as session:
            await session.call_tool("echo")
        assert all("mcp-session-id" not in received.headers for received in site.received)
        assert site.asked("DELETE") == []


async def test_connections_are_used_again() -> None:
    async with McpSite() as site, visiting(site) as session:
        for _ in range(20):
            await session.call_tool("echo")
        assert site.connections <= 3


@pytest.mark.requirement("K-18")
async def test_a_stream_brings_notifications_and_questions_before_the_reply() -> None:
    ear, exchange = Ear(), a_call()
    note = event({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
    question = event({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})

    async def converse(message: Message, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + note + question)
        await asyncio.wait_for(answered.wait(), PATIENCE)
        writer.write(answer(message) + END)

    async def take(message: Message, writer: asyncio.StreamWriter) -> None:
        assert message == {"jsonrpc": "2.0", "id": "q", "result": {"roots": []}}
        answered.set()
        writer.write(plain(b"", 202))

    answered = asyncio.Event()
    async with McpSite({"tools/call": converse, "": take}) as site, visiting(site, listener=ear) as session:
        got = await session.request("tools/call", {}, exchange)
        assert bytes(got.result or b"") == b'{"content": []}'
    assert ear.notes == ["notifications/message"]
    assert ear.questions == [("roots/list", exchange)]


async def test_the_stream_tells_whose_call_a_question_belongs_to() -> None:
    ear, first, second = Ear(), a_call(), a_call()
    asked = asyncio.Event()

    async def converse(message: Message, writer: asyncio.StreamWriter) -> None:
        params = message["params"]
        assert isinstance(params, dict)
        if params["name"] == "waits":
            await asyncio.wait_for(asked.wait(), PATIENCE)
        else:
            question = {"jsonrpc": "2.0", "id": params["name"], "method": "roots/list"}
            writer.write(STREAM + event(question) + answer(message) + END)
            asked.set()
            return
        writer.write(STREAM + answer(message) + END)

    async with (
        McpSite({"tools/call": converse}) as site,
        visiting(site, listener=ear) as session,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(session.request("tools/call", {"name": as_raw("waits")}, first))
        await site.until_sent("tools/call")
        group.create_task(session.request("tools/call", {"name": as_raw("asks")}, second))
    assert [exchange is second for _, exchange in ear.questions] == [True]


@pytest.mark.requirement("S1-T2.4")
async def test_a_notification_is_posted_and_its_answer_ignored() -> None:
    async with McpSite() as site:
        async with McpClient(HttpTransport(site.mcp)) as client:
            await client.send_notification("notifications/roots/list_changed")
            await site.until_sent("notifications/roots/list_changed")
        assert site.sent() == [{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}]


async def test_notifications_arrive_in_the_order_in_which_they_were_sent() -> None:
    async with McpSite() as site, visiting(site) as session:
        for number in range(20):
            session.notify("notifications/progress", {"progress": as_raw(number)})
        await site.until_sent("notifications/progress", 20)
        sent = [message["params"] for message in site.sent("notifications/progress")]
        assert sent == [{"progress": number} for number in range(20)]


async def test_nothing_is_asked_before_initialized_has_arrived() -> None:
    release = asyncio.Event()

    async def slow(message: Message, writer: asyncio.StreamWriter) -> None:
        await asyncio.wait_for(release.wait(), PATIENCE)
        writer.write(plain(b"", 202))

    async with McpSite({"notifications/initialized": slow}) as site, visiting(site) as session:
        asked = asyncio.get_running_loop().create_task(session.list_tools())
        await site.until_sent("notifications/initialized")
        assert site.sent("tools/list") == []
        release.set()
        await site.until_sent("tools/list")
        asked.cancel()
        await asyncio.wait((asked,))


async def test_a_call_that_is_cancelled_closes_its_stream_and_tells_the_server() -> None:
    hung_up = asyncio.Event()

    async def hold(message: Message, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + event(None, "id: 1"))
        await writer.drain()
        try:
            while True:
                writer.write(chunk(b":\n\n"))
                await writer.drain()
                await asyncio.sleep(0.001)
        except ConnectionError:
            hung_up.set()

    async with McpSite({"tools/call": hold}) as site, visiting(site) as session:
        call = asyncio.get_running_loop().create_task(session.call_tool("x"))
        await site.until_sent("tools/call")
        call.cancel()
        await site.until_sent("notifications/cancelled")
        await asyncio.wait_for(hung_up.wait(), PATIENCE)
        assert len(site.asked("GET")) <= 1, "nobody looks for a stream that nobody wants"


async def test_a_call_past_its_deadline_is_over() -> None:
    async with McpSite({"tools/call": silence}) as site, visiting(site, timeout=0.05) as session:
        with pytest.raises(UpstreamTimeout):
            await session.call_tool("x")
        await site.until_sent("notifications/cancelled")


async def test_calls_run_side_by_side() -> None:
    together = asyncio.Barrier(150)

    async def meet(message: Message, writer: asyncio.StreamWriter) -> None:
        await asyncio.wait_for(together.wait(), PATIENCE)
        writer.write(as_json(reply(message, {})))

    async with (
        McpSite({"tools/call": meet}) as site,
        visiting(site) as session,
        asyncio.TaskGroup() as group,
    ):
        for _ in range(150):
            group.create_task(session.call_tool("x"))


async def test_the_reply_ends_a_stream_that_the_server_leaves_open() -> None:
    async def forget_to_end(message: Message, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + answer(message))
        await writer.drain()
        await asyncio.Event().wait()

    async with McpSite({"tools/call": forget_to_end}) as site, visiting(site) as session:
        assert await session.call_tool("x") == {"content": []}


async def test_an_array_is_taken_where_the_revision_has_arrays() -> None:
    old = {**WELCOME, "protocolVersion": "2025-03-26"}

    async def welcome(message: Message, writer: asyncio.StreamWriter) -> None:
        writer.write(as_json(reply(message, old)))

    async def both(message: Message, writer: asyncio.StreamWriter) -> None:
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
        writer.write(as_json([note, reply(message, {"a": 1})]))

    ear = Ear()
    async with (
        McpSite({"initialize": welcome, "tools/call": both}) as site,
        visiting(site, listener=ear) as session,
    ):
        assert await session.call_tool("x") == {"a": 1}
        assert ear.notes == ["notifications/message"]
        assert site.received[-1].headers["mcp-protocol-version"] == "2025-03-26"


async def test_a_redirect_within_the_origin_is_followed_as_a_post() -> None:
    async def elsewhere(message: Message, writer: asyncio.StreamWriter) -> None:
        moved = not site.received[-1].target.endswith("/")
        writer.write(plain(b"", 301, Location="/mcp/") if moved else as_json(reply(message, {"ok": True})))

    async with McpSite({"tools/call": elsewhere}) as site, visiting(site, {"X-Key": "k"}) as session:
        assert await session.call_tool("x") == {"ok": True}
        last = site.asked("POST")[-1]
        assert (last.target, last.headers["x-key"]) == ("/mcp/", "k")


async def test_a_welcome_on_a_stream_opens_the_session_too() -> None:
    head = STREAM.replace(b"\r\n\r\n", b"\r\nMcp-Session-Id: s-9\r\n\r\n")

    async def welcome(message: Message, writer: asyncio.StreamWriter) -> None:
        writer.write(head + event(reply(message, WELCOME), "id: 1") + END)

    async with McpSite({"initialize": welcome}) as site, visiting(site) as session:
        await session.call_tool("x")
        assert site.asked("POST")[-1].headers["mcp-session-id"] == "s-9"


async def test_closing_gives_up_what_is_under_way_and_does_not_wait_for_the_server() -> None:
    async with McpSite({"tools/call": silence, "DELETE": sends(as_json({}))}) as site:
        session = await McpSession.connect(HttpTransport(site.mcp), name="far")
        call = asyncio.get_running_loop().create_task(session.call_tool("x"))
        await site.until_sent("tools/call")
        async with asyncio.timeout(PATIENCE):
            await session.aclose()
        with pytest.raises(Exception, match="stopped during tools/call: closed"):
            await call
        assert len(site.asked("DELETE")) == 1


async def test_a_representation_shows_neither_credentials_nor_the_query() -> None:
    transport = HttpTransport("http://127.0.0.1:1/mcp?key=hush", {"Authorization": "Bearer hush"})
    assert repr(transport) == "<HttpTransport http://127.0.0.1:1/mcp?***, 0 in flight>"
    await transport.aclose()


async def test_what_a_user_writes_into_headers_does_not_replace_the_protocols_own() -> None:
    async with McpSite() as site:
        given = {"accept": "text/html", "Content-type": "text/plain", "MCP-SESSION-ID": "mine", "X-A": "é"}
        async with visiting(site, given) as session:
            await session.call_tool("x")
        headers = site.asked("POST")[-1].headers
        assert headers["content-type"] == "application/json"
        assert headers["mcp-session-id"] == "s-1"
        assert headers["accept"] == "application/json, text/event-stream"


async def test_two_replies_in_turn_come_to_those_who_asked() -> None:
    script = in_turn(streams(answer, END), sends(b""))
    async with McpSite({"tools/call": script}) as site, visiting(site, timeout=0.05) as session:
        assert await session.call_tool("x") == {"content": []}
        with pytest.raises(UpstreamTimeout):
            await session.call_tool("x")
    assert json.loads(site.received[0].body)["method"] == "initialize"
