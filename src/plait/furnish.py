"""What a compositor has mounted from the start: the parts of plait itself, and a configuration's servers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from plait.config.model import Server, ServerSettings, Settings
from plait.errors import AlreadyMounted, Unmountable
from plait.openers import prefix_of
from plait.providers.results import PREFIX, ResultsOpener
from plait.routing.naming import InvalidPrefix, MountPrefix

if TYPE_CHECKING:
    from plait.compositor import Compositor

_log = logging.getLogger("plait")


async def furnish(compositor: Compositor) -> list[str]:
    """What is wrong with the configuration; everything else is served all the same."""
    await _mount_pinned(compositor, compositor.settings)
    config = compositor.config
    if config is None:
        return []
    if config.settings.builtin:
        await _mount_builtin(compositor)
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


async def mount_configured(compositor: Compositor, server: Server) -> None:
    """In the background: what cannot be started now is tried again."""
    prefix = prefix_of(server)
    if server.settings.prefix is None and prefix != server.name:
        _log.warning("server %r is mounted as %r", server.name, str(prefix))
    await compositor.mount(prefix or None, server, name=server.name, wait=False)


async def _mount_builtin(compositor: Compositor) -> None:
    from plait.providers.tools.builtin import builtin_tools  # noqa: PLC0415  most files do without them

    tools = builtin_tools(compositor.settings, compositor.environ, compositor.guardian)
    provider = await compositor.stack.enter_async_context(tools)
    await compositor.mount(MountPrefix(provider.namespace), provider, wait=False)


async def _mount_pinned(compositor: Compositor, settings: Settings) -> None:
    if compositor.outfit is not None:
        results = ResultsOpener(compositor.outfit.store, tool=settings.results.tool)
        await _pin(compositor, MountPrefix(PREFIX), results, "results")


async def _pin(compositor: Compositor, prefix: MountPrefix, opener: object, name: str) -> None:
    await compositor.mount(
        prefix, opener, name=name, settings=ServerSettings(share="all"), pinned=True, wait=False
    )
