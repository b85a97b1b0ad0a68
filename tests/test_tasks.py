import asyncio

import pytest

from clock import jumping
from plait.tasks import seen_through


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
