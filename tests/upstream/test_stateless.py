"""Our side of the modern era over HTTP: what each POST says, how a server's era is found, what cancels."""

import asyncio
import logging
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.json import decode

from loopback import PATIENCE, plain
from mcp_site import STREAM, McpSite, Message, Script, chunk, event, in_turn, sends, silence
from modern_site import DONE, ModernSite, behalf, ends, gives, greeted, opener, refused
from old_site import OldSite
from plait.errors import NeedsAuth, UpstreamBroken, UpstreamRefused, UpstreamTimeout
from plait.session.eras.verdict import EraMemory
from plait.session.exchange import Reply
from plait.upstream.base import Link
from plait.upstream.client import Listener
from plait.upstream.handshake import McpSession
from plait.upstream.lists import fetch
from plait.upstream.modern import ModernSession
from plait.wire.address import as_raw
from plait.wire.envelope import Fields
from plait.wire.header_schema import check_parameters, mirrored
from plait.wire.headers import check, gather
from plait.wire.spec import Era, Kind

SCHEMA: Message = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
    },
}
BAD: Message = {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}
FIND: Message = {"name": "find", "inputSchema": SCHEMA}


def params(**values: object) -> Fields:
    return {name: as_raw(value) for name, value in values.items()}


async def call(link: Link, **arguments: object) -> Reply:
    return await link.request("tools/call", params(name="find", arguments=arguments))


class Ears(Listener):
    def __init__(self) -> None:
        self.notes: asyncio.Queue[tuple[str, Fields]] = asyncio.Queue()

    def heard(self, method: str, params: Fields) -> None:
        self.notes.put_nowait((method, params))


# ---- what is said


async def test_every_post_repeats_in_its_headers_what_it_says_and_has_no_session() -> None:
    async with ModernSite() as site, greeted(site.mcp, headers={"X-Key": "k", "Mcp-Name": "mine"}) as link:
        assert isinstance(link, ModernSession)
        await call(link)
        await link.request("resources/read", params(uri="memo:\u00fc"))
        expected = {
            "server/discover": None,
            "tools/call": "find",
            "resources/read": "=?base64?bWVtbzrDvA==?=",
        }
        assert [message["method"] for message in site.sent()] == list(expected)
        for method, name in expected.items():
            [head] = site.heads(method)
            assert head["mcp-protocol-version"] == "2026-07-28"
            assert (head["mcp-method"], head.get("mcp-name")) == (method, name)
            assert "mcp-session-id" not in head
            assert head["x-key"] == "k"
            assert head["accept"] == "application/json, text/event-stream"


async def test_a_session_id_of_the_servers_is_not_taken() -> None:
    async def minted(message: Message, writer: asyncio.StreamWriter) -> None:
        body = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}' % int(str(message["id"]))
        writer.write(plain(body, 200, Content_Type="application/json", Mcp_Session_Id="s"))

    async with ModernSite({"tools/call": minted}) as site:
        async with greeted(site.mcp) as link:
            for _ in range(2):
                await call(link)
        assert all("mcp-session-id" not in received.headers for received in site.received)
        assert site.asked("GET") == site.asked("DELETE") == []


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@settings(max_examples=25, deadline=None)
@given(name=texts, region=st.none() | texts, count=st.none() | st.integers(-(2**63), 2**63))
def test_whatever_is_called_with_whatever_arguments_the_headers_fit_the_body(
    name: str, region: str | None, count: int | None
) -> None:
    async def run() -> None:
        tools = gives(tools=[{"name": name, "inputSchema": SCHEMA}])
        async with ModernSite({"tools/list": tools}) as site, greeted(site.mcp) as link:
            await fetch(link, Kind.TOOLS)
            arguments = {"region": region, "count": count}
            await link.request("tools/call", params(name=name, arguments=arguments))
            head = gather(site.heads("tools/call")[0].items())
            [sent] = site.sent("tools/call")
            said = sent["params"]
            assert isinstance(said, dict)
            fields = params(**said)
            check(head, "tools/call", fields, params(**said["_meta"]))
            check_parameters(mirrored(SCHEMA), said["arguments"], head)

    asyncio.run(run())


