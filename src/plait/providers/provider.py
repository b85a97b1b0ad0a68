"""The small interface for people who write tools."""

from typing import Protocol

from plait.wire.tools import CallToolResult, ToolDefinition


class ToolProvider(Protocol):
    """A source of tools in this process. Mounted, it is a server like any other."""

    @property
    def namespace(self) -> str:
        """The prefix it is mounted under."""

    async def list_tools(self) -> list[ToolDefinition]: ...

    async def call_tool(self, name: str, arguments: dict[str, object]) -> CallToolResult:
        """Raises NotFound for a tool it does not have, and ToolError for one that failed."""
