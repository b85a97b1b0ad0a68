"""What a server needs around it (a container, a folder): entered before it, and left after it."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from plait.tasks import ended


class Belongings:
    """One task enters them, stays while they are needed, and leaves them.

    Whoever mounts and whoever unmounts are different tasks, and much of what people enter (anyio's task
    groups and all that is built on them) must be left by the task that entered it.
    """

    def __init__(self) -> None:
        self._life: asyncio.Task[None] | None = None
        self._entered = False
        self._needless = asyncio.Event()

    async def enter(self, resources: Sequence[AbstractAsyncContextManager[object]]) -> None:
        """Raises what entering failed with: what was entered before is left then. Returns early if they
        are closed meanwhile."""
        if not resources:
            return
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        life = self._life = loop.create_task(self._live(resources, ready))
        await asyncio.wait((life, ready), return_when=asyncio.FIRST_COMPLETED)
        if life.done() and not life.cancelled():
            life.result()

    async def _live(
        self, resources: Sequence[AbstractAsyncContextManager[object]], ready: asyncio.Future[None]
    ) -> None:
        async with AsyncExitStack() as stack:
            for each in resources:
                await stack.enter_async_context(each)
            self._entered = True
            ready.set_result(None)
            await self._needless.wait()

    async def aclose(self, seconds: float) -> None:
        """Leave them in reverse order; raises what that failed with. What is being entered is cancelled."""
        life = self._life
        if life is None:
            return
        if life.done():  # it is left already, and whoever entered it knows why
            _ = life.cancelled() or life.exception()
            return
        self._needless.set()
        if not self._entered:
            life.cancel()
        await ended(life, seconds, "leaving what the server needs")
