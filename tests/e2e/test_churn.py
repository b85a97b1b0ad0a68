"""A thousand mounts and ten thousand clients come and go, and nothing of them is left."""

import asyncio
import gc
import os
import sys
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clients import ALONE, RawClient
from fakes import FakeServer
from plait import Client, Compositor, MountPrefix
from plait.config.model import ServerSettings, StdioServer
from processes import alive, children_of, open_descriptors, until
from stage import descendants

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc from outside"),
]

SCRIPT = Path(__file__).with_name("forking_server.sh")
A = MountPrefix("a")
BYTES_PER_CYCLE = 100
"""What a cycle may leave on average: the first mount that is not forgotten has several thousand."""


def forking(**settings: object) -> StdioServer:
    return StdioServer(command="sh", args=[str(SCRIPT)], settings=ServerSettings(**settings))  # type: ignore[arg-type]


@contextmanager
def traced() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


class Level:
    """What this process holds right now."""

    def __init__(self) -> None:
        gc.collect()
        self.bytes = tracemalloc.get_traced_memory()[0]
        self.descriptors = open_descriptors(os.getpid())
        self.tasks = len(asyncio.all_tasks())


async def churn(cycles: int, cycle: Callable[[], Awaitable[None]]) -> None:
    """After a warm-up nothing grows any more: no memory, no descriptor, no task."""
    for _ in range(max(20, cycles // 10)):
        await cycle()
    with traced():
        await cycle()
        before = Level()
        for _ in range(cycles):
            await cycle()
        after = Level()
    assert after.descriptors == before.descriptors
    assert after.tasks == before.tasks
    assert after.bytes - before.bytes < BYTES_PER_CYCLE * cycles + 20_000


@pytest.mark.requirement("S3-17", "S3-18")
async def test_a_thousand_mounts_of_a_server_that_forks_twice_leave_no_process_and_no_descriptor() -> None:
    async with Compositor(ALONE) as made:
        await made.mount(A, forking())
        [guardian] = children_of(os.getpid())
        await until(lambda: len(descendants(guardian)) >= 4)  # a keeper, the server, and its two children
        await made.unmount(A)
        held = open_descriptors(guardian)

        async def cycle() -> None:
            await made.mount(A, forking())
            await made.unmount(A)

        await churn(1000, cycle)
        await until(lambda: not any(map(alive, descendants(guardian))))
        assert open_descriptors(guardian) == held
    await until(lambda: not alive(guardian))


async def test_whatever_a_mount_is_cancelled_in_the_middle_of_it_leaves_no_process() -> None:
    async with Compositor(ALONE) as made:
        await made.mount(A, forking())
        await made.unmount(A)
        [guardian] = children_of(os.getpid())
        held = open_descriptors(os.getpid())
        loop = asyncio.get_running_loop()
        for number in range(200):
            mounting = loop.create_task(made.mount(A, forking()))
            await asyncio.wait((mounting,), timeout=number / 200 * 0.02)
            mounting.cancel()
            await asyncio.wait((mounting,))
            if not mounting.cancelled():
                await made.unmount(A)
            assert made.registry.mounts == []
        await until(lambda: not any(map(alive, descendants(guardian))))
        assert open_descriptors(os.getpid()) == held


async def test_calls_that_have_each_a_server_of_their_own_leave_nothing() -> None:
    async with Compositor(ALONE) as made:
        await made.mount(A, forking(share="call"))
        [guardian] = children_of(os.getpid())
        async with Client(made) as client:

            async def cycle() -> None:
                assert (await client.execute("a__pid")).isdigit()

            await churn(100, cycle)
        await until(lambda: not any(map(alive, descendants(guardian))))


async def test_ten_thousand_clients_come_and_go_and_nothing_of_them_is_left() -> None:
    server = FakeServer("a", tools=["t"], resources=["x:1"], capabilities={"resources": {"subscribe": True}})
    async with Compositor(ALONE) as made:
        await made.mount(A, server)

        async def cycle() -> None:
            async with Client(made) as client:
                await client.subscribe_resource("x:1")
            server.requests.clear()
            server.notifications.clear()

        await churn(10_000, cycle)
        assert made.registry.clients == 0
        assert len(server.wires) == 1, "they shared one session"


async def test_clients_of_ever_new_identities_leave_nothing() -> None:
    server = FakeServer("a", tools=["t"])
    async with Compositor(ALONE) as made:
        mount = await made.mount(A, server)
        names = (f"user-{number}" for number in range(1_000_000))

        async def cycle() -> None:
            async with RawClient(made, next(names)) as client:
                client.initialize()
                client.say("tools/list", 2)
                await client.answered()
            # As after LINGER seconds without them.
            made.registry._views.clear()
            mount.retire(())
            for ending in tuple(mount._endings.values()):
                await ending
            for kept in (server.wires, server.requests, server.notifications, server.behalf):
                kept.clear()

        await churn(1000, cycle)
        assert len(mount.instances) == 1
