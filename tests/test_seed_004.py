"""Seed 004's acceptance list: `namespace.method` names, and streams as results, from a client's side."""

import asyncio
from collections.abc import AsyncIterator
from typing import Literal

import pytest

from asgi import HttpClient, closing
from clients import Client, RawClient, compositor, error_of, result_of
from clock import jumping, quiet
from fakes import Message, words
from fronts import OPEN
from plait.config.model import ServerSettings, Settings, StreamSettings
from plait.downstream.http import HttpApp
from plait.errors import ExecutionFailed, NotFound, UpstreamRefused
from plait.providers.composite import CompositeToolProvider
from plait.providers.function import FunctionProvider
from plait.providers.stream_events import StreamEvent
from plait.routing.naming import MountPrefix
from plait.wire.spec import INVALID_PARAMS, NOT_INITIALIZED
from plait.wire.tools import ToolDefinition
from shells import call, converse, is_error, text

E = StreamEvent
Separator = Literal["__", "_", "."]
P = "io.modelcontextprotocol/"
STAMP: Message = {f"{P}protocolVersion": "2026-07-28", f"{P}clientCapabilities": {}}
DOTTED = Settings(separator=".")


class Activation:
    """Somebody's tools: every one streams. It remembers what it was asked, and how its streams ended."""

    def __init__(self, namespace: str, *tools: str) -> None:
        self.namespace = namespace
        self._tools = tools or ("chat",)
        self.calls: list[tuple[str, dict[str, object]]] = []
        self.cleaned = 0

    async def list_tools(self) -> list[ToolDefinition]:
        return [ToolDefinition(tool) for tool in self._tools]

    async def stream_tool(self, name: str, arguments: dict[str, object]) -> AsyncIterator[StreamEvent]:
        if name not in self._tools:
            raise NotFound(name)
        self.calls.append((name, arguments))
        if arguments.get("session_name") == "foo":
            raise ExecutionFailed("Session 'foo' not found")
        try:
            yield E.start()
            yield E.progress(1, 2, "half")
            yield E.content("Hello! ")
            await asyncio.sleep(float(str(arguments.get("seconds", 0))))
            yield E.content("How can I help?")
            yield E.done()
        finally:
            self.cleaned += 1


HELP = {"content": [{"type": "text", "text": "Hello! How can I help?"}], "isError": False}


# ---- names


@pytest.mark.requirement("S4-02", "S4-05", "S4-07", "S4-09")
@pytest.mark.parametrize("separator", [".", "__", "_"])
@jumping
async def test_a_tool_is_called_by_namespace_and_method_whatever_the_separator(separator: Separator) -> None:
    chat, other = Activation("claudecode"), Activation("arbor", "chat", "tree")
    async with compositor(settings=Settings(separator=separator)) as made, Client(made) as client:
        await made.mount_provider(other)
        await made.mount_provider(chat)
        assert f"claudecode{separator}chat" in await client.names()
        arguments = {"session_name": "my-session", "query": "Hello, world!"}
        assert await client.call("claudecode.chat", **arguments) == HELP
        assert (chat.calls, other.calls) == ([("chat", arguments)], [])


@pytest.mark.requirement("S4-05", "BP-22")
@pytest.mark.parametrize("separator", [".", "__"])
@jumping
async def test_a_nested_name_goes_down_the_tree(separator: Separator) -> None:
    dotted, plain = Activation("a", "b.method", "method"), Activation("b", "method")
    inner, outer = CompositeToolProvider("y"), CompositeToolProvider("x")
    inner.register(plain)
    outer.register(inner)
    async with compositor(settings=Settings(separator=separator)) as made, Client(made) as client:
        await made.mount_provider(dotted)
        await made.mount_provider(outer)
        assert await client.call("a.b.method") == HELP
        assert await client.call("x.y.b.method") == HELP
        assert ([name for name, _ in dotted.calls], [name for name, _ in plain.calls]) == (
            ["b.method"],
            ["method"],
        )
        unknown = await client.call("x.z.method")
        assert unknown["isError"] is True
        if separator == "__":
            assert await client.call("a__b__method") == HELP


