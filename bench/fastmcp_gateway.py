"""FastMCP's proxy over the servers of a `mcpServers` file, in the fastest correct form its source allows.

One kept session per server: a `StatefulProxyClient` connects once, in the handshake era, and every call
reuses it, as FastMCP does itself for a file with several servers. Each client is a namespaced
`ProxyProvider` of the one server; `mount(create_proxy(client))` would put a second server around it, at
1.4 times the CPU per call. The loop is uvloop. Names come out as `prefix_name`.
"""

import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
from fastmcp import Client, FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.server.providers.proxy import ProxyProvider, StatefulProxyClient
from mcp import StdioServerParameters


def provider_of(client: Client[StdioTransport]) -> ProxyProvider:
    """All tools of one connected client, always through its one session."""
    return ProxyProvider(lambda: client)


async def main(servers: dict[str, dict[str, object]]) -> None:
    """Connect every server once, then serve their tools until our input ends."""
    gateway = FastMCP[None]("gateway")
    async with AsyncExitStack() as stack:
        for prefix, entry in servers.items():
            server = StdioServerParameters.model_validate(entry)
            transport = StdioTransport(server.command, server.args)
            stack.push_async_callback(transport.close)
            client: StatefulProxyClient[StdioTransport] = StatefulProxyClient(transport, mode="legacy")
            await stack.enter_async_context(client)
            gateway.add_provider(provider_of(client), namespace=prefix)
        await gateway.run_stdio_async(show_banner=False, log_level="ERROR")


if __name__ == "__main__":
    entries = json.loads(Path(sys.argv[1]).read_text())["mcpServers"]
    anyio.run(main, entries, backend_options={"use_uvloop": True})
