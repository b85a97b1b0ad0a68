"""FastMCP's proxy over the servers of a `mcpServers` file, served over HTTP: `PORT FILE [kept]`.

As its documentation does it, `create_proxy` with that configuration: a session of its own at the server
for every request. With `kept`, its best mode, every server is connected once, as in `fastmcp_gateway.py`.
"""

import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
from fastmcp import FastMCP
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.server import create_proxy
from fastmcp.server.providers.proxy import StatefulProxyClient

Entry = dict[str, object]


def transport_to(entry: Entry) -> StdioTransport | StreamableHttpTransport:
    """How a server is reached."""
    if "url" in entry:
        return StreamableHttpTransport(str(entry["url"]))
    arguments = entry["args"]
    assert isinstance(arguments, list)
    return StdioTransport(str(entry["command"]), arguments)


async def serve(gateway: FastMCP[None], port: int) -> None:
    """Until somebody says stop."""
    await gateway.run_http_async(
        show_banner=False, transport="http", host="127.0.0.1", port=port, path="/mcp", log_level="error"
    )


async def kept(servers: dict[str, Entry], port: int) -> None:
    """One session with every server, for all requests."""
    gateway = FastMCP[None]("gateway")
    async with AsyncExitStack() as stack:
        for prefix, entry in servers.items():
            transport = transport_to(entry)
            stack.push_async_callback(transport.close)
            client: StatefulProxyClient[StdioTransport | StreamableHttpTransport] = StatefulProxyClient(
                transport, mode="legacy"
            )
            await stack.enter_async_context(client)
            gateway.mount(create_proxy(client), namespace=prefix)
        await serve(gateway, port)


if __name__ == "__main__":
    number, file, *mode = sys.argv[1:]
    configuration = json.loads(Path(file).read_text())
    if mode:
        anyio.run(kept, configuration["mcpServers"], int(number))
    else:
        anyio.run(serve, create_proxy(configuration), int(number))
