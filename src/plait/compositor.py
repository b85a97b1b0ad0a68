"""Compositor: what is mounted, what guards it, who is connected. CREATED → ACTIVE → CLOSED."""

import enum
from collections.abc import Sequence
from typing import Self

from msgspec import Raw

from plait.config.model import ServerSettings, Settings
from plait.downstream.connection import Connection, Writer
from plait.downstream.memory import MemoryTransport
from plait.errors import LocalProtocolError
from plait.mounts.mount import Mount
from plait.mounts.registry import Registry
from plait.pipeline.compose import Hiding, Layer, arrange, compose
from plait.pipeline.middleware import Middleware, as_layer
from plait.providers.adapter import ProviderOpener
from plait.providers.provider import ToolProvider
from plait.routing.naming import MountPrefix, Naming
from plait.routing.pages import Pager
from plait.routing.resolver import Sees, resolving
from plait.routing.router import Router
from plait.routing.welcome import welcome
from plait.session.exchange import Handler
from plait.upstream.opening import Opener
from plait.upstream.process import Guardian
from plait.wire.envelope import Fields


def _sees(layers: Sequence[Layer]) -> Sees | None:
    """What all guards that hide things let a caller see; None if there is no such guard."""
    guards: list[object] = list(layers)
    hiding = [
        guard.visible for guard in guards if isinstance(guard, Hiding) and getattr(guard, "hides", True)
    ]
    if not hiding:
        return None
    return lambda caller, subject: all(visible(caller, subject) for visible in hiding)


class CompositorState(enum.Enum):
    CREATED = "created"
    ACTIVE = "active"
    CLOSED = "closed"


class Compositor:
    """Everything behind one endpoint. Entered once; leaving it closes every mount and connection."""

    def __init__(
        self, settings: Settings | None = None, middleware: Sequence[Layer | Middleware] = ()
    ) -> None:
        self.settings = settings or Settings()
        self.naming = Naming(self.settings.separator, self.settings.name_budget)
        self.state = CompositorState.CREATED
        self.guardian = Guardian()
        self._layers = [as_layer(each) for each in middleware]

    def __repr__(self) -> str:
        return f"<Compositor {self.settings.name}: {self.state.value}>"

    async def __aenter__(self) -> Self:
        if self.state is not CompositorState.CREATED:
            raise LocalProtocolError(f"a compositor is entered once, and this one is {self.state.value}")
        self.state = CompositorState.ACTIVE
        self.registry = Registry(self.naming, self.settings.start_wait)
        registry = self.registry
        layers = arrange(self._layers)
        router = Router(
            registry,
            self.naming,
            Pager(self.settings.page_size),
            registry.audience,
            registry.subscriptions,
            _sees(layers),
        )
        self.resolver = router.resolver
        self.handler: Handler = resolving(self.resolver, compose(layers, router))
        self._connections: set[Connection] = set()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.state = CompositorState.CLOSED
        for connection in tuple(self._connections):
            await connection.aclose()
        try:
            await self.registry.aclose()
        finally:
            await self.guardian.aclose()

    # ---- servers

    def mount(
        self,
        prefix: MountPrefix,
        opener: Opener,
        name: str,
        settings: ServerSettings,
        *,
        pinned: bool = False,
    ) -> Mount:
        return self.registry.mount(prefix, name, opener, settings, pinned=pinned)

    def mount_provider(self, provider: ToolProvider) -> Mount:
        """Mounted under its own namespace; one that has none makes its names itself."""
        prefix = MountPrefix(provider.namespace) if provider.namespace else MountPrefix.none()
        return self.mount(prefix, ProviderOpener(provider), provider.namespace or "tools", ServerSettings())

    def tool_name(self, prefix: MountPrefix, tool: str) -> str:
        """What clients of this compositor call a mounted tool."""
        return self.naming.expose(prefix, tool)

    # ---- clients

    def connect(self, writer: Writer) -> Connection:
        """A client has come: feed the connection what it says; `disconnect` when it is gone."""
        connection = Connection(
            self.handler,
            self._welcome,
            writer,
            joined=self._joined,
            told=self._told,
            limit=self.settings.max_message_bytes,
        )
        self._connections.add(connection)
        return connection

    async def disconnect(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self.registry.audience.leave(connection)
        await connection.aclose()
        await self.registry.subscriptions.leave(connection)

    def transport(self) -> MemoryTransport:
        """For a client in this process: `McpSession.connect(compositor.transport())`."""
        return MemoryTransport(self.connect, self.disconnect)

    def _welcome(self, revision: str) -> Raw:
        return welcome(self.settings.name, revision, self.registry.mounts, self.naming)

    def _joined(self, connection: Connection) -> None:
        self.registry.audience.join(connection)
        self.registry.greeted(connection.capabilities, connection.revision)

    def _told(self, connection: Connection, method: str, params: Fields) -> None:
        """What a client tells us concerns servers only if its roots changed."""
        if method == "notifications/roots/list_changed" and "roots" in connection.capabilities:
            for mount in self.registry.mounts:
                mount.notify(method, params or None)
