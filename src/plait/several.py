"""Mount several servers at once: all of them, or as many as will."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from plait.config.model import Server
from plait.openers import prefix_of

if TYPE_CHECKING:
    from plait.compositor import Compositor
    from plait.mounts.mount import Mount


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
        for each in mounted:
            await compositor.unmount(each)
        raise
    return {server.name: outcomes[server.name] for server in servers}


def _raise_first(outcomes: Sequence[Exception | None]) -> None:
    problems = [problem for problem in outcomes if problem is not None]
    if problems:
        first, *others = problems
        for other in others:
            first.add_note(f"another server failed too: {other}")
        raise first
