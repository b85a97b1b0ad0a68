"""The servers as they come up: for people on a terminal, and for watchers."""

import asyncio
from collections.abc import Sequence

from plait.cli.screen import Screen
from plait.compositor import Compositor
from plait.downstream.health import ServerHealth
from plait.mounts.mount import Mount
from plait.wire.spec import Kind


def healths(mounts: Sequence[Mount]) -> list[ServerHealth]:
    return [
        ServerHealth(
            mount.name,
            mount.state.value,
            all(each.first_outcome.done() for each in mount.instances),
            mount.reason,
        )
        for mount in mounts
        if not mount.pinned
    ]


async def announce(compositor: Compositor, screen: Screen) -> None:
    """A line for each server when it has started, or failed to, and one when all of them have."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    mounts = [mount for mount in compositor.registry.mounts if not mount.pinned]
    waiting = {each.first_outcome: mount for mount in mounts for each in mount.instances}
    while waiting:
        screen.progress(f"starting {', '.join(mount.name for mount in waiting.values())}")
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        screen.progress("")
        for outcome in done:
            _arrived(waiting.pop(outcome), loop.time() - started, screen)
    count = len(compositor.registry.catalog.tools.routes)
    screen.say(f"{_tools(count)} in all; stop with Ctrl-C")


def _arrived(mount: Mount, seconds: float, screen: Screen) -> None:
    if mount.usable:
        count = len(mount.listed(Kind.TOOLS))
        screen.say(f"  ✓ {mount.name}  {_tools(count)}  {seconds:.1f} s", "good")
    else:
        screen.say(f"  ✗ {mount.name}  {mount.absence}", "bad")


def _tools(count: int) -> str:
    return f"{count} tool{'' if count == 1 else 's'}"
