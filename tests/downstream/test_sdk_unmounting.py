"""The ecosystem's clients stay connected while servers of every kind are unmounted under them."""

import asyncio

import fastmcp
import mcp
import pytest
from fastmcp import FastMCP
from mcp import types
from mcp.server.lowlevel import Server

from clients import ALONE, PATIENCE
from plait import Compositor, FunctionProvider, MountPrefix


def shout(text: str) -> str:
    return text.upper()


def fast() -> FastMCP[None]:
    server: FastMCP[None] = FastMCP("fast")
    server.tool(shout)
    return server


def lowlevel() -> Server[object]:
    async def list_tools(context: object, params: object) -> types.ListToolsResult:
        schema = {"type": "object", "properties": {}}
        return types.ListToolsResult(tools=[types.Tool(name="shout", input_schema=schema)])

    async def call_tool(context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text="HEY")])

    return Server("lowlevel", on_list_tools=list_tools, on_call_tool=call_tool)


@pytest.mark.requirement("K-11")
async def test_the_official_client_sees_servers_go_and_uses_the_others() -> None:
    changed: asyncio.Queue[object] = asyncio.Queue()

    async def heard(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.put_nowait(message)

    left = ["fast", "low", "own"]
    async with asyncio.timeout(PATIENCE), Compositor(ALONE) as made:
        for prefix, server in zip(left, (fast(), lowlevel(), FunctionProvider("own", [shout])), strict=True):
            await made.mount(MountPrefix(prefix), server)
        async with mcp.Client(made.transport(), mode="legacy", message_handler=heard, cache=None) as client:
            while left:
                assert [tool.name for tool in (await client.list_tools()).tools] == [
                    f"{prefix}__shout" for prefix in left
                ]
                for prefix in left:
                    [block] = (await client.call_tool(f"{prefix}__shout", {"text": "hey"})).content
                    assert isinstance(block, types.TextContent)
                    assert block.text == "HEY"
                gone = left.pop()
                await made.unmount(MountPrefix(gone))
                await changed.get()
                refused = await client.call_tool(f"{gone}__shout", {"text": "hey"})
                assert refused.is_error


@pytest.mark.requirement("K-11")
async def test_fastmcps_client_sees_servers_go_and_come_back() -> None:
    async with asyncio.timeout(PATIENCE), Compositor(ALONE) as made:
        server, prefix = fast(), MountPrefix("fast")
        async with fastmcp.Client(made.fastmcp_transport()) as client:
            for _ in range(3):
                await made.mount(prefix, server)
                assert [tool.name for tool in await client.list_tools()] == ["fast__shout"]
                assert (await client.call_tool("fast__shout", {"text": "hey"})).data == "HEY"
                await made.unmount(prefix)
                assert await client.list_tools() == []
                with pytest.raises(fastmcp.exceptions.ToolError, match="unknown tool"):
                    await client.call_tool("fast__shout", {"text": "hey"})
