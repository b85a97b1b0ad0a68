"""Tasks with an owner: nobody's task is lost, and none outlives whoever started it."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Coroutine
from typing import TypeVar

_log = logging.getLogger("plait")

Result = TypeVar("Result")
GRACE = 1.0
"""Seconds between cancelling a task that is late and leaving it behind."""


class TaskSet:
    """The tasks of one owner. A TaskGroup for owners that live longer than one function."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            _log.error("a bug in plait ended %s", task.get_coro(), exc_info=problem)

    def __len__(self) -> int:
        return len(self._tasks)

    async def aclose(self) -> None:
        """Cancel what is running and see it end."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def seen_through(task: asyncio.Task[Result]) -> Result:
    """Its result, waited for even when we are cancelled meanwhile: that counts once the task has ended."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as request:
            cancelled = request
    if cancelled is None:
        return task.result()
    if not task.cancelled():
        task.exception()  # looked at, or asyncio would complain
    raise cancelled


async def to_the_end(work: Coroutine[object, object, Result]) -> Result:
    """Do this whole, whatever happens to us meanwhile."""
    return await seen_through(asyncio.get_running_loop().create_task(work))


async def ended(task: asyncio.Task[None], seconds: float, what: str) -> None:
    """Wait for its end, for so long. What is late is cancelled, left behind if it will not have that,
    and told by a TimeoutError; whatever else it failed with is raised."""
    await asyncio.wait((task,), timeout=seconds)
    if task.done():
        if not task.cancelled():
            task.result()
        return
    task.cancel()
    await asyncio.wait((task,), timeout=GRACE)
    task.add_done_callback(_look_at)
    raise TimeoutError(f"{what} did not end within {seconds:g} s")


def _look_at(task: asyncio.Task[None]) -> None:
    """Nobody else will, and asyncio would complain."""
    if not task.cancelled():
        task.exception()


class Interruptible:
    """Work in tasks of other people that can be ended from here."""

    def __init__(self) -> None:
        self.interrupted = False
        self._running: set[asyncio.Timeout] = set()
        self._emptied = asyncio.Event()

    @contextlib.asynccontextmanager
    async def timeout(self, seconds: float | None) -> AsyncIterator[asyncio.Timeout]:
        """Work that has so long. It ends with a TimeoutError, also when it is or has been interrupted."""
        if self.interrupted:
            raise TimeoutError
        async with asyncio.timeout(seconds) as timeout:
            self._running.add(timeout)
            try:
                yield timeout
            finally:
                self._running.discard(timeout)
                self._emptied.set()

    async def aclose(self, seconds: float) -> None:
        """Interrupt all that runs, and see it end, for so long."""
        self.interrupted = True
        loop = asyncio.get_running_loop()
        for timeout in self._running:
            timeout.reschedule(loop.time())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._running:
                    self._emptied.clear()
                    await self._emptied.wait()
