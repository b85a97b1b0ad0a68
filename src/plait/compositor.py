"""Compositor: what is mounted, what guards it, who is connected. CREATED → ACTIVE → CLOSED."""

import asyncio
import contextlib
import enum
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Self

from msgspec import Raw

from plait import leaks
from plait.config.model import Config, ServerSettings, Settings
from plait.downstream.connection import Connection, Writer
from plait.downstream.extras import needing
from plait.downstream.memory import MemoryTransport
from plait.errors import LifecycleError
from plait.furnish import furnish
from plait.mounts.changes import Changes
from plait.mounts.events import MountListener
from plait.mounts.mount import Mount
from plait.mounts.registry import Registry
from plait.mounts.state import MountEvent
from plait.openers import Openers, name_of, settings_of
from plait.outfit import Outfit, outfit
from plait.pipeline.compose import Layer, arrange, compose, visibility
from plait.pipeline.middleware import Middleware, as_layer
from plait.providers.calling import Provider
from plait.providers.pinned.sight import discreet
from plait.routing.naming import MountPrefix, Naming
from plait.routing.pages import Pager
from plait.routing.resolver import resolving
from plait.routing.rounds import Rounds
from plait.routing.router import Router
from plait.routing.welcome import server_info, welcome
from plait.session.exchange import Caller, Handler
from plait.tasks import to_the_end
from plait.upstream.base import Link
from plait.upstream.process import Guardian
from plait.wire.address import as_raw
from plait.wire.envelope import Fields

if TYPE_CHECKING:
    from plait.downstream.sdk_fastmcp import CompositorTransport


class CompositorState(enum.Enum):
    CREATED = "created"
    ACTIVE = "active"
    CLOSED = "closed"


