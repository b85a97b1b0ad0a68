"""How many calls a server gets at once, and how many may wait for their turn."""

import asyncio
import contextlib
from collections import deque

from plait.errors import UpstreamBusy


class Turnstile:
    """A bulkhead: what one server cannot take piles up here, bounded, and nowhere else."""

    def __init__(self, name: str, places: int, queue: int) -> None:
        self._name = name
        self.places = places
        self._queue = queue
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._emptied: asyncio.Future[None] | None = None
        """Somebody waits for the last one to leave."""
        self.inside = 0
        """How many have a place. Whoever finds one free takes it by counting itself in."""

    async def wait(self) -> None:
        """All places are taken: get one after those who came first. A full queue answers at once."""
        if len(self._waiting) >= self._queue:
            load = f"{self.inside} calls run and {len(self._waiting)} wait"
            raise UpstreamBusy(f"server '{self._name}' is busy: {load}; try again later")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(turn)
            elif turn.done():
                self.leave()  # the place was given to us, and we do not take it
            raise

    def _forget(self, turn: asyncio.Future[None]) -> None:
        """Whoever gave up takes no room in the queue."""
        with contextlib.suppress(ValueError):
            self._waiting.remove(turn)

    async def empty(self) -> None:
        """Wait until nobody is inside. For somebody who lets nobody in any more: newcomers count too."""
        if self.inside:
            self._emptied = self._emptied or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._emptied)

    def leave(self) -> None:
        """Give the place to whoever waits longest, or back."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.inside -= 1
        if self._emptied is not None and not self.inside:
            self._emptied.set_result(None)
            self._emptied = None
