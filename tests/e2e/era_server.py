"""A server on the official SDK, which speaks both eras: a tool, a resource, a prompt, a completion."""

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import (
    Completion,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)

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


if __name__ == "__main__":
    server.run("stdio")