async def test_a_tool_whose_parameters_cannot_be_repeated_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tools = [{"name": "a", "x": 1}, {"name": "bad\n", "inputSchema": BAD}, FIND, {"name": 7}]
    async with ModernSite({"tools/list": gives(tools=tools, odd=1.0)}) as site, greeted(site.mcp) as link:
        with caplog.at_level(logging.WARNING, "plait"):
            found = [decode(raw) for raw in await fetch(link, Kind.TOOLS)]
    assert found == [{"name": "a", "x": 1}, FIND, {"name": 7}]
    assert "is left out" in caplog.text
    assert "no string, integer or boolean" in caplog.text


async def test_parameters_of_every_page_are_learnt_and_old_ones_forgotten() -> None:
    plainly: Message = {"name": "other", "inputSchema": {"type": "object"}}
    pages = in_turn(
        gives(tools=[plainly], nextCursor="2"),
        gives(tools=[FIND]),
        gives(tools=[{**FIND, "inputSchema": {"type": "object"}}]),
    )
    async with ModernSite({"tools/list": pages}) as site, greeted(site.mcp) as link:
        await fetch(link, Kind.TOOLS)
        await call(link, region="x")
        await link.request("tools/call", params(name="find", arguments=[]))
        await fetch(link, Kind.TOOLS)
        await call(link, region="x")
        heads = site.heads("tools/call")
        assert [head.get("mcp-param-region") for head in heads] == ["x", None, None]


async def test_a_call_that_is_refused_for_its_headers_is_made_once_more_with_the_tools_of_now() -> None:
    calls = in_turn(refused(-32020), gives(**DONE))
    async with ModernSite({"tools/list": gives(tools=[FIND]), "tools/call": calls}) as site:
        async with greeted(site.mcp) as link:
            assert (await call(link, region="x")).error is None
        assert [head.get("mcp-param-region") for head in site.heads("tools/call")] == [None, "x"]


async def test_a_call_is_not_made_a_third_time() -> None:
    memory = EraMemory()
    async with ModernSite({"tools/call": refused(-32020)}) as site, greeted(site.mcp, memory=memory) as link:
        assert (await call(link)).error is not None
        assert len(site.sent("tools/call")) == 2
        assert memory.recall(0) is None


# ---- what comes back


@pytest.mark.parametrize(
    ("status", "code", "id"),
    [
        (200, -32603, None),
        (400, -32602, None),
        (400, -32602, "null"),
        (404, -32601, None),
        (404, -32601, "null"),
        (500, -32603, None),
        (500, -32603, "null"),
    ],
)
async def test_an_error_is_the_servers_whatever_its_status_and_id(
    status: int, code: int, id: str | None
) -> None:
    async with ModernSite({"tools/call": refused(code, status, id)}) as site, greeted(site.mcp) as link:
        reply = await call(link)
        assert reply.error is not None
        assert decode(reply.error)["code"] == code


async def test_a_stream_with_the_reply_is_as_good_as_json() -> None:
    async with ModernSite({"tools/call": ends(DONE)}) as site, greeted(site.mcp) as link:
        assert (await call(link)).result is not None


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (sends(STREAM, b"0\r\n\r\n"), "without the reply"),
        (sends(plain(b"<p>", 500)), "HTTP 500"),
        (sends(plain(b"<p>", 404)), "HTTP 404"),
        (sends(plain(b"{}", 200, Content_Type="application/json")), "no reply to this request"),
        (sends(plain(b"", 202)), "no message"),
    ],
)
async def test_what_is_no_answer_fails_the_call_at_once_and_it_is_not_sent_again(
    script: Script, words: str
) -> None:
    async with ModernSite({"tools/call": script}) as site, greeted(site.mcp) as link:
        with pytest.raises(UpstreamBroken, match=words):
            await call(link)
        assert len(site.sent("tools/call")) == 1


async def test_a_question_of_the_servers_is_dropped_and_never_answered() -> None:
    asking = [{"jsonrpc": "2.0", "id": "q", "method": method} for method in ("ping", "roots/list")]

    async def script(message: Message, writer: asyncio.StreamWriter) -> None:
        done = event({"jsonrpc": "2.0", "id": message["id"], "result": DONE})
        writer.write(STREAM + b"".join(event(each) for each in asking) + done + b"0\r\n\r\n")

    async with ModernSite({"tools/call": script}) as site, greeted(site.mcp) as link:
        await call(link)
        await call(link)
        assert [message["method"] for message in site.sent()] == [
            "server/discover",
            "tools/call",
            "tools/call",
        ]


