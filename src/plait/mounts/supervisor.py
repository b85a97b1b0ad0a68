"""Keeps one instance alive: start, let it rest, and start again with backoff when it ends."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from plait.errors import NeedsAuth, PlaitError, UpstreamUnavailable
from plait.mounts.instance import Instance
from plait.mounts.state import MountState

_log = logging.getLogger("plait")

FIRST_DELAY = 0.25
LONGEST_DELAY = 30.0
BREAKER = 5
"""After so many failures in a row a server is in a crash loop: calls no longer wait for it."""
STABLE = 60.0
"""Seconds after which a server that ends has not failed to start."""
SIGN_IN = 60.0
"""Seconds before a server that wants sign-in is asked again, and then only if somebody wants to use it."""
UNUSED = "asleep; started when it is first used"
IDLE = "asleep; nobody used it for a while, and the next call starts it"


def delay(failures: int) -> float:
    """The longest wait before the next start, doubling from a quarter of a second to half a minute."""
    return min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(failures - 1, 10))


class Supervisor:
    def __init__(self, instance: Instance, restarted: Callable[[Instance], Awaitable[None]]) -> None:
        self._instance = instance
        self._standing = instance.standing
        self._restarted = restarted
        self._failures = 0

    async def run(self) -> None:
        """Until cancelled."""
        instance = self._instance
        again = False
        if instance.settings.start == "lazy" and await instance.recall():
            await instance.rest(UNUSED)
        while True:
            await self._live(again=again)
            again = True

    async def _live(self, *, again: bool) -> None:
        """One life, from start to end, and the pause after it."""
        loop = asyncio.get_running_loop()
        try:
            await self._instance.start()
        except NeedsAuth as problem:
            self._instance.problem = problem
            await self._await_sign_in(str(problem))
            return
        except PlaitError as problem:
            await self._failed_to_start(problem)
            return
        except Exception as problem:  # of an opener that is somebody else's: the server is not there
            _log.exception("opening '%s' failed", self._instance.name)
            what = f"{type(problem).__name__}: {problem}"
            await self._failed_to_start(
                UpstreamUnavailable(f"opening server '{self._instance.name}' failed: {what}")
            )
            return
        born = loop.time()
        if again:
            await self._restarted(self._instance)
        reason = await self._instance.run_out()
        if reason is None:
            await self._instance.rest(IDLE)
            return
        lasted = self._instance.served > 0 or loop.time() - born > STABLE
        self._failures = 1 if lasted else self._failures + 1
        await self._back_off(reason)

    async def _failed_to_start(self, problem: PlaitError) -> None:
        self._instance.problem = problem
        self._failures += 1
        await self._back_off(str(problem))

    async def _back_off(self, reason: str) -> None:
        """Full jitter: servers that fell together do not get up together."""
        wait = random.uniform(0, delay(self._failures))
        looping = self._failures >= BREAKER
        self._standing.retry_in = wait if looping else None
        if looping:
            reason = f"stopped {self._failures} times in a row: {reason}"
        self._standing.become(MountState.FAILED, reason)
        await asyncio.sleep(wait)
        self._standing.become(MountState.PENDING, f"starting again; before: {reason}")

    async def _await_sign_in(self, reason: str) -> None:
        """Asking again does not sign anybody in: only somebody who wants to use it is worth a try."""
        self._standing.retry_in = SIGN_IN
        self._standing.become(MountState.FAILED, f"needs auth: {reason}")
        await asyncio.sleep(SIGN_IN)
        self._standing.retry_in = None
        await self._instance.wanted()
        self._standing.become(MountState.PENDING, f"trying again; before: {reason}")
