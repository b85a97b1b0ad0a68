"""A FastMCP server on loopback: `web_server.py http|json|stateless|sse [PORT]`; prints its port."""

import asyncio
import socket
import sys

import uvicorn
from fastmcp import Context, FastMCP
from mcp.server.mcpserver import MCPServer

notes = FastMCP("notes", instructions="Notes over HTTP.")


@notes.tool
async def add(a: int, b: int, ctx: Context) -> int:
    """Adds."""
    await ctx.report_progress(1, 2)
    await ctx.info("adding")
    return a + b


@notes.tool
async def whose(ctx: Context) -> str:
    """Asks the client for its roots."""
    return ",".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@notes.tool
async def linger() -> str:
    """Takes longer than anybody waits."""
    await asyncio.sleep(600)
    return "late"


@notes.resource("notes://all")
def everything() -> str:
    return "all notes"


calc = MCPServer("calc")


@calc.tool()
def double(x: int) -> int:
    """Doubles."""
    return 2 * x


def main(kind: str, port: int = 0) -> None:
    match kind:
        case "sdk":
            app = calc.streamable_http_app()
        case "sse":
            app = notes.http_app(transport="sse")
        case _:
            app = notes.http_app(json_response=kind == "json", stateless_http=kind == "stateless")
    listening = socket.create_server(("127.0.0.1", port))
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
