"""The client half of MCP over a transport without a server."""

import asyncio
import json

import pytest
from msgspec import Raw

from plait.errors import UpstreamBroken, UpstreamRefused, UpstreamTimeout, UpstreamUnavailable
from plait.session.exchange import Exchange, Reply
from plait.upstream.base import Receiver
from plait.upstream.client import Listener, McpClient
from plait.upstream.handshake import McpSession
from plait.upstream.mock import MockTransport
from plait.wire.envelope import Fields

WELCOME: dict[str, object] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": True}, "resources": {}},
    "serverInfo": {"name": "theirs", "version": "7"},
    "instructions": "be kind",
}


class Wire:
    """A transport in the test's own hands."""

    def __init__(self) -> None:
        self.lagging = False
        self.stuck: str | None = None
        self.written: list[dict[str, object]] = []
        self.aborted: str | None = None
        self.drain: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open(self, receiver: Receiver) -> None:
        self.receiver = receiver

    def write(self, message: bytes) -> None:
        self.written.append(json.loads(message))

    def say(self, message: object) -> None:
        self.receiver.received(json.dumps(message).encode())

    def drained(self) -> "asyncio.Future[None]":
        return self.drain

    def abort(self, reason: str) -> None:
        self.aborted = reason
        self.receiver.closed(reason)

    async def aclose(self) -> None:
        self.receiver.closed("closed")


class Asker:
    """A client whose request is relayed."""

    identity = "test"
    revision = "2025-11-25"

    def __init__(self) -> None:
        self.capabilities: Fields = {}
        self.heard: list[tuple[str, Fields | None]] = []

    def notify(self, method: str, params: Fields | None, within: bytes | None = None) -> None:
        self.heard.append((method, params))

    async def ask(
        self,
        method: str,
        params: Fields | None,
        on_progress: object = None,
        within: bytes | None = None,
    ) -> Reply:
        raise AssertionError("nobody asks")


async def written(wire: Wire, count: int) -> None:
    """Let the loop turn until so many messages were written."""
    for _ in range(1000):
        if len(wire.written) >= count:
            return
        await asyncio.sleep(0)
    raise AssertionError(f"only {wire.written} was written")


@pytest.mark.requirement("S1-T3.1", "S1-032")
async def test_send_raw_returns_the_result() -> None:
    transport = MockTransport([{"answer": 42}])
    async with McpClient(transport) as client:
        assert await client.send_raw("x/y", {"a": 1}) == {"answer": 42}
    assert transport.requests == [{"jsonrpc": "2.0", "id": 1, "method": "x/y", "params": {"a": 1}}]


@pytest.mark.requirement("S1-T3.2")
async def test_send_raw_raises_the_servers_error() -> None:
    async with McpClient(MockTransport([{"error": {"code": -7, "message": "no", "data": [1]}}])) as client:
        with pytest.raises(UpstreamRefused) as caught:
            await client.send_raw("x")
    assert (caught.value.code, caught.value.message, caught.value.data) == (-7, "no", [1])


@pytest.mark.requirement("S1-T3.3", "S1-T2.1", "S1-T2.2", "S1-T2.3", "S1-012", "S1-002", "S1-D2")
async def test_a_notification_has_no_id_and_needs_no_response() -> None:
    transport = MockTransport()
    async with McpClient(transport) as client:
        await client.send_notification("notifications/x")
        await client.send_notification("notifications/y", {"a": 1})
    assert transport.notifications == [
        {"jsonrpc": "2.0", "method": "notifications/x"},
        {"jsonrpc": "2.0", "method": "notifications/y", "params": {"a": 1}},
    ]
    assert transport.requests == []


@pytest.mark.requirement("S1-T4.1", "S1-T6.1", "S1-001", "S1-010", "S1-D9")
async def test_connecting_is_initialize_then_initialized_then_the_rest() -> None:
    transport = MockTransport([WELCOME, {"tools": []}])
    async with await McpSession.connect(transport) as session:
        assert await session.list_tools() == []
    assert transport.sent == ["initialize", "notifications/initialized", "tools/list"]
    assert transport.notifications == [{"jsonrpc": "2.0", "method": "notifications/initialized"}]


