"""One tool that answers with what it was given: to see that everything in between works."""

from plait.errors import NotFound
from plait.providers.provider import CallToolResult, ToolDefinition

ECHO = ToolDefinition(
    name="echo",
    description="Answers with the text it is given.",
    input_schema={
        "type": "object",
        "properties": {"text": {"type": "string", "description": "What to answer with."}},
        "required": ["text"],
    },
)


class EchoProvider:
    namespace = "builtin"

    async def list_tools(self) -> list[ToolDefinition]:
        return [ECHO]

    async def call_tool(self, name: str, arguments: dict[str, object]) -> CallToolResult:
        if name != ECHO.name:
            raise NotFound(name)
        text = arguments.get("text")
        if not isinstance(text, str):
            return CallToolResult.error("echo needs a string 'text'")
        return CallToolResult.text(text)
