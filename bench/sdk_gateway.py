"""A gateway in 25 lines on the official SDK: it lists and forwards the tools of a `mcpServers` file."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from mcp import Client, StdioServerParameters, stdio_server
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, Tool

Context = ServerRequestContext[dict[str, object]]


async def main(servers: dict[str, dict[str, object]]) -> None:
    """Connect every server once, then serve their tools as `prefix__name` until our input ends."""
    clients: dict[str, Client] = {}

    async def list_tools(_: Context, page: PaginatedRequestParams | None) -> ListToolsResult:
        tools: list[Tool] = []
        for prefix, client in clients.items():
            own = (await client.list_tools()).tools
            tools += [tool.model_copy(update={"name": f"{prefix}__{tool.name}"}) for tool in own]
        return ListToolsResult(tools=tools)

    async def call_tool(_: Context, params: CallToolRequestParams) -> CallToolResult:
        prefix, name = params.name.split("__", 1)
        return await clients[prefix].session.call_tool(name, params.arguments)

    async with AsyncExitStack() as stack:
        for prefix, entry in servers.items():
            client = Client(StdioServerParameters.model_validate(entry), mode="legacy")
            clients[prefix] = await stack.enter_async_context(client)
        gateway = Server[dict[str, object]]("gateway", on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (reading, writing):
            await gateway.run(reading, writing, gateway.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())["mcpServers"]))
