import asyncio
import contextlib

import pytest

from clock import jumping, now
from plait.tasks import Interruptible, ended, seen_through


async def _later(result: str) -> str:
    await asyncio.sleep(5)
    if result == "broken":
        raise ValueError(result)
    return result


@jumping
async def test_what_is_seen_through_gives_its_result_or_its_error() -> None:
    loop = asyncio.get_running_loop()
    assert await seen_through(loop.create_task(_later("done"))) == "done"
    with pytest.raises(ValueError, match="broken"):
        await seen_through(loop.create_task(_later("broken")))


@jumping
async def test_a_cancellation_counts_only_after_the_end_however_often_it_is_said() -> None:
    loop = asyncio.get_running_loop()
    for outcome in ("done", "broken"):
        task = loop.create_task(_later(outcome))
        waiting = loop.create_task(seen_through(task))
        for _ in range(3):
            await asyncio.sleep(1)
            waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert task.done()
        assert not task.cancelled()


# ---- what ends in time, and what does not


@jumping
async def test_the_end_of_a_task_is_waited_for_and_what_it_failed_with_is_raised() -> None:
    loop = asyncio.get_running_loop()
    await ended(loop.create_task(_nothing(5)), 10, "it")
    with pytest.raises(ValueError, match="broken"):
        await ended(loop.create_task(_fail()), 10, "it")
    cancelled = loop.create_task(_nothing(5))
    cancelled.cancel()
    await ended(cancelled, 10, "it")


@jumping
async def test_what_is_late_is_cancelled_and_told() -> None:
    task = asyncio.get_running_loop().create_task(_nothing(100))
    with pytest.raises(TimeoutError, match="it did not end within 10 s"):
        await ended(task, 10, "it")
    assert task.cancelled()
    assert now() == pytest.approx(10)


@jumping
async def test_what_will_not_be_cancelled_is_left_behind() -> None:
    async def stubborn() -> None:
        for _ in range(3):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(20)
        raise ValueError("nobody looks at this, and nobody complains")

    task = asyncio.get_running_loop().create_task(stubborn())
    with pytest.raises(TimeoutError, match="it did not end within 10 s"):
        await ended(task, 10, "it")
    assert now() == pytest.approx(11)
    await asyncio.wait((task,))


async def _nothing(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def _fail() -> None:
    raise ValueError("broken")


@jumping
async def test_work_in_other_tasks_is_ended_and_its_end_waited_for() -> None:
    work, trail = Interruptible(), []

    async def do(seconds: float) -> None:
        try:
            async with work.timeout(seconds):
                try:
                    await asyncio.sleep(50)
                finally:
                    await asyncio.sleep(1)
                    trail.append("cleaned up")
        except TimeoutError:
            trail.append("interrupted" if work.interrupted else "late")

    async with asyncio.TaskGroup() as group:
        for seconds in (3, 100, 100):
            group.create_task(do(seconds))
        await asyncio.sleep(10)
        assert trail == ["cleaned up", "late"]
        await work.aclose(5)
        assert now() == pytest.approx(11)
    assert sorted(trail[2:]) == ["cleaned up", "cleaned up", "interrupted", "interrupted"]


@jumping
async def test_work_that_does_not_end_when_it_is_interrupted_is_not_waited_for_for_ever() -> None:
    work = Interruptible()

    async def do() -> None:
        with contextlib.suppress(TimeoutError):
            async with work.timeout(None):
                try:
                    await asyncio.sleep(50)
                finally:
                    await asyncio.sleep(50)

    async with asyncio.TaskGroup() as group:
        group.create_task(do())
        await asyncio.sleep(1)
        await work.aclose(5)
        assert now() == pytest.approx(6)
