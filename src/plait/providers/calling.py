"""Call a tool of a provider, of whichever kind the provider is: there is one way."""

from typing import Protocol, TypeAlias, runtime_checkable

from plait.providers.context import ToolContext
from plait.providers.provider import ToolProvider
from plait.providers.streaming import StreamingToolProvider, stream
from plait.wire.tools import CallToolResult

Provider: TypeAlias = ToolProvider | StreamingToolProvider


@runtime_checkable
class Contextual(Protocol):
    """A provider whose tools may report progress, and log."""

    async def call_with(
        self, name: str, arguments: dict[str, object], context: ToolContext
    ) -> CallToolResult: ...


@runtime_checkable
class Talking(Protocol):
    """A provider that says whether its tools may send log messages."""

    @property
    def logs(self) -> bool: ...


async def call(
    provider: Provider, name: str, arguments: dict[str, object], context: ToolContext
) -> CallToolResult:
    """With the context, where the provider takes one; buffered, where it streams."""
    if isinstance(provider, Contextual):
        return await provider.call_with(name, arguments, context)
    if isinstance(provider, StreamingToolProvider):
        return await stream(provider, name, arguments, context)
    return await provider.call_tool(name, arguments)


def may_log(provider: Provider) -> bool:
    """ "Servers that emit log message notifications MUST declare the `logging` capability" (2025-11-25,
    server/utilities/logging)."""
    if isinstance(provider, StreamingToolProvider):
        return True
    # `is True`: a class of somebody's own may have something else of that name.
    return isinstance(provider, Talking) and provider.logs is True
