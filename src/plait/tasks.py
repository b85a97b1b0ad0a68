"""Tasks with an owner: nobody's task is lost, and none outlives whoever started it."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import TypeVar

_log = logging.getLogger("plait")

Result = TypeVar("Result")


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
