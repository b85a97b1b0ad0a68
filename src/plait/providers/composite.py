"""Many providers behind one object, in the order in which they were registered."""

from collections.abc import Callable

from plait.errors import NotFound
from plait.providers.adapter import Contextual
from plait.providers.function import ToolContext
from plait.providers.provider import ToolProvider
from plait.wire.tools import CallToolResult, ToolDefinition

SEPARATOR = "__"


class CompositeToolProvider:
    """Names are `{namespace}__{tool}`; a bare name goes to the first provider that lists it."""

    namespace = ""

    def __init__(self) -> None:
        self._providers: dict[str, ToolProvider] = {}
        self._listeners: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"<CompositeToolProvider {', '.join(self._providers) or 'empty'}>"

    def register(self, provider: ToolProvider) -> None:
        """Put a provider behind us; one of the same namespace is replaced, and keeps its place."""
        self._providers[provider.namespace] = provider
        self._tell()

    def unregister(self, namespace: str) -> None:
        if self._providers.pop(namespace, None) is None:
            raise NotFound(f"namespace '{namespace}'")
        self._tell()

    def provider_count(self) -> int:
        return len(self._providers)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Called whenever a provider comes or goes: whoever serves us tells its clients."""
        self._listeners.append(listener)

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    async def list_tools_all(self) -> list[ToolDefinition]:
        """Every provider's tools, in order; only the name changes."""
        return [
            ToolDefinition(
                f"{namespace}{SEPARATOR}{tool.name}", tool.description, tool.input_schema, tool.more
            )
            for namespace, provider in self._providers.items()
            for tool in await provider.list_tools()
        ]

    async def list_tools(self) -> list[ToolDefinition]:
        return await self.list_tools_all()

    async def call_tool(self, name: str, arguments: dict[str, object]) -> CallToolResult:
        return await self.call_with(name, arguments, ToolContext())

    async def call_with(
        self, name: str, arguments: dict[str, object], context: ToolContext
    ) -> CallToolResult:
        namespace, found, tool = name.partition(SEPARATOR)
        if not found:
            return await self._call_bare(name, arguments, context)
        provider = self._providers.get(namespace)
        if provider is None:
            raise NotFound(f"unknown namespace '{namespace}'")
        return await _call(provider, tool, arguments, context)

    async def _call_bare(
        self, name: str, arguments: dict[str, object], context: ToolContext
    ) -> CallToolResult:
        """The first that lists it. NotFound goes on to the next, any other error stops (S0-09)."""
        for provider in tuple(self._providers.values()):
            if any(tool.name == name for tool in await provider.list_tools()):
                try:
                    return await _call(provider, name, arguments, context)
                except NotFound:
                    continue
        raise NotFound(name)


async def _call(
    provider: ToolProvider, name: str, arguments: dict[str, object], context: ToolContext
) -> CallToolResult:
    """With the context, where the provider takes one."""
    if isinstance(provider, Contextual):
        return await provider.call_with(name, arguments, context)
    return await provider.call_tool(name, arguments)
