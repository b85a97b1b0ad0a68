"""Many providers behind one object, in the order in which they were registered."""

from collections.abc import Callable

from plait.errors import NotFound
from plait.providers.adapter import Changing
from plait.providers.calling import Provider, call, may_log
from plait.providers.context import ToolContext
from plait.wire.tools import CallToolResult, ToolDefinition

SEPARATOR = "__"


class CompositeToolProvider:
    """Names are `{namespace}__{tool}`; a bare name goes to the first provider that lists it.

    With a namespace of its own it can be registered in another one: `a__b__tool`, or `a.b.tool`.
    """

    def __init__(self, namespace: str = "") -> None:
        self.namespace = namespace
        self._providers: dict[str, Provider] = {}
        self._listeners: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"<CompositeToolProvider {', '.join(self._providers) or 'empty'}>"

    @property
    def logs(self) -> bool:
        return any(may_log(provider) for provider in self._providers.values())

    def register(self, provider: Provider) -> None:
        """Put a provider behind us; one of the same namespace is replaced, and keeps its place."""
        self._providers[provider.namespace] = provider
        if isinstance(provider, Changing):
            provider.on_change(self._tell)
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
            # `namespace.method`, split at the first dot (S4-05); a dot may be part of a bare name too.
            namespace, found, tool = name.partition(".")
            if namespace not in self._providers or not found:
                return await self._call_bare(name, arguments, context)
        provider = self._providers.get(namespace)
        if provider is None:
            raise NotFound(f"unknown namespace '{namespace}'")
        return await call(provider, tool, arguments, context)

    async def _call_bare(
        self, name: str, arguments: dict[str, object], context: ToolContext
    ) -> CallToolResult:
        """The first that lists it. NotFound goes on to the next, any other error stops (S0-09)."""
        for provider in tuple(self._providers.values()):
            if any(tool.name == name for tool in await provider.list_tools()):
                try:
                    return await call(provider, name, arguments, context)
                except NotFound:
                    continue
        raise NotFound(name)
