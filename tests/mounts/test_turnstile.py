"""How many calls a server gets at once, and how many may wait for their turn."""

import asyncio
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clock import jumping, quiet
from plait.errors import UpstreamBusy
from plait.mounts.turnstile import Turnstile


class Guest:
    """Somebody who enters, stays until told, and may give up before."""

    def __init__(self, turnstile: Turnstile, group: asyncio.TaskGroup) -> None:
        self._turnstile = turnstile
        self._go = asyncio.Event()
        self.inside = False
        self.refused = ""
        self.task = group.create_task(self._visit())

    async def _visit(self) -> None:
        turnstile = self._turnstile
        try:
            if turnstile.inside < turnstile.places:
                turnstile.inside += 1
            else:
                await turnstile.wait()
        except UpstreamBusy as busy:
            self.refused = str(busy)
            return
        self.inside = True
        try:
            await self._go.wait()
        finally:
            self.inside = False
            turnstile.leave()

    def leave(self) -> None:
        self._go.set()

    def give_up(self) -> None:
        self.task.cancel()


async def come(turnstile: Turnstile, group: asyncio.TaskGroup, count: int) -> list[Guest]:
    guests = []
    for _ in range(count):
        guests.append(Guest(turnstile, group))
        await quiet()
    return guests


def inside(guests: list[Guest]) -> list[int]:
    return [number for number, guest in enumerate(guests) if guest.inside]


@jumping
async def test_places_are_taken_at_once_and_the_rest_waits() -> None:
    async with asyncio.TaskGroup() as group:
        guests = await come(Turnstile("fs", 2, 10), group, 5)
        assert inside(guests) == [0, 1]
        for guest in guests:
            guest.leave()


@jumping
async def test_first_come_first_served() -> None:
    turnstile = Turnstile("fs", 1, 10)
    order = []
    async with asyncio.TaskGroup() as group:
        guests = await come(turnstile, group, 5)
        while inside(guests):
            order += inside(guests)
            guests[order[-1]].leave()
            await quiet()
    assert order == [0, 1, 2, 3, 4]
    assert turnstile.inside == 0


@jumping
async def test_a_newcomer_does_not_overtake_whoever_was_just_given_a_place() -> None:
    async with asyncio.TaskGroup() as group:
        turnstile = Turnstile("fs", 1, 10)
        guests = await come(turnstile, group, 2)
        guests[0].leave()
        guests += [Guest(turnstile, group)]  # it runs before the one that waits has woken up
        await quiet()
        assert inside(guests) == [1]
        guests[1].leave()
        guests[2].leave()


@jumping
async def test_a_full_queue_answers_at_once_and_says_who_is_busy() -> None:
    async with asyncio.TaskGroup() as group:
        guests = await come(Turnstile("files", 2, 1), group, 4)
        assert guests[3].refused == "server 'files' is busy: 2 calls run and 1 wait; try again later"
        assert inside(guests) == [0, 1]
        for guest in guests:
            guest.leave()


@jumping
async def test_without_a_queue_nobody_waits() -> None:
    async with asyncio.TaskGroup() as group:
        guests = await come(Turnstile("fs", 1, 0), group, 2)
        assert "1 calls run and 0 wait" in guests[1].refused
        guests[0].leave()


@jumping
async def test_whoever_gives_up_while_waiting_makes_room_in_the_queue_at_once() -> None:
    async with asyncio.TaskGroup() as group:
        turnstile = Turnstile("fs", 1, 1)
        guests = await come(turnstile, group, 2)
        guests[1].give_up()
        await quiet()
        guests += await come(turnstile, group, 1)
        assert not guests[2].refused
        guests[0].leave()
        await quiet()
        assert inside(guests) == [2]
        guests[2].leave()
    assert turnstile.inside == 0


@jumping
async def test_whoever_gives_up_while_being_called_gives_the_place_on() -> None:
    async with asyncio.TaskGroup() as group:
        turnstile = Turnstile("fs", 1, 10)
        guests = await come(turnstile, group, 3)
        guests[0].leave()
        # When this runs the first has left, and the second has the place and does not know it yet.
        asyncio.get_running_loop().call_soon(guests[1].give_up)
        await quiet()
        assert guests[1].task.cancelled()
        assert inside(guests) == [2]
        guests[2].leave()
    assert turnstile.inside == 0


@pytest.mark.parametrize("places", [1, 2, 3])
@settings(deadline=None)
@given(doings=st.lists(st.tuples(st.sampled_from(["come", "leave", "give up"]), st.integers(0, 30))))
def test_it_holds_whatever_order_they_come_and_go_in(places: int, doings: list[tuple[str, int]]) -> None:
    """Against a model: a set of places and a queue."""

    @jumping
    async def visits() -> None:
        turnstile = Turnstile("fs", places, 3)
        guests: list[Guest] = []
        have: set[int] = set()
        queue: deque[int] = deque()
        async with asyncio.TaskGroup() as group:
            for doing, number in doings:
                if doing == "come":
                    refused = len(have) >= places and len(queue) >= 3
                    guests += await come(turnstile, group, 1)
                    assert bool(guests[-1].refused) is refused
                    if not refused:
                        queue.append(len(guests) - 1)
                elif doing == "leave" and number in have:
                    guests[number].leave()
                    have.remove(number)
                elif doing == "give up" and number in queue:
                    guests[number].give_up()
                    queue.remove(number)
                while queue and len(have) < places:
                    have.add(queue.popleft())
                await quiet()
                assert set(inside(guests)) == have
                assert turnstile.inside == len(have)
            for guest in guests:
                guest.leave()
        assert turnstile.inside == 0

    visits()
