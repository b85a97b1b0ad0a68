"""Who wants to know what becomes of mounts, and telling them."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable

from plait.mounts.state import MountEvent
from plait.routing.naming import MountPrefix
from plait.tasks import TaskSet

_log = logging.getLogger("plait")

MountListener = Callable[[MountPrefix, MountEvent], Awaitable[None] | None]


class Events:
    """Listeners are told in the order of the events. One that fails is logged, and disturbs nobody."""

    def __init__(self) -> None:
        self._listeners: list[MountListener] = []
        self._tasks = TaskSet()
        self._telling: asyncio.Task[None] | None = None
        self._waiting: asyncio.Queue[Awaitable[None]] = asyncio.Queue()

    def listen(self, listener: MountListener) -> Callable[[], None]:
        """Call what is returned to hear no more."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def tell(self, prefix: MountPrefix, event: MountEvent) -> None:
        for listener in tuple(self._listeners):
            try:
                said = listener(prefix, event)
            except Exception:
                _log.exception("a listener failed on %s of '%s'", event.value, prefix)
                continue
            if inspect.isawaitable(said):
                self._later(said)

    def _later(self, said: Awaitable[None]) -> None:
        """What asynchronous listeners do is done one after the other, beside everything else."""
        self._waiting.put_nowait(said)
        if self._telling is None or self._telling.done():
            self._telling = self._tasks.start(self._catch_up())

    async def _catch_up(self) -> None:
        while not self._waiting.empty():
            try:
                await self._waiting.get_nowait()
            except Exception:
                _log.exception("a listener of mounts failed")

    async def told(self) -> None:
        """Wait until every listener has heard all there was to hear."""
        while self._telling is not None and not self._telling.done():
            await asyncio.wait((self._telling,))

    async def aclose(self, seconds: float = 5.0) -> None:
        """The last events are told, but nobody waits for ever."""
        self._listeners.clear()
        try:
            async with asyncio.timeout(seconds):
                await self.told()
        except TimeoutError:
            _log.warning("a listener of mounts did not finish within %g s", seconds)
        await self._tasks.aclose()
        while not self._waiting.empty():
            left = self._waiting.get_nowait()
            if inspect.iscoroutine(left):
                left.close()
