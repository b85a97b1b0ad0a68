"""Keeps one mount alive: start, and start again with backoff when it ends."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from plait.errors import PlaitError
from plait.mounts.mount import Mount, MountState
from plait.upstream.opening import Behalf

FIRST_DELAY = 0.25
LONGEST_DELAY = 30.0
BREAKER = 5
"""After so many failures in a row a mount is in a crash loop: calls no longer wait for it."""
STABLE = 60.0
"""Seconds after which a server that ends has not failed to start."""


def delay(failures: int) -> float:
    """The longest wait before the next start, doubling from a quarter of a second to half a minute."""
    return min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(failures - 1, 10))


class Supervisor:
    def __init__(
        self,
        mount: Mount,
        behalf: Callable[[], Awaitable[Behalf]],
        restarted: Callable[[Mount], Awaitable[None]],
    ) -> None:
        self._mount = mount
        self._behalf = behalf
        self._restarted = restarted
        self._failures = 0

    async def run(self) -> None:
        """Until cancelled."""
        starts = 0
        while True:
            reason = await self._live(again=starts > 0)
            starts += 1
            await self._back_off(reason)

    async def _live(self, *, again: bool) -> str:
        """One life, from start to end; why it ended."""
        loop = asyncio.get_running_loop()
        try:
            await self._mount.start(self._behalf())
        except PlaitError as problem:
            self._failures += 1
            return str(problem)
        born = loop.time()
        if again:
            await self._restarted(self._mount)
        reason = await self._mount.run_out()
        lasted = self._mount.served > 0 or loop.time() - born > STABLE
        self._failures = 1 if lasted else self._failures + 1
        return reason

    async def _back_off(self, reason: str) -> None:
        """Full jitter: servers that fell together do not get up together."""
        wait = random.uniform(0, delay(self._failures))
        looping = self._failures >= BREAKER
        self._mount.retry_in = wait if looping else None
        if looping:
            reason = f"stopped {self._failures} times in a row: {reason}"
        self._mount.become(MountState.FAILED, reason)
        await asyncio.sleep(wait)
        self._mount.become(MountState.PENDING, f"starting again; before: {reason}")
