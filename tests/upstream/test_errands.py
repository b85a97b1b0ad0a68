import asyncio
from collections.abc import AsyncIterator

import pytest

from plait.upstream.errands import KEPT, run_errand
from plait.upstream.process import Guardian
from processes import PATH, PATIENCE, until_gone


@pytest.fixture
async def guardian() -> AsyncIterator[Guardian]:
    guardian = Guardian()
    yield guardian
    await guardian.aclose()


async def test_an_errand_tells_its_code_and_what_it_said(guardian: Guardian) -> None:
    outcome = await run_errand(guardian, ["sh", "-c", "cat; echo out; echo err >&2; exit 3"], PATH)
    assert outcome == (3, "out\n", "err\n")


async def test_of_a_flood_the_beginning_is_kept(guardian: Guardian) -> None:
    outcome = await run_errand(guardian, ["sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x"], PATH)
    assert outcome == (0, "x" * KEPT, "")


async def test_nothing_is_left_of_an_errand_that_is_given_up(guardian: Guardian) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await run_errand(guardian, ["sh", "-c", "sleep 1000 & wait"], PATH)
    await until_gone([child.pid for child in guardian._children if child.pid], PATIENCE)
    assert all(child.finished for child in guardian._children)


async def test_a_command_that_is_not_there_is_an_error(guardian: Guardian) -> None:
    with pytest.raises(FileNotFoundError):
        await run_errand(guardian, ["no-such-engine"], PATH)
