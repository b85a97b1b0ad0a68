"""A server on the official SDK, which speaks both eras: a tool, a resource, a prompt, a completion.

`era_server.py` speaks on stdio; `era_server.py http` on loopback, and prints its port.
"""

import asyncio
import socket
import sys
from pathlib import Path
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import (
    Completion,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from pydantic import Field

server = MCPServer("both", instructions="Speaks both eras.")


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


@server.tool()
async def count(context: Context, to: int) -> str:
    for step in range(1, to + 1):
        await context.report_progress(step, to)
    return f"counted to {to}"


@server.tool()
def fail() -> str:
    raise ValueError("it cannot be done")


@server.tool()
async def numbers(context: Context) -> list[int]:
    """Gives numbers, and has another tool from then on."""
    server.add_tool(lambda: "late", name="late")
    await context.notify_tools_changed()  # to those who listen
    await context.session.send_tool_list_changed()  # to a client that shook hands
    return [1, 2]


@server.tool()
async def who(context: Context) -> str | InputRequiredResult:
    """Asks in the middle of the call, the modern way."""
    answers = context.input_responses
    if not answers:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        question = ElicitRequest(params=ElicitRequestFormParams(message="Who?", requested_schema=schema))
        return InputRequiredResult(input_requests={"q": question}, request_state="as it was")
    answer = answers["q"]
    assert isinstance(answer, ElicitResult)
    return f"{context.request_state}: {answer.content}"


@server.resource("note://one")
def note() -> str:
    return "the first note"


@server.prompt()
def greet(name: str) -> str:
    return f"Say hello to {name}."


@server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
async def complete(ref: object, argument: object, context: object) -> Completion:
    return Completion(values=["anna", "anton"])


@server.tool()
async def linger(mark: str) -> str:
    """Takes longer than anybody waits, and leaves a mark where it is stopped."""
    leave_mark(mark, "began")
    try:
        await asyncio.sleep(600)
    finally:
        leave_mark(mark, "stopped")
    return "late"


def leave_mark(where: str, word: str) -> None:
    Path(where).write_text(word)


@server.tool()
def place(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """Its argument is repeated in a header."""
    return f"in {region}"


def main() -> None:
    if sys.argv[1:] != ["http"]:
        server.run("stdio")
        return
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    app = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    main()
