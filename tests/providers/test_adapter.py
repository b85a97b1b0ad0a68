"""A ToolProvider, mounted like any other server."""

import asyncio
import logging
from collections.abc import Callable

import pytest

from clients import Client, RawClient, compositor
from clock import jumping, quiet
from fakes import Message, words
from plait.errors import ExecutionFailed, NotFound, PermissionDenied, UpstreamBroken, UpstreamTimeout
from plait.mounts.state import MountState
from plait.providers.adapter import ProviderLink, ProviderOpener
from plait.providers.context import ToolContext
from plait.providers.function import FunctionProvider
from plait.routing.naming import InvalidPrefix, MountPrefix
from plait.upstream.client import Listener
from plait.upstream.opening import Behalf
from plait.wire.address import as_raw
from plait.wire.spec import LATEST_HANDSHAKE, METHOD_NOT_FOUND, Kind
from plait.wire.tools import CallToolResult, ContentBlock, ToolDefinition
from seams import error_of, result_of

LONE_SURROGATE = "half an emoji \ud83d"


@pytest.fixture(autouse=True)
def _quiet_log(caplog: pytest.LogCaptureFixture) -> None:
    """What tools fail with is logged; half an emoji in a log is more than pytest-xdist can carry."""
    caplog.set_level(logging.CRITICAL, "plait.provider")


class Toolbox:
    """Tools that do right and wrong."""

    def __init__(self, namespace: str = "box") -> None:
        self.namespace = namespace
        self.calls: list[tuple[str, dict[str, object]]] = []
        self.broken: Exception | None = None

    async def list_tools(self) -> list[ToolDefinition]:
        if self.broken is not None:
            raise self.broken
        return [ToolDefinition("a", "Does a."), ToolDefinition("b")]

    async def call_tool(self, name: str, arguments: dict[str, object]) -> CallToolResult:
        self.calls.append((name, arguments))
        problem = arguments.get("problem")
        match problem:
            case "unknown":
                raise NotFound(name)
            case "denied":
                raise PermissionDenied(name, "not today")
            case "failed":
                raise ExecutionFailed("disk full")
            case "bug":
                raise ZeroDivisionError("division by zero")
            case "bug with odd words":
                raise ValueError(LONE_SURROGATE)
            case "not json":
                return CallToolResult([ContentBlock("text", {"text": object()})])
            case "not unicode":
                return CallToolResult.text(LONE_SURROGATE)
        return CallToolResult.text(f"{name} did it")


async def call(provider: Toolbox, **arguments: object) -> Message:
    params = {"name": as_raw("a"), "arguments": as_raw(arguments)}
    return result_of(await ProviderLink(provider).request("tools/call", params))


async def test_opening_needs_nothing_and_waits_for_nobody() -> None:
    async def nobody() -> Behalf:
        return Behalf({}, LATEST_HANDSHAKE)

    waiting = nobody()
    link = await ProviderOpener(Toolbox()).open(Listener(), waiting)
    waiting.close()
    assert (link.instructions, link.warning, link.working_for()) == ("", None, [])
    link.notify("notifications/roots/list_changed")
    await link.aclose()


async def test_its_tools_are_listed_as_it_defines_them() -> None:
    listed = result_of(await ProviderLink(Toolbox()).request("tools/list", None))
    assert listed == {
        "tools": [
            {"name": "a", "inputSchema": {"type": "object"}, "description": "Does a."},
            {"name": "b", "inputSchema": {"type": "object"}},
        ]
    }


async def test_a_call_is_given_the_arguments_and_its_result_goes_back() -> None:
    provider = Toolbox()
    assert await call(provider, x=[1, {"y": None}]) == CallToolResult.text("a did it").wire()
    assert provider.calls == [("a", {"x": [1, {"y": None}]})]


@pytest.mark.requirement("S1-T7.18", "S0-19")
@pytest.mark.parametrize(
    ("problem", "said"),
    [
        ("unknown", "not found: a"),
        ("denied", "permission denied for tool 'a': not today"),
        ("failed", "execution failed: disk full"),
        ("bug", "a failed: division by zero"),
        ("bug with odd words", "a failed: half an emoji ?"),
    ],
)
async def test_whatever_a_tool_does_wrong_is_a_result_that_says_so(problem: str, said: str) -> None:
    result = await call(Toolbox(), problem=problem)
    assert (result["isError"], words(result)) == (True, said)


@pytest.mark.parametrize("problem", ["not json", "not unicode"])
async def test_a_result_that_cannot_be_sent_is_the_tools_failure(problem: str) -> None:
    result = await call(Toolbox(), problem=problem)
    assert result["isError"] is True
    assert words(result).startswith("a failed: ")


@pytest.mark.parametrize("method", ["prompts/list", "resources/read", "logging/setLevel", "made/up"])
async def test_it_answers_only_what_a_provider_can(method: str) -> None:
    reply = await ProviderLink(Toolbox()).request(method, {})
    assert error_of(reply)["code"] == METHOD_NOT_FOUND


