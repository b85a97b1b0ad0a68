"""A server that does what a test tells it to."""

import asyncio

import pytest

from clients import compositor
from clock import jumping, quiet
from plait import Client, ToolContext, ToolDefinition
from plait.errors import UpstreamRefused, UpstreamTimeout, UpstreamUnavailable
from plait.testing import Held, Message, MockTransport, ScriptedServer
from plait.upstream.mock import MockTransport as RealMock
from plait.wire.spec import Kind
from plait.wire.tools import CallToolResult, ToolCallRequest


def test_the_mock_transport_is_the_one() -> None:
    assert MockTransport is RealMock


@jumping
async def test_tools_are_names_entries_or_functions() -> None:
    async def add(a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    entry: Message = {"name": "odd", "inputSchema": {}, "x": 1}
    server = ScriptedServer("s", tools=["plain", entry, add])
    async with compositor(server) as made, Client(made) as client:
        plain, odd, adds = await client.list_tools()
        assert plain == ToolDefinition("s__plain")
        assert odd == ToolDefinition("s__odd", more={"x": 1})
        assert (adds.description, adds.input_schema["required"]) == ("Adds.", ["a"])
        assert await client.execute("s__add", {"a": 2}) == "3"
        assert await client.execute("s__plain", {"a": 2}) == 's: plain {"a":2}'
        assert "Expected `int`" in await client.execute("s__add", {"a": "x"})
    assert server.calls[0] == ToolCallRequest("add", {"a": 2})
    assert repr(server).startswith("<ScriptedServer s: ")


@jumping
async def test_each_entry_may_have_its_own_body() -> None:
    async def slow() -> str:
        await asyncio.sleep(1)
        return "late news"

    server = ScriptedServer(
        "s",
        tools={
            "say": "hello",
            "fail": CallToolResult.error("broken").wire(),
            "up": lambda text: text.upper(),
        },
        resources={"x:1": "one", "x:2": slow, "x:3": lambda: {"contents": []}},
        prompts={"p": "Be brief.", "q": lambda name: f"Greet {name}."},
    )
    async with compositor(server) as made, Client(made) as client:
        assert [tool.name for tool in await client.list_tools()] == ["s__say", "s__fail", "s__up"]
        assert await client.execute("s__say") == "hello"
        assert (await client.execute("s__fail")).is_error
        assert await client.execute("s__up", {"text": "a"}) == "A"
        assert (await client.read_resource("x:1"))["contents"] == [{"uri": "x:1", "text": "one"}]
        assert (await client.read_resource("x:2"))["contents"] == [{"uri": "x:2", "text": "late news"}]
        assert await client.read_resource("x:3") == {"contents": []}
        for name, arguments, said in [("s__p", {}, "Be brief."), ("s__q", {"name": "Ann"}, "Greet Ann.")]:
            [message] = (await client.get_prompt(name, arguments))["messages"]  # type: ignore[misc]
            assert message["content"]["text"] == said  # type: ignore[has-type]


@jumping
async def test_it_can_fail_hang_and_go_on() -> None:
    server = ScriptedServer("s", tools=["t"], resources=["x:1"])
    async with compositor(server) as made, Client(made) as client:
        await client.list_tools()
        server.fail("resources/read", -32042, "login first")
        with pytest.raises(UpstreamRefused, match="login first") as refused:
            await client.read_resource("x:1")
        assert refused.value.code == -32042
        held = server.hang("tools/call")
        assert isinstance(held, Held)
        with pytest.raises(UpstreamTimeout):
            await client.call_tool("s__t", timeout=1)
        async with asyncio.TaskGroup() as group:
            call = group.create_task(client.execute("s__t"))
            await quiet()
            held.answer(CallToolResult.text("at last").wire())
        assert call.result() == "at last"


@jumping
async def test_it_can_fail_to_start_and_end_and_start_again() -> None:
    server = ScriptedServer("s", tools=["t"])
    server.failures = [UpstreamUnavailable("no such file")]
    async with compositor(server) as made, Client(made) as client:
        await asyncio.sleep(60)
        assert [tool.name for tool in await client.list_tools()] == ["s__t"]
        server.end("it exited with code 3")
        await asyncio.sleep(60)
        assert await client.execute("s__t") == "s: t {}"
        assert len(server.wires) == 2
        assert len(server.behalf) == 2


@jumping
async def test_a_mistake_in_the_script_is_seen_by_whoever_called() -> None:
    def now(params: Message) -> object:
        raise ZeroDivisionError("oh")

    async def later(params: Message) -> object:
        return now(params)

    server = ScriptedServer("s", resources=["x:1"])
    async with compositor(server) as made, Client(made) as client:
        await client.list_resources()
        for answer in (now, later):
            server.answers["resources/read"] = answer
            with pytest.raises(UpstreamRefused, match="the script failed: ZeroDivisionError: oh"):
                await client.read_resource("x:1")


@jumping
async def test_a_tool_that_is_cancelled_ends_and_one_that_works_reports() -> None:
    ended: list[str] = []
    seen: list[object] = []

    async def work(context: ToolContext) -> str:
        context.progress(1, 2, "half")
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("work")
        return "done"

    server = ScriptedServer("s", tools=[work])
    async with compositor(server) as made, Client(made) as client:
        assert (
            await client.call_tool("s__work", on_progress=lambda *told: seen.append(told))
        ).is_error is False
        assert (ended, seen) == (["work"], [(1, 2, "half")])
        with pytest.raises(UpstreamTimeout):
            await client.call_tool("s__work", timeout=5)
        await quiet()
        assert ended == ["work", "work"]


@jumping
async def test_a_question_that_nobody_will_answer_ends_with_the_connection() -> None:
    server = ScriptedServer("s", tools=["t"])
    outcome: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

    async def ask() -> None:
        try:
            await server.question("sampling/createMessage", {})
        except asyncio.CancelledError:
            outcome.cancel()

    async def never(params: dict[str, object]) -> dict[str, object]:
        await asyncio.sleep(3600)
        return {}

    async with compositor(server) as made, Client(made, sampling=never) as client:
        await client.list_tools()
        async with asyncio.TaskGroup() as group:
            group.create_task(ask())
            await quiet()
            server.end()
        assert outcome.cancelled()
        server.failures = []
        await asyncio.sleep(60)
        server.change(Kind.TOOLS, ["u"])
        await asyncio.sleep(1)
        assert [tool.name for tool in await client.list_tools()] == ["s__u"]
