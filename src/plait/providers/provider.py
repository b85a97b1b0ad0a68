"""The small interface for people who write tools, and the shapes it speaks in."""

from collections.abc import Mapping, Sequence
from typing import Protocol, Self

from msgspec import Struct

EMPTY_SCHEMA: Mapping[str, object] = {"type": "object"}


class ToolDefinition(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One tool as clients see it. On the wire `input_schema` is `inputSchema`."""

    name: str
    description: str = ""
    input_schema: Mapping[str, object] = {}

    def fields(self) -> dict[str, object]:
        """As it is listed. The schema is required on the wire, and its root must be an object's."""
        listed: dict[str, object] = {"name": self.name, "inputSchema": self.input_schema or EMPTY_SCHEMA}
        return listed if not self.description else {**listed, "description": self.description}


class CallToolResult(Struct, frozen=True):
    """What a tool gives back: content blocks, and whether they tell of a failure."""

    content: Sequence[Mapping[str, object]]
    is_error: bool = False

    @classmethod
    def text(cls, text: str) -> Self:
        return cls([{"type": "text", "text": text}])

    @classmethod
    def error(cls, text: str) -> Self:
        return cls([{"type": "text", "text": text}], is_error=True)

    def fields(self) -> dict[str, object]:
        return {"content": self.content, "isError": self.is_error}


class ToolProvider(Protocol):
    """A source of tools in this process."""

    @property
    def namespace(self) -> str: ...
    async def list_tools(self) -> list[ToolDefinition]: ...
    async def call_tool(self, name: str, arguments: dict[str, object]) -> CallToolResult:
        """Raises NotFound for a tool it does not have, and ToolError for one that failed."""
