"""Mount several servers at once: all of them, or as many as will."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from plait.config.model import Server
from plait.openers import prefix_of
from plait.tasks import to_the_end

if TYPE_CHECKING:
    from plait.compositor import Compositor
    from plait.mounts.mount import Mount

_log = logging.getLogger("plait")


async def mount_several(
    compositor: Compositor, servers: Sequence[Server], *, everything: bool
) -> dict[str, Exception | None]:
    """What became of each, by its name. `everything`: after a problem none of them stays mounted."""
    outcomes: dict[str, Exception | None] = {}
    mounted: list[Mount] = []

    async def mount(server: Server) -> None:
        try:
            mounted.append(await compositor.mount(prefix_of(server), server, name=server.name))
            outcomes[server.name] = None
        except Exception as problem:
            outcomes[server.name] = problem

    try:
        async with asyncio.TaskGroup() as group:
            for server in servers:
                group.create_task(mount(server))
        if everything:
            _raise_first([outcomes[server.name] for server in servers])
    except BaseException:
        await to_the_end(_unmount_all(compositor, mounted))
        raise
    return {server.name: outcomes[server.name] for server in servers}


async def _unmount_all(compositor: Compositor, mounted: Sequence[Mount]) -> None:
    """Each of them, whatever happens to another: the problem that is told is why they are unmounted."""
    for each in mounted:
        try:
            await compositor.registry.unmount(each)
        except Exception:
            _log.exception("unmounting %s failed; the others are unmounted all the same", each)


def _raise_first(outcomes: Sequence[Exception | None]) -> None:
    problems = [problem for problem in outcomes if problem is not None]
    if problems:
        first, *others = problems
        for other in others:
            first.add_note(f"another server failed too: {other}")
        raise first
