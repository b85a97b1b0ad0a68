"""What a tool may ask of the call it works for: to report, to log, to know whether somebody waits."""

import asyncio
import contextlib
import threading
from collections.abc import Callable

from plait.config.model import StreamSettings
from plait.tasks import TaskSet
from plait.wire.spec import LEVELS

Report = Callable[[float, float | None, str | None], None]
Log = Callable[[str, object, str | None], None]
"""The level, what is said, and the name of the logger if it has one of its own."""
Count = Callable[[str, str], None]


class Clock:
    """The time of one call: so long at most without a word; whoever says something has it anew."""

    def __init__(self, deadline: asyncio.Timeout, seconds: float) -> None:
        self._deadline = deadline
        self._seconds = seconds
        self._stands = False

    def renew(self) -> None:
        if not self._stands:
            with contextlib.suppress(RuntimeError):  # it is over already: a thread was late
                self._deadline.reschedule(asyncio.get_running_loop().time() + self._seconds)

    def hand_over(self) -> float:
        """It stands still from now on: whoever asks keeps the time, this many seconds, itself."""
        self._stands = True
        self._deadline.reschedule(None)
        return self._seconds


class ToolContext:
    """Ask for it by a parameter of this type: progress and log messages to the caller, and whether it
    still waits."""

    def __init__(
        self,
        report: Report | None = None,
        log: Log | None = None,
        *,
        clock: Clock | None = None,
        limits: StreamSettings | None = None,
        tasks: TaskSet | None = None,
        count: Count | None = None,
    ) -> None:
        """`tasks` own what outlasts the call; `count` hears of events that were dropped."""
        self._report = report
        self._log = log
        self._clock = clock
        self.limits = limits or StreamSettings()
        """How much a stream may be."""
        self.tasks = TaskSet() if tasks is None else tasks
        self.count: Count = count or (lambda what, detail: None)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self.cancelled = False
        """Has the caller given up? An async tool is cancelled anyway; a sync one has to look."""

    def progress(self, value: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the caller how far it is; from any thread; only where the caller asked for it."""
        if self._report is not None or self._clock is not None:
            self._soon(self._progress, value, total, message)

    def log(self, data: object, level: str = "info", logger: str | None = None) -> None:
        """Tell the caller something, text or JSON; from any thread; only where it asked for such messages."""
        if level not in LEVELS:
            raise ValueError(f"{level!r} is no level of a log message: use one of {', '.join(LEVELS)}")
        if self._log is not None:
            self._soon(self._log, level, data, logger)

    def keep_time(self) -> float | None:
        """The caller's clock stops, and is yours: how many seconds you may be silent; None: any."""
        return None if self._clock is None else self._clock.hand_over()

    def _progress(self, value: float, total: float | None, message: str | None) -> None:
        """Whoever reports has its time anew, also where nobody asked for the report."""
        if self._clock is not None:
            self._clock.renew()
        if self._report is not None:
            self._report(value, total, message)

    def _soon(self, act: Callable[..., None], *args: object) -> None:
        if self.cancelled:
            return
        if threading.get_ident() == self._thread:
            # At once: what waits for its turn here could come after the result.
            act(*args)
        else:
            self._loop.call_soon_threadsafe(act, *args)