# ---- what cancels


async def hung_up(writer: asyncio.StreamWriter) -> None:
    """Until nobody takes what is written any more."""
    while not writer.transport.is_closing():
        writer.write(chunk(b": still here\n\n"))
        await asyncio.sleep(0.002)


async def test_closing_the_stream_is_the_cancellation() -> None:
    closed = asyncio.Event()

    async def hang(message: Message, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + chunk(b": here\n\n"))
        await writer.drain()
        await hung_up(writer)
        closed.set()

    async with ModernSite({"tools/call": hang}) as site, greeted(site.mcp) as link:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(call(link))
            await site.until_sent("tools/call")
            task.cancel()
        await closed.wait()
        assert site.sent("notifications/cancelled") == []


async def test_a_deadline_closes_the_stream_too() -> None:
    async with ModernSite({"tools/call": silence}) as site, greeted(site.mcp, timeout=0.2) as link:
        with pytest.raises(UpstreamTimeout):
            await call(link)
        assert site.sent("notifications/cancelled") == []
        assert "0 in flight" in repr(link.client._transport) if isinstance(link, ModernSession) else False


# ---- listening


async def test_a_stream_is_a_post_that_stays_open_and_is_opened_again_when_it_breaks() -> None:
    ears = Ears()
    async with ModernSite(tools={"listChanged": True}) as site, greeted(site.mcp, listener=ears) as link:
        async with asyncio.timeout(PATIENCE):
            await site.until_sent("subscriptions/listen")
            while not site.streams:  # noqa: ASYNC110  what came is a list, and no event
                await asyncio.sleep(0.002)
            [listen] = site.sent("subscriptions/listen")
            site.tell(site.streams[0], listen["id"], "notifications/tools/list_changed")
            assert await ears.notes.get() == ("notifications/tools/list_changed", {})
            site.streams[0].transport.abort()
            await site.until_sent("subscriptions/listen", 2)
            # What happened in between is lost: everything may have changed.
            assert await ears.notes.get() == ("notifications/tools/list_changed", {})
        assert (await call(link)).error is None


async def test_a_server_that_cannot_be_listened_to_is_asked_once() -> None:
    for script in (refused(-32601, 404), sends(plain(b"", 405))):
        async with ModernSite({"subscriptions/listen": script}, tools={"listChanged": True}) as site:
            async with greeted(site.mcp) as link:
                await site.until_sent("subscriptions/listen")
                for _ in range(3):
                    await call(link)
            assert len(site.sent("subscriptions/listen")) == 1


async def test_a_resource_is_watched_by_a_stream_of_its_own_which_is_closed_again() -> None:
    async with ModernSite(resources={"subscribe": True}) as site, greeted(site.mcp) as link:
        assert (await link.request("resources/subscribe", params(uri="memo:1"))).error is None
        await link.request("resources/unsubscribe", params(uri="memo:1"))
        async with asyncio.timeout(PATIENCE):
            await hung_up(site.streams[0])
        assert site.sent("notifications/cancelled") == []


# ---- how a server's era is found


@pytest.mark.parametrize(
    ("answer", "remembered"),
    [
        (refused(-32600, 400, "null"), Era.HANDSHAKE),
        (refused(-32601, 404), Era.HANDSHAKE),
        (refused(-32000, 400, "null"), Era.HANDSHAKE),
        (sends(plain(b"<p>", 404)), Era.HANDSHAKE),
        (sends(plain(b"Method Not Allowed", 405)), Era.HANDSHAKE),
        (sends(plain(b"", 503)), None),
        (refused(-32603, 500), None),
        (refused(-32603, 403), None),
        (sends(plain(b"", 406)), None),
        (sends(plain(b"<p>", 200)), None),
    ],
)
async def test_a_handshake_server_is_greeted_so_after_the_probe(
    answer: Script, remembered: Era | None
) -> None:
    memory = EraMemory()
    async with McpSite({"server/discover": answer}) as site, greeted(site.mcp, memory=memory) as link:
        assert isinstance(link, McpSession)
        await call(link)
        [head] = [each.headers for each in site.received if b"tools/call" in each.body]
        assert head["mcp-session-id"] == "s-1"
        assert "mcp-method" not in head
        assert memory.recall(asyncio.get_running_loop().time()) is remembered
        assert len(site.sent("server/discover")) == 1