@pytest.mark.requirement("BP-22")
@jumping
async def test_composites_within_composites_say_when_their_tools_change() -> None:
    inner, outer = CompositeToolProvider("y"), CompositeToolProvider()
    outer.register(inner)
    heard: list[str] = []
    outer.on_change(lambda: heard.append("changed"))
    inner.register(Activation("b", "method"))
    assert heard == ["changed"]
    for name in ("y__b__method", "y.b.method", "y__b.method"):
        assert (await outer.call_tool(name, {})).wire() == HELP
    with pytest.raises(NotFound):
        await outer.call_tool("y.c.method", {})


@pytest.mark.requirement("S4-06", "S4-10")
@pytest.mark.parametrize("name", ["no-dot-here", "", ".", ".chat", "claudecode."])
@jumping
async def test_with_dots_a_name_that_cannot_be_one_is_a_protocol_error(name: str) -> None:
    chat = Activation("claudecode")
    async with compositor(settings=DOTTED) as made, Client(made) as client:
        await made.mount_provider(chat)
        with pytest.raises(UpstreamRefused) as refused:
            await client.call(name)
        assert refused.value.code == INVALID_PARAMS
        assert f"Invalid tool name format: '{name}'" in str(refused.value)
        assert chat.calls == []


# ---- tool errors and protocol errors


@pytest.mark.requirement("S4-08", "S4-10")
@jumping
async def test_a_tools_failure_is_a_successful_response_that_says_so() -> None:
    async with compositor(settings=DOTTED) as made, Client(made) as client:
        await made.mount_provider(Activation("claudecode"))
        failed = await client.call("claudecode.chat", session_name="foo")
        assert failed == {
            "content": [{"type": "text", "text": "execution failed: Session 'foo' not found"}],
            "isError": True,
        }
        unknown = await client.call("claudecode.sing")
        assert unknown["isError"] is True
        assert "claudecode.chat" in words(unknown)


@pytest.mark.requirement("S4-03")
@jumping
async def test_before_the_handshake_nothing_is_called() -> None:
    chat = Activation("claudecode")
    async with compositor(settings=DOTTED) as made, RawClient(made) as client:
        await made.mount_provider(chat)
        client.say("tools/call", 1, name="claudecode.chat", arguments={})
        await client.answered()
        assert (error_of(client.answer(1))["code"], chat.calls) == (NOT_INITIALIZED, [])
        client.initialize(2)
        client.say("tools/call", 3, name="claudecode.chat", arguments={})
        await client.answered()
        assert result_of(client.answer(3)) == HELP


@pytest.mark.requirement("S4-04", "S4-10")
@pytest.mark.parametrize(
    "params",
    [{}, {"name": 5}, {"name": None}, {"arguments": {}}, {"name": "claudecode.chat", "arguments": [1]}],
)
@jumping
async def test_params_that_cannot_be_read_are_a_protocol_error(params: Message) -> None:
    chat = Activation("claudecode")
    async with compositor(settings=DOTTED) as made, RawClient(made) as client:
        await made.mount_provider(chat)
        client.initialize()
        client.say("tools/call", 2, **params)
        await client.answered()
        assert (error_of(client.answer(2))["code"], chat.calls) == (INVALID_PARAMS, [])


# ---- while it streams


@pytest.mark.requirement("S4-01", "X-40")
@jumping
async def test_while_a_tool_streams_others_are_answered_and_it_can_be_cancelled() -> None:
    chat = Activation("claudecode")
    async with compositor(settings=DOTTED) as made, RawClient(made) as client:
        await made.mount_provider(chat)
        client.initialize()
        client.say("tools/call", 2, name="claudecode.chat", arguments={"seconds": 1000})
        await quiet()
        client.say("ping", 3)
        await quiet()
        assert (client.answer(3)["result"], len(chat.calls), chat.cleaned) == ({}, 1, 0)
        client.say("notifications/cancelled", requestId=2)
        await client.answered()
        assert chat.cleaned == 1
        assert [message for message in client.messages if message.get("id") == 2] == []


def logs(client: RawClient) -> list[object]:
    return [message["params"] for message in client.told("notifications/message")]


CONTENT = [
    {"level": "info", "logger": "claudecode/chat", "data": "Hello! "},
    {"level": "info", "logger": "claudecode/chat", "data": "How can I help?"},
]