def test_it_supports_tools_and_nothing_else() -> None:
    link = ProviderLink(Toolbox())
    assert [kind.capability for kind in Kind if link.supports(kind.capability)] == ["tools"]
    assert not link.supports("tools", "listChanged")
    assert not link.supports("logging")


async def test_a_provider_that_cannot_list_its_tools_is_a_broken_server() -> None:
    provider = Toolbox()
    provider.broken = RuntimeError("no database")
    with pytest.raises(UpstreamBroken, match="no database"):
        await ProviderLink(provider).request("tools/list", None)


# ---- mounted


@pytest.mark.requirement("S1-037", "S1-039")
@jumping
async def test_it_is_mounted_under_its_namespace_like_any_server() -> None:
    async with compositor() as made:
        await made.mount_provider(Toolbox("alpha"))
        await made.mount_provider(Toolbox("beta"))
        async with Client(made) as client:
            assert await client.names() == ["alpha__a", "alpha__b", "beta__a", "beta__b"]
            assert words(await client.call("beta__b")) == "b did it"


@jumping
async def test_one_that_cannot_list_its_tools_is_failed_and_tried_again_while_others_serve() -> None:
    broken, good = Toolbox("broken"), Toolbox("good")
    broken.broken = RuntimeError("no database")
    async with compositor() as made:
        mount = await made.mount(MountPrefix("broken"), broken, wait=False)
        await made.mount_provider(good)
        async with Client(made) as client:
            assert await client.names() == ["good__a", "good__b"]
            assert mount.state is MountState.FAILED
            assert "no database" in mount.reason
            broken.broken = None
            assert words(await client.call("broken__a")) != "a did it"
            await asyncio.sleep(60)
            assert words(await client.call("broken__a")) == "a did it"


@jumping
async def test_a_namespace_that_is_no_prefix_is_refused() -> None:
    async with compositor() as made:
        with pytest.raises(InvalidPrefix, match="'My Tools'"):
            await made.mount_provider(Toolbox("My Tools"))


# ---- providers that can do more


class Reporting(Toolbox):
    """Its tools report progress, and it says when they change."""

    def __init__(self) -> None:
        super().__init__("live")
        self.tools = [ToolDefinition("a")]
        self.changed: Callable[[], None] = lambda: None

    def on_change(self, listener: Callable[[], None]) -> None:
        self.changed = listener

    async def list_tools(self) -> list[ToolDefinition]:
        return self.tools

    async def call_with(
        self, name: str, arguments: dict[str, object], context: ToolContext
    ) -> CallToolResult:
        for value in (1, 1, 0.5, 2):
            context.progress(value, 2, f"at {value}")
        await quiet()
        return CallToolResult.text("done")


@jumping
async def test_progress_of_a_tool_only_increases_and_comes_under_the_clients_token() -> None:
    async with compositor() as made, RawClient(made) as client:
        await made.mount_provider(Reporting())
        client.initialize()
        client.say("tools/call", 2, name="live__a", _meta={"progressToken": "mine"})
        client.say("tools/call", 3, name="live__a")
        await client.answered()
        assert [message["params"] for message in client.told("notifications/progress")] == [
            {"progressToken": "mine", "progress": value, "total": 2, "message": f"at {value}"}
            for value in (1, 2)
        ]


@pytest.mark.requirement("S1-E9")
@jumping
async def test_a_provider_whose_tools_change_has_its_list_read_again() -> None:
    provider = Reporting()
    async with compositor() as made, Client(made) as client:
        await made.mount_provider(provider)
        await quiet()
        assert await client.names() == ["live__a"]
        provider.tools = [ToolDefinition("b")]
        provider.changed()
        await asyncio.sleep(1)
        assert client.notes == [("notifications/tools/list_changed", {})]
        assert await client.names() == ["live__b"]


# ---- deadlines


async def wait(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "at last"


async def advance(context: ToolContext, steps: int) -> str:
    for step in range(steps):
        await asyncio.sleep(20)
        context.progress(step)
    return "at last"


async def timed(name: str, **arguments: object) -> Message:
    link = ProviderLink(FunctionProvider("slow", [wait, advance]), timeout=30)
    return result_of(await link.request("tools/call", {"name": as_raw(name), "arguments": as_raw(arguments)}))


@jumping
async def test_a_call_within_its_deadline_is_answered() -> None:
    assert words(await timed("wait", seconds=29)) == "at last"


@jumping
async def test_a_tool_that_is_not_done_by_its_deadline_is_cancelled_and_said_to_be_late() -> None:
    with pytest.raises(UpstreamTimeout, match="wait was not done within 30 s"):
        await timed("wait", seconds=31)


@jumping
async def test_progress_starts_the_time_anew_even_where_nobody_asked_for_it() -> None:
    assert words(await timed("advance", steps=5)) == "at last"
