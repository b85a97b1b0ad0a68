"""Servers, and what they need around them, that are slow or fail to come and go; for tests."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Coroutine

from fakes import FakeServer
from plait.testing.server import Greeted
from plait.upstream.base import Link
from plait.upstream.client import Listener


class Trail(list[str]):
    """What happened, in order."""

    @contextlib.asynccontextmanager
    async def needs(self, name: str) -> AsyncIterator[None]:
        """Something in an orderly state."""
        self.append(f"enter {name}")
        try:
            yield
        finally:
            self.append(f"leave {name}")

    @contextlib.asynccontextmanager
    async def cannot_enter(self, name: str) -> AsyncIterator[None]:
        self.append(f"enter {name}")
        if name:
            raise OSError(f"{name} cannot be had")
        yield

    @contextlib.asynccontextmanager
    async def cannot_leave(self, name: str) -> AsyncIterator[None]:
        self.append(f"enter {name}")
        yield
        self.append(f"leave {name}")
        raise OSError(f"{name} is sticky")

    @contextlib.asynccontextmanager
    async def takes(self, name: str, entering: float = 0.0, leaving: float = 0.0) -> AsyncIterator[None]:
        """Something slow."""
        self.append(f"enter {name}")
        try:
            await asyncio.sleep(entering)
            self.append(f"entered {name}")
            yield
        finally:
            self.append(f"leave {name}")
            await asyncio.sleep(leaving)
            self.append(f"left {name}")

    @contextlib.asynccontextmanager
    async def one_task(self, name: str) -> AsyncIterator[None]:
        """As anyio's task groups: whoever enters it must be the one who leaves it."""
        entered_by = asyncio.current_task()
        self.append(f"enter {name}")
        try:
            yield
        finally:
            same = asyncio.current_task() is entered_by
            self.append(f"leave {name}" if same else f"leave {name} in another task")


class Lingering(FakeServer):
    """A server that takes its time to close; a close that is torn leaves it open."""

    def __init__(self, name: str, seconds: float = 1.0) -> None:
        super().__init__(name, tools=["t"])
        self.seconds = seconds

    async def open(self, listener: Listener, behalf: Awaitable[Greeted]) -> Link:
        link = await super().open(listener, behalf)
        wire = self.wire
        close = wire.aclose

        async def aclose() -> None:
            await asyncio.sleep(self.seconds)
            await close()

        wire.aclose = aclose  # type: ignore[method-assign]
        return link


async def cancelled_after(seconds: float, work: Coroutine[object, object, object]) -> None:
    """Do this in a task that is cancelled after so long, and see that it ends as cancelled."""
    task = asyncio.get_running_loop().create_task(work)
    await asyncio.wait((task,), timeout=seconds)
    assert not task.done(), "there is nothing to cancel"
    task.cancel()
    await asyncio.wait((task,))
    assert task.cancelled(), task
