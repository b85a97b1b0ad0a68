"""The clock that other tests rely on."""

import asyncio
import time

import pytest

from clock import Deadlock, JumpingLoop, jumping, now, quiet


@jumping
async def test_an_hour_passes_at_once() -> None:
    began = time.monotonic()
    await asyncio.sleep(3600)
    assert now() == pytest.approx(3600)
    assert time.monotonic() - began < 5


@jumping
async def test_timers_fire_in_their_order_and_at_their_time() -> None:
    fired: list[tuple[str, float]] = []
    loop = asyncio.get_running_loop()

    def fire(name: str) -> None:
        fired.append((name, round(now(), 6)))

    for name, seconds in (("late", 5.0), ("early", 1.0), ("between", 2.5)):
        loop.call_later(seconds, fire, name)
    await asyncio.sleep(10)
    assert fired == [("early", 1.0), ("between", 2.5), ("late", 5.0)]


@jumping
async def test_time_stands_still_while_there_is_work() -> None:
    async def work() -> None:
        for _ in range(1000):
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(work())
        await quiet()
        assert task.done()
    assert now() < 0.001


@jumping
async def test_a_wait_that_takes_too_long_ends_at_its_deadline() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30):
            await asyncio.get_running_loop().create_future()
    assert now() == pytest.approx(30)


@jumping
async def test_a_thread_is_waited_for() -> None:
    assert await asyncio.to_thread(lambda: 7) == 7


def test_a_test_that_leaves_a_task_behind_fails() -> None:
    @jumping
    async def careless() -> None:
        asyncio.get_running_loop().create_task(asyncio.sleep(1))

    with pytest.raises(AssertionError, match="left tasks behind"):
        careless()


def test_a_wait_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clock.REAL_PATIENCE", 0.0)
    with pytest.raises(Deadlock), asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(_forever())


async def _forever() -> None:
    await asyncio.Event().wait()