@pytest.mark.requirement("S1-T4.2", "S1-T4.3", "S1-030", "S1-031")
async def test_a_session_knows_what_the_server_is_and_can_do() -> None:
    async with await McpSession.connect(MockTransport([WELCOME])) as session:
        assert session.server_info == {"name": "theirs", "version": "7"}
        assert session.protocol_version == "2025-11-25"
        assert session.instructions == "be kind"
        assert session.supports_tools()
        assert session.supports_resources()
        assert session.supports("tools", "listChanged")
        assert not session.supports("resources", "subscribe")
        assert not session.supports("prompts")
        assert session.warning is None


@pytest.mark.requirement("S1-T4.4")
async def test_an_empty_welcome_is_tolerated() -> None:
    async with await McpSession.connect(MockTransport([{}])) as session:
        assert session.server_info == {}
        assert not session.supports_tools()
        assert "names no protocol version" in str(session.warning)


@pytest.mark.requirement("S1-E4")
async def test_an_unknown_revision_is_warned_about_and_taken() -> None:
    async with await McpSession.connect(
        MockTransport([{**WELCOME, "protocolVersion": "2031-01-01"}])
    ) as session:
        assert session.supports_tools()
        assert "'2031-01-01'" in str(session.warning)


@pytest.mark.requirement("S1-T4.5", "S1-E3", "S1-T1.3")
async def test_a_server_that_ends_in_the_handshake_is_an_error_and_nothing_stays_open() -> None:
    with pytest.raises(UpstreamUnavailable, match="stopped during initialize"):
        await McpSession.connect(MockTransport([]))


@pytest.mark.requirement("S1-T4.6")
async def test_list_tools_reads_every_page() -> None:
    pages: list[dict[str, object]] = [
        {"tools": [{"name": "a"}], "nextCursor": ""},
        {"tools": [{"name": "b"}], "nextCursor": None},
    ]
    transport = MockTransport([WELCOME, *pages])
    async with await McpSession.connect(transport) as session:
        assert [tool["name"] for tool in await session.list_tools()] == ["a", "b"]
    assert transport.requests[-1]["params"] == {"cursor": ""}


async def test_a_list_that_goes_round_in_circles_ends() -> None:
    pages: list[dict[str, object]] = [{"tools": [], "nextCursor": "x"}, {"tools": [], "nextCursor": "x"}]
    async with await McpSession.connect(MockTransport([WELCOME, *pages])) as session:
        with pytest.raises(UpstreamBroken, match="in circles"):
            await session.list_tools()


async def test_a_list_that_the_server_does_not_know_is_empty() -> None:
    unknown = {"error": {"code": -32601, "message": "what?"}}
    async with await McpSession.connect(MockTransport([WELCOME, unknown])) as session:
        assert await session.list_tools() == []


@pytest.mark.requirement("S1-T4.7")
async def test_call_tool_sends_name_and_arguments() -> None:
    transport = MockTransport([WELCOME, {"content": []}])
    async with await McpSession.connect(transport) as session:
        assert await session.call_tool("echo", {"a": 1}) == {"content": []}
    assert transport.requests[-1]["params"] == {"name": "echo", "arguments": {"a": 1}}


async def test_every_call_has_a_deadline_and_the_server_is_told() -> None:
    wire = Wire()
    async with McpClient(wire, name="slow", timeout=0.01) as client:
        with pytest.raises(UpstreamTimeout, match=r"server 'slow' did not answer x within 0\.01 s"):
            await client.request("x", None)
        assert [message["method"] for message in wire.written] == ["x", "notifications/cancelled"]
        wire.say({"jsonrpc": "2.0", "id": 1, "result": {}})
        assert wire.aborted is None


async def test_a_server_that_is_stuck_at_the_deadline_is_ended() -> None:
    wire = Wire()
    wire.stuck = "it stopped in the middle of a message"
    async with McpClient(wire, timeout=0.01) as client:
        with pytest.raises(UpstreamTimeout):
            await client.request("x", None)
        assert wire.aborted == wire.stuck
        with pytest.raises(UpstreamUnavailable, match="middle of a message"):
            await client.request("y", None)


@pytest.mark.requirement("S1-R2")
async def test_initialize_is_never_cancelled_on_the_wire() -> None:
    wire = Wire()
    async with McpClient(wire, timeout=0.01) as client:
        with pytest.raises(UpstreamTimeout):
            await client.request("initialize", {})
    assert [message["method"] for message in wire.written] == ["initialize"]


