"""The lifespan of a server object that has several sessions: begun for the first, ended after the last."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

from plait.tasks import to_the_end
from plait.upstream.belongings import Belongings

PATIENCE = 5.0
"""Seconds for a server's own cleaning up."""

Enter = Callable[[], AbstractAsyncContextManager[object]]


class SharedLifespan:
    """FastMCP itself ends its lifespan with the session that began it, whoever else still uses it."""

    def __init__(self, enter: Enter) -> None:
        self._enter = enter
        self._users = 0
        self._turn = asyncio.Lock()
        """Held while it begins or ends: whoever comes while it ends gets a new one."""
        self._held = Belongings()

    @contextlib.asynccontextmanager
    async def used(self) -> AsyncIterator[None]:
        async with self._turn:
            if not self._users:
                await self._begin()
            self._users += 1
        try:
            async with self._enter():  # each session does, as FastMCP expects
                yield
        finally:
            await to_the_end(self._leave())

    async def _begin(self) -> None:
        self._held = Belongings()
        try:
            await self._held.enter([self._enter()])
        except BaseException:
            await to_the_end(self._held.aclose(PATIENCE))
            raise

    async def _leave(self) -> None:
        async with self._turn:
            self._users -= 1
            if not self._users:
                await self._held.aclose(PATIENCE)
