"""The ecosystem's clients in this process: the official SDK's and FastMCP's, beside our own."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator

import fastmcp
import mcp
import pytest
from fastmcp import FastMCP
from mcp import types
from mcp.client import ClientRequestContext
from mcp.client.session import ClientSession
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from msgspec import Raw

from clients import ALONE, PATIENCE
from fakes import FakeServer, Message
from mounting import mount
from plait import Client, Compositor, FunctionProvider
from plait.downstream.extras import MissingPackage
from plait.downstream.sdk_fastmcp import CompositorTransport
from plait.errors import LocalProtocolError
from plait.wire.spec import Kind


@contextlib.asynccontextmanager
async def serving(**servers: object) -> AsyncIterator[Compositor]:
    """A compositor with these. When it is left, nothing of its clients is."""
    before = asyncio.all_tasks()
    async with asyncio.timeout(PATIENCE), Compositor(ALONE) as made:
        for prefix, server in servers.items():
            await mount(made, prefix, server)
        yield made
        assert made.registry.clients == 0
    assert asyncio.all_tasks() == before


def calculator() -> FastMCP[None]:
    server: FastMCP[None] = FastMCP("calculator")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    return server


def doubler() -> MCPServer:
    server = MCPServer("doubler")

    @server.tool()
    def double(x: int) -> int:
        return 2 * x

    return server


def lowlevel() -> Server[object]:
    async def list_tools(context: object, params: object) -> types.ListToolsResult:
        schema = {"type": "object", "properties": {}}
        return types.ListToolsResult(tools=[types.Tool(name="hello", input_schema=schema)])

    async def call_tool(context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text="hello")])

    return Server("lowlevel", on_list_tools=list_tools, on_call_tool=call_tool)


def shout(text: str) -> str:
    return text.upper()


NAMES = {"fast__add", "high__double", "low__hello", "own__shout"}


@contextlib.asynccontextmanager
async def everything() -> AsyncIterator[Compositor]:
    own = FunctionProvider("own", [shout])
    async with serving(fast=calculator(), high=doubler(), low=lowlevel(), own=own) as made:
        yield made


async def test_the_official_client_uses_servers_of_every_kind() -> None:
    async with everything() as made, mcp.Client(made.transport()) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == NAMES
        assert (await client.call_tool("fast__add", {"a": 2, "b": 3})).structured_content == {"result": 5}
        assert (await client.call_tool("high__double", {"x": 4})).structured_content == {"result": 8}
        for name, arguments, said in [("low__hello", {}, "hello"), ("own__shout", {"text": "x"}, "X")]:
            [block] = (await client.call_tool(name, arguments)).content
            assert isinstance(block, types.TextContent)
            assert block.text == said


async def test_fastmcps_client_uses_servers_of_every_kind() -> None:
    async with everything() as made, fastmcp.Client(made.fastmcp_transport()) as client:
        assert {tool.name for tool in await client.list_tools()} == NAMES
        assert (await client.call_tool("fast__add", {"a": 2, "b": 3})).data == 5
        assert (await client.call_tool("high__double", {"x": 4})).structured_content == {"result": 8}
        with pytest.raises(fastmcp.exceptions.ToolError, match="unknown tool"):
            await client.call_tool("fast__subtract", {})


@pytest.mark.parametrize(("mode", "revision"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_the_official_client_is_served_in_both_eras(mode: str, revision: str) -> None:
    async with serving(a=FakeServer("a")) as made, mcp.Client(made.transport(), mode=mode) as client:
        assert client.protocol_version == revision
        assert client.server_info is not None
        assert client.server_info.name == "plait"


async def test_many_clients_of_all_kinds_are_served_at_once() -> None:
    async with serving(a=FakeServer("a", tools=["t"])) as made:
        shared = made.fastmcp_transport()

        async def official(number: int) -> str:
            async with mcp.Client(made.transport()) as client:
                [block] = (await client.call_tool("a__t", {"number": number})).content
                assert isinstance(block, types.TextContent)
                return block.text

        async def fast(number: int) -> str:
            async with fastmcp.Client(shared) as client:
                result = await client.call_tool("a__t", {"number": number})
                assert isinstance(result.content[0], types.TextContent)
                return result.content[0].text

        async def own(number: int) -> str:
            async with Client(made) as client:
                return await client.execute("a__t", {"number": number})

        async with asyncio.TaskGroup() as group:
            calls = [group.create_task((official, fast, own)[n % 3](n)) for n in range(15)]
        assert [call.result() for call in calls] == [f'a: t {{"number":{n}}}' for n in range(15)]


async def test_questions_progress_and_notifications_reach_the_official_client() -> None:
    async def think() -> str:
        answer = await server.question(
            "sampling/createMessage",
            {"messages": [{"role": "user", "content": {"type": "text", "text": "hair?"}}], "maxTokens": 5},
        )
        return str(answer["result"]["content"]["text"])  # type: ignore[index]

    async def sample(
        context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        content = types.TextContent(type="text", text="three strands")
        return types.CreateMessageResult(role="assistant", content=content, model="m")

    changed = asyncio.Event()

    async def heard(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    server = FakeServer("a", tools=[think])
    async with (
        serving(a=server) as made,
        mcp.Client(
            made.transport(), mode="legacy", sampling_callback=sample, message_handler=heard
        ) as client,
    ):
        await client.list_tools()
        [block] = (await client.call_tool("a__think", {})).content
        assert isinstance(block, types.TextContent)
        assert block.text == "three strands"
        server.change(Kind.TOOLS, ["other"])
        await changed.wait()


async def test_what_the_sdk_has_no_name_for_survives_as_far_as_the_sdk_lets_it() -> None:
    tool: Message = {"name": "t", "inputSchema": {"type": "object", "x-mine": 1}, "_meta": {"mine/k": [1]}}
    server = FakeServer("a", tools=[tool])
    answer = {
        "content": [{"type": "text", "text": "x", "_meta": {"k": 2}}],
        "_meta": {"mine/result": {"z": 1}},
    }
    server.answers["tools/call"] = lambda params: answer
    async with serving(a=server) as made, mcp.Client(made.transport(), mode="legacy") as client:
        [listed] = (await client.list_tools()).tools
        assert listed.input_schema == tool["inputSchema"]
        assert listed.meta == tool["_meta"]
        result = await client.call_tool("a__t", {"deep": {"ü": [None, 1.5]}}, meta={"mine/request": 7})  # type: ignore[arg-type]
        assert result.meta == answer["_meta"]
        asked = server.asked("tools/call")[0]
        assert asked["arguments"] == {"deep": {"ü": [None, 1.5]}}
        assert asked["_meta"]["mine/request"] == 7  # type: ignore[index]


async def test_a_message_that_the_sdk_cannot_read_does_not_end_its_session() -> None:
    server = FakeServer("a", tools=["t"])
    async with serving(a=server) as made:
        transport = made.transport()
        async with transport as (incoming, outgoing):
            incoming.write(b'{"jsonrpc":"2.0","id":{},"result":1}')
            assert isinstance(await incoming.receive(), ValueError)
            async with ClientSession(incoming, outgoing) as session:
                await session.initialize()
                assert [tool.name for tool in (await session.list_tools()).tools] == ["a__t"]


async def call(client: mcp.Client | fastmcp.Client[CompositorTransport]) -> None:
    async with client:
        await client.call_tool("a__t", {})


async def test_a_client_that_ends_in_the_middle_of_a_call_is_gone() -> None:
    called = asyncio.Event()

    async def never() -> str:
        called.set()
        await asyncio.get_running_loop().create_future()
        return ""

    server = FakeServer("a", tools={"t": never})
    async with serving(a=server) as made:
        for client in (mcp.Client(made.transport()), fastmcp.Client(made.fastmcp_transport())):
            called.clear()
            calling = asyncio.get_running_loop().create_task(call(client))
            await called.wait()
            calling.cancel()
            await asyncio.wait([calling])
            assert calling.cancelled()
        assert len(server.told("notifications/cancelled")) == 2


async def test_a_client_that_does_not_read_gets_no_more_notifications() -> None:
    async with serving(a=FakeServer("a")) as made, made.transport() as (incoming, _):
        [connection] = made._connections
        big = {"data": Raw(b'"%b"' % (b"x" * 3_000_000))}
        for _ in range(4):
            connection.notify("notifications/message", big)
        assert connection.dropped == 2
        await incoming.receive()
        await incoming.receive()
        assert incoming.backlog() == 0


async def test_a_transport_is_for_one_client() -> None:
    async with serving(a=FakeServer("a")) as made:
        transport = made.transport()
        async with mcp.Client(transport):
            with pytest.raises(LocalProtocolError, match="a transport is for one client"):
                await transport.__aenter__()


async def test_where_the_package_is_missing_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(a=FakeServer("a")) as made:
        for module in ("sdk", "sdk_fastmcp"):
            monkeypatch.delitem(sys.modules, f"plait.downstream.{module}", raising=False)
        monkeypatch.setitem(sys.modules, "mcp.shared.message", None)
        monkeypatch.setitem(sys.modules, "fastmcp.client.transports.base", None)
        with pytest.raises(MissingPackage, match=r"needs the package mcp, .*: pip install 'plait\[mcp\]'"):
            await made.transport().__aenter__()
        with pytest.raises(ImportError, match=r"pip install 'plait\[fastmcp\]'"):
            made.fastmcp_transport()
