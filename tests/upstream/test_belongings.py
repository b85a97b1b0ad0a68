"""What a server needs around it: entered before it, and left after it, by one task."""

import asyncio

import pytest

from clock import jumping, now
from plait.upstream.belongings import Belongings
from trail import Trail, cancelled_after


@jumping
async def test_they_are_entered_in_order_and_left_in_reverse() -> None:
    trail, belongings = Trail(), Belongings()
    await belongings.enter([trail.one_task("folder"), trail.one_task("container")])
    assert trail == ["enter folder", "enter container"]
    await belongings.aclose(5)
    await belongings.aclose(5)
    assert trail[2:] == ["leave container", "leave folder"]


@jumping
async def test_without_any_there_is_nothing_to_do() -> None:
    belongings = Belongings()
    await belongings.enter([])
    await belongings.aclose(5)


@jumping
async def test_what_cannot_be_entered_is_told_once() -> None:
    trail, belongings = Trail(), Belongings()
    with pytest.raises(OSError, match="container cannot be had"):
        await belongings.enter([trail.needs("folder"), trail.cannot_enter("container")])
    assert trail[-1] == "leave folder"
    await belongings.aclose(5)


@jumping
async def test_what_cannot_be_left_is_told_and_the_rest_is_left() -> None:
    trail, belongings = Trail(), Belongings()
    await belongings.enter([trail.needs("folder"), trail.cannot_leave("container")])
    with pytest.raises(OSError, match="container is sticky"):
        await belongings.aclose(5)
    assert trail[-1] == "leave folder"


@jumping
async def test_whoever_is_cancelled_while_they_are_entered_has_them_left_by_closing() -> None:
    trail, belongings = Trail(), Belongings()
    await cancelled_after(1, belongings.enter([trail.takes("container", entering=100)]))
    assert trail == ["enter container"]
    await belongings.aclose(5)
    assert trail[-1] == "left container"


@jumping
async def test_what_is_not_left_in_time_is_cancelled() -> None:
    trail, belongings = Trail(), Belongings()
    await belongings.enter([trail.takes("container", leaving=100)])
    with pytest.raises(TimeoutError, match="leaving what the server needs did not end within 5 s"):
        await belongings.aclose(5)
    assert now() == pytest.approx(5, abs=0.01)
    assert len(asyncio.all_tasks()) == 1
