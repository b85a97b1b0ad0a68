"""The lists of a server, and what it says when they change."""

import asyncio

import pytest

from clock import jumping, quiet
from fakes import FakeServer, Held, Message, Refusal
from life import life
from plait.mounts.lists import DEBOUNCE
from plait.mounts.state import MountState
from plait.wire.spec import CHANGED, Kind

PENDING, ACTIVE, FAILED, CLOSED = MountState


# ---- list_changed


def changed(server: FakeServer, *kinds: str) -> None:
    for kind in kinds:
        server.notify(f"notifications/{kind}/list_changed")


@jumping
async def test_a_burst_of_changes_is_read_once_after_a_moment() -> None:
    server = FakeServer(tools=["old"], prompts=["p"])
    async with life(server) as made:
        await made.start()
        server.requests.clear()
        server.lists[Kind.TOOLS] = ["new"]
        for _ in range(6):
            changed(server, "tools")
            await asyncio.sleep(DEBOUNCE / 10)
        assert (made.keys(), made.around.changes) == (["old"], 1)
        await asyncio.sleep(DEBOUNCE)
        assert (made.keys(), made.around.changes) == (["new"], 2)
        assert [method for method, _ in server.requests] == ["tools/list"]


@pytest.mark.parametrize("notification", CHANGED)
@jumping
async def test_only_the_lists_that_are_said_to_have_changed_are_read_again(notification: str) -> None:
    server = FakeServer(tools=["t"], prompts=["p"], resources=["x:1"], templates=["x:{id}"])
    async with life(server) as made:
        await made.start()
        server.requests.clear()
        server.notify(notification)
        await asyncio.sleep(1)
        assert [method for method, _ in server.requests] == [kind.method for kind in CHANGED[notification]]


@jumping
async def test_different_changes_within_one_moment_are_read_together() -> None:
    server = FakeServer(tools=["t"], prompts=["p"])
    async with life(server) as made:
        await made.start()
        changed(server, "prompts", "tools")
        await asyncio.sleep(1)
        assert made.around.changes == 2


@jumping
async def test_a_change_after_a_change_is_read_too() -> None:
    server = FakeServer(tools=["1"])
    async with life(server) as made:
        await made.start()
        for number in ("2", "3"):
            server.lists[Kind.TOOLS] = [number]
            changed(server, "tools")
            await asyncio.sleep(1)
            assert made.keys() == [number]


@pytest.mark.requirement("G27")
@pytest.mark.parametrize(
    "answer", [Refusal(-32603, "later"), {"tools": "none"}, {"tools": [], "nextCursor": "again"}]
)
@jumping
async def test_a_refresh_that_fails_keeps_the_old_list(answer: object) -> None:
    server = FakeServer(tools=["old"])
    async with life(server) as made:
        await made.start()
        server.answers["tools/list"] = lambda params: answer
        changed(server, "tools")
        await asyncio.sleep(1)
        assert (made.keys(), made.around.changes) == (["old"], 1)
        assert made.instance.counters["list that could not be refreshed"] == 1
        assert made.instance.state is ACTIVE


@jumping
async def test_a_refresh_that_is_not_answered_keeps_the_old_list_and_the_next_one_works() -> None:
    server = FakeServer(tools=["old"])
    async with life(server) as made:
        await made.start()
        server.answers["tools/list"] = lambda params: Held()
        changed(server, "tools")
        await asyncio.sleep(100)
        assert made.keys() == ["old"]
        del server.answers["tools/list"]
        server.lists[Kind.TOOLS] = ["new"]
        changed(server, "tools")
        await asyncio.sleep(1)
        assert made.keys() == ["new"]


@jumping
async def test_a_change_while_the_server_is_starting_is_not_lost() -> None:
    server = FakeServer(tools=["old"], resources=["x:1"])
    held = Held()
    server.answers["resources/list"] = lambda params: held
    async with life(server) as made:
        async with asyncio.TaskGroup() as group:
            group.create_task(made.start())
            await quiet()
            server.lists[Kind.TOOLS] = ["new"]
            changed(server, "tools")
            await asyncio.sleep(5)
            held.answer({"resources": []})
        assert made.keys() == ["old"]
        await asyncio.sleep(1)
        assert made.keys() == ["new"]


@jumping
async def test_a_change_of_a_server_that_is_gone_by_then_is_no_error() -> None:
    server = FakeServer(tools=["t"])
    async with life(server) as made:
        await made.start()
        changed(server, "tools")
        await quiet()
        await made.end()
        await asyncio.sleep(1)
        assert made.keys() == ["t"]


@jumping
async def test_a_slow_list_is_read_once_at_a_time_however_often_it_changes() -> None:
    server = FakeServer(tools=["old"])
    async with life(server) as made:
        await made.start()
        waiting: list[Held] = []

        def hold(params: Message) -> Held:
            waiting.append(Held())
            return waiting[-1]

        server.answers["tools/list"] = hold
        for _ in range(20):
            changed(server, "tools")
            await asyncio.sleep(1)
        assert len(waiting) == 1
        waiting[0].answer({"tools": [{"name": "between"}]})
        await asyncio.sleep(1)
        assert made.keys() == ["between"]
        assert len(waiting) == 2, "what changed in the meantime is read again"
        waiting[1].answer({"tools": [{"name": "last"}]})
        await asyncio.sleep(1)
        assert (made.keys(), len(waiting)) == (["last"], 2)