class Compositor:
    """Everything behind one endpoint. Entered once; leaving it closes every mount and connection.

    Given a Config it is what `plait mcp-server` runs: its servers, started in the background, and its
    guards. Without one it begins empty, with the layers in `middleware`.
    """

    def __init__(
        self,
        config: Config | Settings | None = None,
        middleware: Sequence[Layer | Middleware] = (),
        *,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.config = config if isinstance(config, Config) else None
        self.settings = config if isinstance(config, Settings) else config.settings if config else Settings()
        self.naming = Naming(self.settings.separator, self.settings.name_budget)
        self.state = CompositorState.CREATED
        self.registry = Registry(self.naming, self.settings.start_wait)
        self.guardian = Guardian()
        self.outfit: Outfit | None = None
        self.complaints: list[str] = []
        """What was wrong with the configuration; everything else is served all the same."""
        self.environ = os.environ if environ is None else environ
        self._openers = Openers(self.settings, self.environ, self.guardian)
        self._layers = [as_layer(each) for each in middleware]
        self._pager = Pager(self.settings.page_size)
        self._rounds = Rounds()
        self.stack = contextlib.AsyncExitStack()
        self._connections: set[Connection] = set()
        self._closing = self._leaving = False

    def __repr__(self) -> str:
        return f"<Compositor {self.settings.name}: {self.state.value}>"

    # ---- its life

    async def __aenter__(self) -> Self:
        if self.state is CompositorState.ACTIVE:
            raise LifecycleError("this compositor is already in an active context manager")
        if self.state is CompositorState.CLOSED:
            raise LifecycleError("this compositor is already closed; make a new one")
        self.state = CompositorState.ACTIVE
        try:
            layers = self._layers if self.config is None else [*self._layers, *self._dress(self.config)]
            # After the audit, so before it when they are closed: what ends with a server is recorded too.
            self.stack.push_async_callback(self.guardian.aclose)
            self.stack.push_async_callback(self._close_mounts)
            self.guard_with(layers)
            self.complaints = await furnish(self)
        except BaseException:
            await to_the_end(self._shut_down())
            raise
        return self

    def _dress(self, config: Config) -> list[Layer]:
        made, registry = outfit(config, self.environ), self.registry
        self.outfit = made
        made.secrets.routes = lambda: registry.catalog.tools.routes  # not by `self`: nothing keeps us alive
        self.stack.callback(made.store.close)
        if made.audit is not None:
            self.stack.push_async_callback(made.audit.aclose)
        return made.layers

    def guard_with(self, layers: Sequence[Layer]) -> None:
        """These are the layers that requests cross from now on; those on their way cross the old ones."""
        arranged = arrange(layers)
        router = Router(
            self.registry,
            self.naming,
            self._pager,
            self.registry.subscriptions,
            discreet(visibility(arranged), self.registry),
            self._rounds,
        )
        self.resolver = router.resolver
        self.handler: Handler = resolving(self.resolver, compose(arranged, router))
        for connection in self._connections:
            connection.handler = self.handler

    def adopt(self, config: Config, guards: list[Layer]) -> None:
        """Its settings and guards count from now on; the record of calls, and your own layers, stay."""
        assert self.outfit is not None, "a configuration follows one"
        self.config, self.settings = config, config.settings
        self._openers = Openers(self.settings, self.environ, self.guardian)
        self.outfit.guards = guards
        self.guard_with([*self._layers, *self.outfit.layers])

    async def __aexit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        """Every mount is closed on every path, also if we are cancelled meanwhile. What the body raised
        goes on; what closing raised is raised only if the body raised nothing."""
        problems = await to_the_end(self._shut_down())
        if problems and problem is None:
            raise ExceptionGroup("closing the compositor failed", problems)

    async def _shut_down(self) -> list[Exception]:
        self._closing = self._leaving = True
        self._problems: list[Exception] = []
        self.stack.push_async_callback(self._close_connections)  # before everything else
        try:
            await self.stack.aclose()
        except Exception as problem:  # told with the others
            self._problems.append(problem)
        finally:
            self.state = CompositorState.CLOSED
        return self._problems

    async def _close_connections(self) -> None:
        loop = asyncio.get_running_loop()
        closing = [loop.create_task(connection.aclose()) for connection in self._connections]
        if closing:
            await asyncio.wait(closing)
            problems = [task.exception() for task in closing]
            self._problems += [problem for problem in problems if isinstance(problem, Exception)]

    async def _close_mounts(self) -> None:
        self._problems += await self.registry.aclose()

    async def close(self) -> None:
        """Unmount everything but what is part of plait itself; nothing can be mounted any more."""
        self._check_open()
        self._closing = True
        problems = await to_the_end(self.registry.close_all(pinned=False))
        if problems:
            raise ExceptionGroup("closing the compositor failed", problems)

    def _check_open(self) -> None:
        if self.state is CompositorState.CREATED:
            raise LifecycleError("this compositor is not open yet: use it in an `async with` block")
        if self._closing or self.state is CompositorState.CLOSED:
            raise LifecycleError("this compositor is closed")

    def __del__(self) -> None:
        registry = getattr(self, "registry", None)
        if registry is not None:
            leaks.warn(self.state.value, [str(mount.prefix) for mount in registry.mounts if not mount.pinned])

    # ---- servers

    async def mount(
        self,
        prefix: MountPrefix | None,
        server: object,
        *,
        name: str = "",
        settings: ServerSettings | None = None,
        pinned: bool = False,
        resources: Sequence[contextlib.AbstractAsyncContextManager[object]] = (),
        wait: bool = True,
    ) -> Mount:
        """Mount a StdioServer, an HttpServer, a ToolProvider, or a server object of fastmcp or mcp.

        Without a prefix its names are exposed as they are. It is up when this returns; if it cannot be
        started nothing stays mounted, and the problem is raised. With `wait=False` it starts in the
        background, again and again if need be. `resources` are entered first, and left when it is
        unmounted: a container, a temporary directory.
        """
        self._check_open()
        prefix = MountPrefix(prefix) if prefix else MountPrefix.none()  # a raw string is checked too
        settings = settings or settings_of(server)
        name = name or name_of(server, prefix)
        opener = self._openers.of(server, name, settings)
        mount = await self.registry.reserve(prefix, name, opener, settings, pinned=pinned)
        mount.server = server
        try:
            await mount.own(resources)
            self.registry.begin(mount, alone=wait)
            if wait:
                await mount.up()
        except BaseException as problem:
            await to_the_end(self._undo(mount))
            raise problem
        self.registry.events.tell(prefix, MountEvent.MOUNTED)
        return mount

    async def _undo(self, mount: Mount) -> None:
        """A mount that failed leaves nothing open; what goes wrong meanwhile is in the log."""
        with contextlib.suppress(Exception):
            await self.registry.unmount(mount, told=False)

    async def mount_provider(self, provider: Provider) -> Mount:
        """Mounted under its own namespace; one that has none makes its names itself."""
        prefix = MountPrefix(provider.namespace) if provider.namespace else None
        return await self.mount(prefix, provider)

    async def unmount(self, prefix: MountPrefix | Mount, *, drain: float = 0.0) -> None:
        """Nobody sees it from now on. Calls that run have `drain` seconds to finish; what still runs
        then is answered with an error, and everything that belongs to the mount is closed."""
        self._check_open()
        mount = prefix if isinstance(prefix, Mount) else self.registry.find(prefix)
        if mount.pinned:
            raise LifecycleError(f"Cannot unmount pinned server '{mount.prefix}': it is part of plait")
        await self.registry.unmount(mount, drain=drain)

    mount_server = mount
    unmount_server = unmount

    async def mount_servers_from_config(
        self, config: Config, on_error: Literal["raise", "collect"] = "raise"
    ) -> dict[str, Exception | None]:
        """Mount all servers of a configuration at once; what became of each, by name.

        With "raise" either all of them are mounted or, after the first problem, none.
        """
        from plait.several import mount_several  # noqa: PLC0415  most programs mount one by one

        return await mount_several(self, config.servers, everything=on_error == "raise")

    def tool_name(self, prefix: MountPrefix, tool: str) -> str:
        """What clients of this compositor call a mounted tool."""
        return self.naming.expose(prefix, tool)

    def get_child_client(self, prefix: MountPrefix) -> Link:
        """The open session with a mounted server, behind all guards."""
        return self.registry.find(prefix).child_client

    def add_mount_listener(self, listener: MountListener) -> Callable[[], None]:
        """Tell it, a function or a coroutine function, of every mount event; call the result to stop."""
        return self.registry.events.listen(listener)

    # ---- clients

    def connect(self, writer: Writer, identity: str = "anonymous") -> Connection:
        """A client has come: feed the connection what it says; `disconnect` when it is gone."""
        if self.state is not CompositorState.ACTIVE or self._leaving:
            state = "closed" if self._leaving else self.state.value
            raise LifecycleError(f"nobody can connect to a compositor that is {state}")
        connection = Connection(
            self.handler,
            self._welcome,
            writer,
            joined=self._joined,
            visited=self._visited,
            server=as_raw(server_info(self.settings.name)),
            told=self._told,
            limit=self.settings.max_message_bytes,
            identity=identity,
        )
        self._connections.add(connection)
        return connection

    async def disconnect(self, connection: Connection) -> None:
        self._connections.discard(connection)
        try:
            await to_the_end(connection.aclose())
        finally:
            self.registry.leave(connection)

    @property
    def changes(self) -> Changes:
        """What servers say has changed; `Client.notifications` listens to it."""
        return self.registry.changes

    def transport(self) -> MemoryTransport:
        """For one client in this process: `McpSession.connect(compositor.transport())`, `mcp.Client(…)`."""
        return MemoryTransport(self.connect, self.disconnect)

    def fastmcp_transport(self) -> "CompositorTransport":
        """For clients of FastMCP's in this process: `fastmcp.Client(compositor.fastmcp_transport())`."""
        with needing("fastmcp"):
            from plait.downstream.sdk_fastmcp import CompositorTransport  # noqa: PLC0415  an extra
        return CompositorTransport(self.transport)

    def _welcome(self, revision: str) -> Raw:
        return welcome(self.settings.name, revision, self.registry.mounts, self.naming)

    def _joined(self, connection: Connection) -> None:
        self.registry.join(connection)

    def _visited(self, caller: Caller) -> None:
        """A client without a handshake: it hears of changes on its own streams, and joins no audience."""
        self.registry.view(caller)

    def _told(self, connection: Connection, method: str, params: Fields) -> None:
        """What a client tells us concerns servers only if its roots changed."""
        if method == "notifications/roots/list_changed" and "roots" in connection.capabilities:
            for instance in self.registry.view(connection).instances:
                instance.notify(method, params or None)