@pytest.mark.requirement("BP-18", "X-44")
@jumping
async def test_content_is_logged_only_to_the_client_that_called_and_asked_for_it() -> None:
    async with (
        compositor() as made,
        RawClient(made) as asks,
        RawClient(made) as silent,
        RawClient(made) as other,
        RawClient(made) as severe,
    ):
        await made.mount_provider(Activation("claudecode"))
        for client in (asks, silent, other, severe):
            client.initialize()
        for client, level in ((asks, "info"), (other, "debug"), (severe, "error")):
            client.say("logging/setLevel", 2, level=level)
        await asks.answered()
        for client in (asks, silent, severe):
            client.say("tools/call", 3, name="claudecode__chat", arguments={})
        asks.say("tools/call", 4, name="claudecode__chat", arguments={}, _meta={"progressToken": "mine"})
        for client in (asks, silent, severe, other):
            await client.answered()
        capabilities = result_of(asks.answer(1))["capabilities"]
        assert isinstance(capabilities, dict)
        assert "logging" in capabilities
        assert logs(asks) == [CONTENT[0], CONTENT[0], CONTENT[1], CONTENT[1]]
        assert (logs(silent), logs(other), logs(severe)) == ([], [], [])
        assert [message["params"] for message in asks.told("notifications/progress")] == [
            {"progressToken": "mine", "progress": 1.0, "total": 2.0, "message": "half"}
        ]
        assert silent.told("notifications/progress") == []


@jumping
async def test_in_the_modern_era_it_is_the_same_and_each_request_asks_for_itself() -> None:
    async with compositor() as made, RawClient(made) as client:
        await made.mount_provider(Activation("claudecode"))
        plain, asking = {**STAMP, "progressToken": 7}, {**STAMP, f"{P}logLevel": "info"}
        client.say("tools/call", 1, name="claudecode.chat", arguments={}, _meta=plain)
        await client.answered()
        assert (logs(client), len(client.told("notifications/progress"))) == ([], 1)
        client.say("tools/call", 2, name="claudecode.chat", arguments={}, _meta=asking)
        await client.answered()
        assert (logs(client), len(client.told("notifications/progress"))) == (CONTENT, 1)
        for id in (1, 2):
            assert result_of(client.answer(id))["content"] == HELP["content"]


@pytest.mark.requirement("S4-01")
@jumping
async def test_over_http_what_is_told_meanwhile_comes_on_the_stream_of_its_call() -> None:
    async with compositor() as made, closing(HttpApp(made, OPEN)) as app:
        await made.mount_provider(Activation("claudecode"))
        client = HttpClient(app)
        await client.shake_hands()
        await client.request("logging/setLevel", level="info")
        visit = client.begin(
            "tools/call",
            {"name": "claudecode.chat", "arguments": {"seconds": 5}, "_meta": {"progressToken": 1}},
        )
        messages = [await visit.message() for _ in range(3)]
        assert [message["method"] for message in messages[:2]] == [
            "notifications/progress",
            "notifications/message",
        ]
        assert [message.get("params") for message in messages[1:]] == CONTENT
        assert result_of(await visit.message()) == HELP


@jumping
async def test_the_settings_of_a_mount_limit_its_streams_and_what_is_unknown_is_counted() -> None:
    async def noise(times: int) -> AsyncIterator[object]:
        for _ in range(times):
            yield {"type": "noise"}
        yield "done"

    limited = ServerSettings(stream=StreamSettings(items=3))
    async with compositor() as made, Client(made) as client:
        mount = await made.mount(MountPrefix("n"), FunctionProvider("n", [noise]), settings=limited)
        assert words(await client.call("n__noise", times=2)) == "done"
        result = await client.call("n__noise", times=5)
        assert (result["isError"], "more than 3 events" in words(result)) == (True, True)
        instance = mount.foremost
        assert instance is not None
        assert instance.counters["unknown stream event"] == 5


async def test_a_shell_serves_tools_that_stream() -> None:
    answers = await converse(Activation("claudecode"), call("claudecode.chat"), call("nope", id=3))
    assert (text(answers[2]), is_error(answers[2]), is_error(answers[3])) == (
        "Hello! How can I help?",
        False,
        True,
    )
