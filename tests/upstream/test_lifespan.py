"""One lifespan for all sessions of a server object: begun for the first, ended after the last."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from clock import jumping
from plait.upstream.lifespan import SharedLifespan


class Server:
    """Counts who is inside; its first way in is the one that counts, as FastMCP's."""

    def __init__(self) -> None:
        self.trail: list[str] = []
        self._users = 0

    @contextlib.asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        first = not self._users
        self._users += 1
        if first:
            self.trail.append("begin")
        try:
            yield
        finally:
            self._users -= 1
            if first:
                await asyncio.sleep(1)
                self.trail.append("end" if not self._users else "end while somebody uses it")


@jumping
async def test_it_ends_after_the_last_whoever_was_first() -> None:
    server = Server()
    shared = SharedLifespan(server.lifespan)
    first, second = shared.used(), shared.used()
    await first.__aenter__()
    await second.__aenter__()
    await first.__aexit__(None, None, None)
    assert server.trail == ["begin"]
    await second.__aexit__(None, None, None)
    assert server.trail == ["begin", "end"]


@jumping
async def test_whoever_comes_while_it_ends_gets_a_new_one() -> None:
    server = Server()
    shared = SharedLifespan(server.lifespan)

    async def use(after: float) -> None:
        await asyncio.sleep(after)
        async with shared.used():
            server.trail.append("use")

    async with asyncio.TaskGroup() as group:
        group.create_task(use(0))
        group.create_task(use(0.5))
    assert server.trail == ["begin", "use", "end", "begin", "use", "end"]


@jumping
async def test_whoever_is_cancelled_inside_has_it_ended_whole() -> None:
    server = Server()

    async def use() -> None:
        async with SharedLifespan(server.lifespan).used():
            await asyncio.sleep(100)

    using = asyncio.get_running_loop().create_task(use())
    for _ in range(3):
        await asyncio.sleep(0.3)
        using.cancel()
    await asyncio.wait((using,))
    assert using.cancelled()
    assert server.trail == ["begin", "end"]


@jumping
async def test_one_that_cannot_begin_is_told_and_tried_again_by_the_next() -> None:
    attempts = 0

    @contextlib.asynccontextmanager
    async def broken() -> AsyncIterator[None]:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise OSError("no database")
        yield

    shared = SharedLifespan(broken)
    with pytest.raises(OSError, match="no database"):
        await shared.used().__aenter__()
    async with shared.used():
        assert attempts > 1
