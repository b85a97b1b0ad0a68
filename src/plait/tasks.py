"""Tasks with an owner: nobody's task is lost, and none outlives whoever started it."""

import asyncio
import logging
from collections.abc import Coroutine

_log = logging.getLogger("plait")


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