async def test_a_server_that_does_not_read_is_not_written_to_and_the_deadline_holds() -> None:
    wire = Wire()
    wire.lagging = True
    async with McpClient(wire, timeout=0.01) as client:
        with pytest.raises(UpstreamTimeout):
            await client.request("x", None)
    assert [message["method"] for message in wire.written] == ["notifications/cancelled"]


async def test_a_server_that_reads_again_gets_what_waited() -> None:
    wire = Wire()
    wire.lagging = True
    async with McpClient(wire) as client, asyncio.TaskGroup() as group:
        asked = group.create_task(client.request("x", None))
        await asyncio.sleep(0)
        wire.lagging = False
        wire.drain.set_result(None)
        await written(wire, 1)
        wire.say({"jsonrpc": "2.0", "id": 1, "result": {}})
        assert await asked == Reply(result=Raw(b"{}"))


async def test_a_caller_who_gives_up_is_told_to_the_server() -> None:
    wire = Wire()
    async with McpClient(wire) as client:
        asked = asyncio.get_running_loop().create_task(client.request("x", None))
        await written(wire, 1)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert wire.written[1]["method"] == "notifications/cancelled"
        assert wire.written[1]["params"] == {"requestId": 1, "reason": "the client cancelled the request"}


async def test_progress_goes_to_the_asker_under_its_own_token_and_extends_the_deadline() -> None:
    wire, asker = Wire(), Asker()
    exchange = Exchange(b'"c"', "tools/call", {}, "x", asker, {"progressToken": Raw(b'"mine"')})
    async with McpClient(wire) as client, asyncio.TaskGroup() as group:
        asked = group.create_task(client.request("tools/call", {}, exchange))
        await written(wire, 1)
        assert client.working_for() == [exchange]
        for value in (1, 1, 2):
            wire.say(
                {
                    "jsonrpc": "2.0",
                    "method": "notifications/progress",
                    "params": {"progressToken": 1, "progress": value, "message": "m"},
                }
            )
        wire.say({"jsonrpc": "2.0", "id": 1, "result": {}})
        await asked
    token = Raw(b'"mine"')
    assert asker.heard == [
        ("notifications/progress", {"progressToken": token, "progress": Raw(b"1"), "message": Raw(b'"m"')}),
        ("notifications/progress", {"progressToken": token, "progress": Raw(b"2"), "message": Raw(b'"m"')}),
    ]


@pytest.mark.requirement("S1-021")
async def test_when_the_server_ends_every_call_fails_at_once_and_later_ones_too() -> None:
    wire = Wire()
    async with McpClient(wire, name="fs") as client:
        calls = [asyncio.get_running_loop().create_task(client.request("x", None)) for _ in range(3)]
        await written(wire, 3)
        wire.receiver.closed("it exited with code 3")
        for call in calls:
            with pytest.raises(
                UpstreamUnavailable, match="server 'fs' stopped during x: it exited with code 3"
            ):
                await call
        with pytest.raises(UpstreamUnavailable, match="it exited with code 3"):
            await client.request("y", None)


async def test_a_broken_reply_fails_its_call_and_says_whose_fault_it_is() -> None:
    wire = Wire()
    async with McpClient(wire, name="fs") as client, asyncio.TaskGroup() as group:
        asked = group.create_task(_broken(client))
        await written(wire, 1)
        wire.say({"jsonrpc": "2.0", "id": 1, "result": None})
        assert "server 'fs' answered x with a result that is no object" in await asked


async def _broken(client: McpClient) -> str:
    with pytest.raises(UpstreamBroken) as caught:
        await client.request("x", None)
    return str(caught.value)


async def test_a_question_nobody_listens_to_is_refused() -> None:
    wire = Wire()
    async with McpClient(wire, listener=Listener()):
        wire.say({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})
    assert wire.written == [
        {"jsonrpc": "2.0", "id": "q", "error": {"code": -32601, "message": "nobody here answers roots/list"}}
    ]


async def test_representations_tell_nothing_secret() -> None:
    async with await McpSession.connect(MockTransport([WELCOME]), name="fs") as session:
        assert repr(session) == "<McpSession fs: 2025-11-25, offers tools, resources>"
        assert repr(session.client) == "<McpClient fs: 0 in flight>"
