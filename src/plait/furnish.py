"""What a compositor has mounted from the start: the parts of plait itself, and a configuration's servers."""

from __future__ import annotations

import contextlib
import logging
import weakref
from typing import TYPE_CHECKING

from plait.config.model import HttpServer, Server, ServerSettings, Settings
from plait.constants import (
    COMPOSITOR_ADMIN_MOUNT_PREFIX,
    COMPOSITOR_META_MOUNT_PREFIX,
    DELEGATE_MOUNT_PREFIX,
    RESOURCES_MOUNT_PREFIX,
)
from plait.errors import AlreadyMounted, LifecycleError, Unmountable
from plait.openers import prefix_of
from plait.pipeline.configured import url_policy
from plait.providers.pinned.meta import CompositorMetaServer
from plait.providers.pinned.sight import Sight
from plait.providers.results import PREFIX, ResultsOpener
from plait.routing.naming import InvalidPrefix, MountPrefix
from plait.routing.resolver import Resolver
from plait.session.exchange import Caller, Exchange, Reply
from plait.upstream.opening import Opener

if TYPE_CHECKING:
    from plait.compositor import Compositor

_log = logging.getLogger("plait")

UNHURRIED = 100_000
"""Calls of one part at once: they wait for servers, and for each other, and must not for a place."""


async def furnish(compositor: Compositor) -> list[str]:
    """What is wrong with the configuration; everything else is served all the same."""
    await _mount_pinned(compositor, compositor.settings)
    config = compositor.config
    if config is None:
        return []
    if config.settings.builtin:
        await mount_builtin(compositor)
    complaints = [problem.render() for problem in config.problems]
    for server in config.servers:
        try:
            await mount_configured(compositor, server)
        except (AlreadyMounted, InvalidPrefix, Unmountable) as problem:
            complaints.append(complaint(server, problem))
    for each in complaints:
        _log.warning("%s", each)
    return complaints


def complaint(server: Server, problem: Exception) -> str:
    return f"error: {server.where or server.name}: {problem}"


async def mount_configured(compositor: Compositor, server: Server, opener: Opener | None = None) -> None:
    """In the background: what cannot be started now is tried again. `opener`: if it is made already."""
    prefix = prefix_of(server)
    if server.settings.prefix is None and prefix != server.name:
        _log.warning("server %r is mounted as %r", server.name, str(prefix))
    mount = await compositor.mount(
        prefix or None, opener or server, name=server.name, settings=server.settings, wait=False
    )
    mount.server = server


async def mount_builtin(compositor: Compositor) -> None:
    """What is opened for them is closed with their mount."""
    from plait.providers.tools.builtin import builtin_tools  # noqa: PLC0415  most files do without them

    tools = builtin_tools(compositor.settings, compositor.environ, compositor.guardian)
    async with contextlib.AsyncExitStack() as stack:
        provider = await stack.enter_async_context(tools)
        mount = await compositor.mount(MountPrefix(provider.namespace), provider, wait=False)
        await mount.own([stack.pop_all()])


async def _mount_pinned(compositor: Compositor, settings: Settings) -> None:
    if compositor.outfit is not None:
        results = ResultsOpener(compositor.outfit.store, tool=settings.results.tool)
        await _pin(compositor, MountPrefix(PREFIX), results, "results")
    doors = _Doors(compositor)
    sight = Sight(compositor.registry, doors.resolver)
    if settings.resource_tools is not False:
        from plait.providers.pinned.resources import ResourcesServer  # noqa: PLC0415  the commands have none

        await _pin(compositor, RESOURCES_MOUNT_PREFIX, ResourcesServer(sight, doors.dispatch), "resources")
    if settings.meta_resources:
        await _pin(compositor, COMPOSITOR_META_MOUNT_PREFIX, CompositorMetaServer(sight), "compositor_meta")
    if settings.admin_tools:
        from plait.providers.pinned.admin import CompositorAdminServer  # noqa: PLC0415  rarely asked for

        admin = CompositorAdminServer(doors.attach, doors.detach, sight.servers, settings.operators)
        await _pin(compositor, COMPOSITOR_ADMIN_MOUNT_PREFIX, admin, "compositor_admin")
    if settings.delegation.enabled:
        await _mount_delegation(compositor, doors)


async def _mount_delegation(compositor: Compositor, doors: _Doors) -> None:
    from plait.delegation.targets import Surroundings, tell_missing  # noqa: PLC0415  rarely asked for
    from plait.delegation.tool import DelegateTaskTool  # noqa: PLC0415

    config, environ = compositor.settings.delegation, compositor.environ
    servers = (
        {each.name: prefix_of(each) for each in compositor.config.servers} if compositor.config else None
    )
    if servers is not None:
        tell_missing(config, environ, servers)
    flow = str((servers or {}).get(config.claude_flow_server, config.claude_flow_server))
    around = Surroundings(environ, doors.dispatch, doors.resolver, doors.settled, flow)
    await _pin(compositor, DELEGATE_MOUNT_PREFIX, DelegateTaskTool(config, around), "delegate")


async def _pin(compositor: Compositor, prefix: MountPrefix, opener: object, name: str) -> None:
    settings = ServerSettings(share="all", concurrency=UNHURRIED)
    await compositor.mount(prefix, opener, name=name, settings=settings, pinned=True, wait=False)


class _Doors:
    """The compositor as its own parts reach it. They do not keep it: whoever forgets to close it is told."""

    def __init__(self, compositor: Compositor) -> None:
        self._compositor = weakref.ref(compositor)

    def _whole(self) -> Compositor:
        compositor = self._compositor()
        if compositor is None:
            raise LifecycleError("this compositor is gone")
        return compositor

    def resolver(self) -> Resolver:
        return self._whole().resolver

    async def settled(self, caller: Caller) -> None:
        await self._whole().registry.view(caller).settled()

    async def dispatch(self, exchange: Exchange) -> Reply:
        return await self._whole().handler(exchange)

    async def attach(self, prefix: MountPrefix, server: object) -> None:
        """A URL that a client gives is judged like any other; one in a file is its owner's own choice."""
        compositor = self._whole()
        if isinstance(server, HttpServer):
            from plait.upstream.opening_http import HttpOpener  # noqa: PLC0415  brings the URL parser along

            server = HttpOpener(server, compositor.environ, url_policy(compositor.settings))
        await compositor.mount(prefix, server, settings=compositor.settings.limits)

    async def detach(self, prefix: str) -> None:
        compositor = self._whole()
        await compositor.unmount(compositor.registry.find(prefix))
