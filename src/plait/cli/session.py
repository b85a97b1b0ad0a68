"""A compositor and a client of it in this process: what the looking commands work with."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from plait.assemble import assembled
from plait.cli.screen import Screen
from plait.compositor import Compositor
from plait.config.model import Config
from plait.mounts.mount import Mount
from plait.pipeline.compose import Layer
from plait.upstream.handshake import McpSession
from plait.wire.spec import Kind


class Looking(Struct):
    """Everything a command may look at."""

    compositor: Compositor
    guards: Sequence[Layer]
    client: McpSession
    complaints: list[str]

    @property
    def mounts(self) -> list[Mount]:
        """What somebody mounted; what is part of plait itself only where it has tools."""
        mounts = self.compositor.registry.mounts
        return [mount for mount in mounts if not mount.pinned or mount.listed(Kind.TOOLS)]


@contextlib.asynccontextmanager
async def looking(config: Config | None, screen: Screen, *, awake: bool = False) -> AsyncIterator[Looking]:
    """Start every server and wait for it, showing which one we wait for. `awake`: also those that are
    known from last time, and would sleep until they are used."""
    if awake and config is not None:
        config = _eager(config)
    async with assembled(config, os.environ) as assembly:
        compositor = assembly.compositor
        # The client's own deadline is out of the way: every server has one.
        async with await McpSession.connect(compositor.transport(), name="plait", timeout=3600) as client:
            await _wait(compositor.registry.mounts, screen)
            yield Looking(compositor, assembly.guards, client, assembly.complaints)


def _eager(config: Config) -> Config:
    servers = [replace(each, settings=replace(each.settings, start="eager")) for each in config.servers]
    return replace(config, servers=tuple(servers))


async def _wait(mounts: list[Mount], screen: Screen) -> None:
    """No longer than the most patient server's own limit: each is then ready, or has failed."""
    waiting = {each.first_outcome: mount for mount in mounts for each in mount.instances}
    while waiting:
        screen.progress(f"starting {', '.join(mount.name for mount in waiting.values())}")
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for outcome in done:
            del waiting[outcome]
    screen.progress("")


def describe(mount: Mount) -> dict[str, object]:
    """A server's state, for people and programs."""
    return {
        "name": mount.name,
        "prefix": str(mount.prefix),
        "state": mount.state.value,
        "reason": mount.reason,
        "ok": mount.usable,
        "dropped": dict(mount.counters),
    }
