"""Where an instance stands: its state, why, when it may change; and whoever waits for that."""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from plait.mounts.state import MountState, check


class Standing:
    """Moves only as the table of states allows, and wakes everybody who waits for a move."""

    def __init__(self, log: logging.Logger, changed: Callable[[], None]) -> None:
        self.state = MountState.PENDING
        self.reason = "starting"
        """Why it is in this state, in words."""
        self._log = log
        self._changed = changed
        self._retry_at: float | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self.first_outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the first start has succeeded or failed, or there is none for the time being."""

    def become(self, state: MountState, reason: str) -> None:
        check(self.state, state)
        self.state = state
        if state is not MountState.PENDING:
            self.settle()
        self.explain(reason, level=logging.WARNING if state is MountState.FAILED else logging.INFO)

    def explain(self, reason: str, *, level: int = logging.INFO) -> None:
        """The reason, in this state. Everybody who waits looks again."""
        self.reason = reason
        self._log.log(level, "%s: %s", self.state.value, reason)
        for turn in self._waiting:
            if not turn.done():
                turn.set_result(None)
        self._waiting.clear()
        self._changed()

    def settle(self) -> None:
        if not self.first_outcome.done():
            self.first_outcome.set_result(None)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def move(self) -> None:
        """Wait for the next change."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        finally:
            with contextlib.suppress(ValueError):  # usually all of them are gone at once
                self._waiting.remove(turn)

    @property
    def retry_in(self) -> float | None:
        """Seconds to the next try, while it crashes again and again: calls are refused at once until then."""
        if self._retry_at is None:
            return None
        return max(0.0, self._retry_at - asyncio.get_running_loop().time())

    @retry_in.setter
    def retry_in(self, seconds: float | None) -> None:
        self._retry_at = None if seconds is None else asyncio.get_running_loop().time() + seconds

    @property
    def absence(self) -> str:
        """Why it is not there, and when that may change."""
        return self.reason if self.retry_in is None else f"{self.reason}; next try in {self.retry_in:.0f} s"
