"""Tools as a list of definitions and one function that runs them all."""

import inspect
from collections.abc import Awaitable, Callable, Sequence

from plait.errors import ExecutionFailed, NotFound
from plait.wire.tools import CallToolResult, ToolDefinition

Dispatch = Callable[[str, dict[str, object]], str | Awaitable[str]]
"""Given a tool's name and arguments, the text of its result. What it raises becomes an error result."""


class BuiltinToolProvider:
    """Knows nothing of how its tools work: the dispatch function does (S2-06)."""

    namespace = "builtin"

    def __init__(self, tools: Sequence[ToolDefinition], dispatch: Dispatch) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._dispatch = dispatch

    def __repr__(self) -> str:
        return f"<BuiltinToolProvider {len(self._tools)} tools>"

    async def list_tools(self) -> list[ToolDefinition]:
        return list(self._tools.values())

    async def call_tool(self, name: str, arguments: dict[str, object]) -> CallToolResult:
        """Whether the tool exists is known before anything runs; whatever fails later is a result."""
        if name not in self._tools:
            raise NotFound(name)
        try:
            answer = self._dispatch(name, arguments)
            return CallToolResult.text(await answer if inspect.isawaitable(answer) else answer)
        except Exception as problem:
            return CallToolResult.error(in_words(problem))


def in_words(problem: Exception) -> str:
    """What a model is told of a tool's failure: the reason, without a stack."""
    if isinstance(problem, ExecutionFailed):
        return problem.reason
    return str(problem) or type(problem).__name__