async def test_what_was_found_is_remembered_and_not_asked_again() -> None:
    memory = EraMemory()
    async with McpSite({"server/discover": refused(-32601, 404)}) as site:
        for _ in range(2):
            async with greeted(site.mcp, memory=memory) as link:
                assert isinstance(link, McpSession)
        assert len(site.sent("server/discover")) == 1


async def test_a_probe_that_is_not_answered_is_hung_up_and_nothing_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("plait.upstream.greeting.PROBE", 0.05)
    memory = EraMemory()
    async with McpSite({"server/discover": silence}) as site, greeted(site.mcp, memory=memory) as link:
        assert isinstance(link, McpSession)
        assert "0 in flight" in repr(link.client._transport)
        assert memory.recall(0) is None


async def test_a_sign_in_that_is_wanted_is_told() -> None:
    wanted = sends(plain(b"", 401, WWW_Authenticate="Bearer"))
    async with ModernSite({"server/discover": wanted, "initialize": wanted}) as site:
        with pytest.raises(NeedsAuth):
            async with greeted(site.mcp):
                pass


@pytest.mark.parametrize("id", [None, "null"])
@pytest.mark.parametrize(("status", "code"), [(400, -32602), (404, -32601), (400, -32022), (400, -32020)])
async def test_a_handshake_client_uses_a_server_that_is_modern_only(
    status: int, code: int, id: str | None
) -> None:
    scripts = {"initialize": refused(code, status, id)}
    async with ModernSite(scripts) as site, greeted(site.mcp, "2025-11-25") as link:
        assert isinstance(link, ModernSession)
        assert (await call(link)).error is None


async def test_a_server_that_is_neither_is_refused_with_its_own_words() -> None:
    for discover in (refused(-32601, 404), silence):
        scripts = {"initialize": refused(-32000, 400, "null"), "server/discover": discover}
        async with McpSite(scripts) as site:
            with pytest.raises(UpstreamRefused, match="no"):
                async with greeted(site.mcp, "2025-11-25", timeout=0.2):
                    pass


async def test_the_era_can_be_pinned() -> None:
    async with McpSite({"server/discover": refused(-32601, 404)}) as site:
        with pytest.raises(UpstreamBroken, match="no modern revision"):
            async with greeted(site.mcp, era="modern"):
                pass
        async with greeted(site.mcp, era="handshake") as link:
            assert isinstance(link, McpSession)
    async with ModernSite() as site, greeted(site.mcp, "2025-06-18", era="modern") as link:
        assert isinstance(link, ModernSession)
        assert site.sent("initialize") == []


async def test_the_order_is_modern_then_handshake_then_the_transport_of_2024(tmp_path: Path) -> None:
    async with OldSite() as site:
        link = await opener(site.sse, tmp_path).open(Listener(), behalf())
        assert isinstance(link, McpSession)
        assert link.protocol_version == "2024-11-05"
        assert [method for _, method in site.messages()][:3] == [
            "server/discover",
            "initialize",
            "initialize",
        ]
        await link.aclose()


async def test_a_stream_of_2024_that_ends_at_the_probe_is_opened_again(tmp_path: Path) -> None:
    class Strict(OldSite):
        async def _answer(self, received: object, writer: asyncio.StreamWriter) -> None:
            if b"server/discover" in getattr(received, "body", b"") and self.stream is not None:
                writer.write(plain(b"", 202))
                self.stream.transport.abort()
                return
            await super()._answer(received, writer)  # type: ignore[arg-type]

    class Ends(Listener):
        def __init__(self) -> None:
            self.count = 0

        def ended(self, reason: str) -> None:
            self.count += 1

    async with Strict() as site:
        ears = Ends()
        made = opener(site.sse, tmp_path, transport="sse")
        link = await made.open(ears, behalf())
        assert isinstance(link, McpSession)
        assert ears.count == 0
        await link.aclose()
        assert [method for _, method in site.messages()].count("server/discover") == 1
