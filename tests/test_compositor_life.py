"""The life of a compositor and of its mounts: what may be done when, and what is said when it may not."""

import asyncio
import gc
import logging
import warnings

import pytest

from clients import ALONE, Client, compositor
from clock import jumping, now, quiet
from fakes import FakeServer, HangingServer, words
from plait import leaks
from plait.compositor import Compositor, CompositorState
from plait.config.model import ServerSettings
from plait.errors import (
    AlreadyMounted,
    LifecycleError,
    NotMounted,
    PlaitError,
    Unmountable,
    UpstreamUnavailable,
)
from plait.mounts.state import TRANSITIONS, MountState, check
from plait.routing.naming import MountPrefix

A, B, OWN = MountPrefix("a"), MountPrefix("b"), MountPrefix("own")


# ---- the table


@pytest.mark.requirement("S3-16")
@pytest.mark.parametrize("before", MountState)
@pytest.mark.parametrize("after", MountState)
def test_a_mount_moves_only_as_the_table_says(before: MountState, after: MountState) -> None:
    if after in TRANSITIONS[before]:
        check(before, after)
        return
    with pytest.raises(PlaitError, match=f"from {before.value} to {after.value}"):
        check(before, after)


@pytest.mark.requirement("S3-16")
def test_closed_is_the_end_and_can_be_reached_from_everywhere() -> None:
    assert TRANSITIONS[MountState.CLOSED] == set()
    assert all(MountState.CLOSED in after for state, after in TRANSITIONS.items() if after)


# ---- what may be done when


@pytest.mark.requirement("BD-07", "S3-18")
@jumping
async def test_it_is_entered_once_also_by_two_at_the_same_time() -> None:
    made = Compositor(ALONE)
    entered: list[Compositor] = []
    refused: list[LifecycleError] = []

    async def enter() -> None:
        try:
            entered.append(await made.__aenter__())
        except LifecycleError as problem:
            refused.append(problem)

    async with asyncio.TaskGroup() as group:
        group.create_task(enter())
        group.create_task(enter())
    assert len(entered) == 1
    assert "already in an active context manager" in str(refused[0])
    await made.__aexit__(None, None, None)
    with pytest.raises(RuntimeError, match="already closed"):
        await made.__aenter__()


@pytest.mark.requirement("BD-07")
@jumping
async def test_before_it_is_entered_nothing_can_be_done_and_the_reason_is_said() -> None:
    made = Compositor(ALONE)
    for attempt in (made.mount(A, FakeServer("a")), made.unmount(A), made.close()):
        with pytest.raises(LifecycleError, match="not open yet: use it in an `async with` block"):
            await attempt
    with pytest.raises(LifecycleError, match="a compositor that is created"):
        await Client(made).__aenter__()
    with pytest.raises(NotMounted, match="'a' is not mounted"):
        made.get_child_client(A)


@pytest.mark.requirement("BD-07")
@jumping
async def test_after_it_was_left_nothing_can_be_done() -> None:
    async with Compositor(ALONE) as made:
        mount = await made.mount(A, FakeServer("a"))
    for attempt in (made.mount(A, FakeServer("a")), made.unmount(A), made.unmount(mount), made.close()):
        with pytest.raises(RuntimeError, match="is closed"):
            await attempt
    with pytest.raises(LifecycleError, match="a compositor that is closed"):
        await Client(made).__aenter__()


@pytest.mark.requirement("BD-07", "BD-10")
@jumping
async def test_after_close_nothing_can_be_mounted_or_unmounted() -> None:
    async with compositor() as made:
        await made.mount(A, FakeServer("a"))
        await made.close()
        for attempt in (made.mount(B, FakeServer("b")), made.unmount(A), made.close()):
            with pytest.raises(RuntimeError, match="is closed"):
                await attempt


@pytest.mark.requirement("BD-07")
@jumping
async def test_a_prefix_that_is_taken_unknown_or_wrong_is_a_value_error() -> None:
    async with compositor() as made:
        await made.mount(A, FakeServer("a"))
        with pytest.raises(AlreadyMounted, match="already mounted") as taken:
            await made.mount(A, FakeServer("other"))
        with pytest.raises(NotMounted, match="'b' is not mounted") as unknown:
            await made.unmount(B)
        with pytest.raises(ValueError, match="prefix") as wrong:
            await made.mount("No Prefix", FakeServer("c"))  # type: ignore[arg-type]
        with pytest.raises(Unmountable, match="int cannot be mounted: give a StdioServer") as unmountable:
            await made.mount(B, 7)
        for problem in (taken, unknown, wrong, unmountable):
            assert isinstance(problem.value, PlaitError)
            assert isinstance(problem.value, ValueError)
        assert [str(mount.prefix) for mount in made.registry.mounts] == ["a"]


@pytest.mark.requirement("BD-07")
@jumping
async def test_what_is_part_of_plait_cannot_be_unmounted() -> None:
    async with compositor() as made:
        await made.mount(OWN, FakeServer("own"), pinned=True)
        with pytest.raises(LifecycleError, match="Cannot unmount pinned server 'own'") as refused:
            await made.unmount(OWN)
        assert isinstance(refused.value, RuntimeError)
        assert made.registry.find(OWN).state is MountState.ACTIVE


@pytest.mark.requirement("BD-07")
@jumping
async def test_a_mount_is_set_up_once() -> None:
    server = FakeServer("a", tools=["t"])
    async with compositor() as made:
        mount = await made.mount(A, server)
        with pytest.raises(LifecycleError, match="mount 'a' is already setup") as refused:
            made.registry.begin(mount)
        assert isinstance(refused.value, RuntimeError)
        assert len(server.wires) == 1


@pytest.mark.requirement("BD-07", "S3-07")
@jumping
async def test_the_session_with_a_server_is_there_while_its_mount_is_active() -> None:
    server, slow, bad = FakeServer("a", tools=["t"]), HangingServer("slow"), FakeServer("bad")
    bad.failures = [UpstreamUnavailable("no such file")] * 100
    async with compositor(slow, bad) as made:
        mount = await made.mount(A, server)
        async with Client(made):
            await quiet()
            child = made.get_child_client(A)
            assert child.supports("tools")
            assert child is made.get_child_client(A), "one session, kept open"
            for prefix, state in (("slow", "pending"), ("bad", "failed")):
                with pytest.raises(LifecycleError, match=rf"not active \(state: {state}\)") as refused:
                    made.get_child_client(MountPrefix(prefix))
                assert isinstance(refused.value, RuntimeError)
        await made.unmount(A)
        with pytest.raises(NotMounted, match="not mounted"):
            made.get_child_client(A)
        with pytest.raises(LifecycleError, match=r"not active \(state: closed\)"):
            _ = mount.child_client


# ---- mounting and unmounting while it runs


@pytest.mark.requirement("BD-05", "K-11", "S3-09")
@jumping
async def test_what_is_unmounted_is_gone_for_clients_that_are_connected() -> None:
    server = FakeServer("a", tools=["t"], resources=["x:1"], prompts=["p"])
    async with compositor(FakeServer("b", tools=["t"])) as made, Client(made) as client:
        await made.mount_server(A, server)
        assert await client.names() == ["b__t", "a__t"]
        client.notes.clear()
        await made.unmount_server(A)
        assert server.wire.closed
        assert await client.names() == ["b__t"]
        assert {method for method, _ in client.notes} == {
            "notifications/tools/list_changed",
            "notifications/resources/list_changed",
            "notifications/prompts/list_changed",
        }
        assert "unknown tool" in words(await client.call("a__t"))
        assert len(server.asked("tools/call")) == 0
        assert words(await client.call("b__t")) == "b: t {}"


@jumping
async def test_a_prefix_that_was_unmounted_can_be_mounted_again_with_another_server() -> None:
    async with compositor() as made, Client(made) as client:
        for name in ("first", "second"):
            server = FakeServer(name, tools=[name])
            await made.mount(A, server)
            assert await client.names() == [f"a__{name}"]
            assert words(await client.call(f"a__{name}")) == f"{name}: {name} {{}}"
            await made.unmount(A)
            assert server.wire.closed


@pytest.mark.requirement("K-10", "S3-18")
@jumping
async def test_of_two_who_mount_one_prefix_at_once_exactly_one_wins_and_the_other_leaves_nothing() -> None:
    servers = [(FakeServer(f"one{n}"), FakeServer(f"two{n}")) for n in range(5)]
    outcomes: list[object] = []
    async with compositor() as made:

        async def mount(number: int, server: FakeServer) -> None:
            try:
                outcomes.append(await made.mount(MountPrefix(f"p{number}"), server))
            except AlreadyMounted as problem:
                outcomes.append(problem)

        async with asyncio.TaskGroup() as group:
            for number, pair in enumerate(servers):
                for server in pair:
                    group.create_task(mount(number, server))
        assert len(made.registry.mounts) == 5
        assert sum(isinstance(outcome, AlreadyMounted) for outcome in outcomes) == 5
        for pair in servers:
            assert sorted(len(server.wires) for server in pair) == [0, 1]
    assert all(wire.closed for pair in servers for server in pair for wire in server.wires)


@jumping
async def test_of_two_who_unmount_at_once_one_is_told_that_there_is_nothing() -> None:
    async with compositor() as made:
        await made.mount(A, FakeServer("a"))
        outcomes: list[object] = []

        async def unmount() -> None:
            try:
                await made.unmount(A)
                outcomes.append("done")
            except NotMounted:
                outcomes.append("not mounted")

        async with asyncio.TaskGroup() as group:
            group.create_task(unmount())
            group.create_task(unmount())
        assert sorted(map(str, outcomes)) == ["done", "not mounted"]


@jumping
async def test_whoever_mounts_while_it_is_closed_or_unmounted_is_told_and_gets_no_dead_mount() -> None:
    for ending in ("close", "unmount", "leave"):
        slow = HangingServer("slow")
        made = await Compositor(ALONE).__aenter__()
        mounting = asyncio.get_running_loop().create_task(made.mount(A, slow))
        await quiet()
        if ending == "unmount":
            await made.unmount(A)
        elif ending == "close":
            await made.close()
        await made.__aexit__(None, None, None)
        with pytest.raises(LifecycleError, match="'a' was unmounted before it was up"):
            await mounting
        assert slow.wire.closed


# ---- close and leave


@pytest.mark.requirement("BD-10")
@jumping
async def test_close_keeps_what_is_part_of_plait_and_leaving_removes_it_too() -> None:
    own, other = FakeServer("own", tools=["t"]), FakeServer("a", tools=["t"])
    async with Compositor(ALONE) as made:
        pinned = await made.mount(OWN, own, pinned=True)
        mount = await made.mount(A, other)
        async with Client(made) as client:
            await made.close()
            assert (mount.state, pinned.state) == (MountState.CLOSED, MountState.ACTIVE)
            assert (other.wire.closed, own.wire.closed) == (True, False)
            assert await client.names() == ["own__t"], "who is connected goes on"
        assert made.state is CompositorState.ACTIVE
    assert pinned.state is MountState.CLOSED
    assert own.wire.closed
    assert made.registry.mounts == []


@pytest.mark.requirement("BD-09")
@jumping
async def test_cleaning_up_twice_is_cleaning_up_once(caplog: pytest.LogCaptureFixture) -> None:
    async with compositor() as made:
        mount = await made.mount(A, FakeServer("a"))
        await mount.aclose()
        caplog.clear()
        await mount.aclose()
        assert mount.state is MountState.CLOSED
        assert caplog.records == []


@pytest.mark.requirement("BD-09")
@jumping
async def test_cleaning_up_a_server_that_is_still_starting_is_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with compositor(HangingServer("slow")) as made, Client(made):
        await quiet()
        with caplog.at_level(logging.WARNING, "plait"):
            await made.unmount(MountPrefix("slow"))
    assert "'slow' is closed while it is still starting" in caplog.text


@pytest.mark.requirement("BD-09")
@jumping
async def test_cleaning_up_after_a_failed_mount_never_hides_why_it_failed() -> None:
    class Sticky(FakeServer):
        async def open(self, *args: object) -> object:  # type: ignore[override]
            raise UpstreamUnavailable("the reason")

    class Belonging:
        async def __aenter__(self) -> None: ...
        async def __aexit__(self, *exc: object) -> None:
            raise OSError("sticky")

    async with compositor() as made:
        with pytest.raises(UpstreamUnavailable, match="the reason"):
            await made.mount(A, Sticky("a"), resources=[Belonging()])
        assert made.registry.mounts == []


# ---- leaks


def leak_warnings(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(each.message) for each in caught if each.category is ResourceWarning]


@pytest.mark.requirement("BD-11")
@jumping
async def test_a_compositor_that_is_dropped_in_its_block_says_what_it_leaked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = await Compositor(ALONE).__aenter__()
    await made.mount(A, FakeServer("a"))
    await made.mount(OWN, FakeServer("own"), pinned=True)
    registry = made.registry
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del made
        gc.collect()
    [text] = leak_warnings(caught)
    assert text == (
        "COMPOSITOR LEAK: a compositor was dropped with 1 mounted servers ('a'): "
        "its `async with` block was never left; use `async with Compositor() as compositor`"
    )
    assert text in capsys.readouterr().err
    await registry.aclose()


@pytest.mark.requirement("BD-11")
@jumping
async def test_mounts_that_are_there_after_it_was_left_are_told_too() -> None:
    async with Compositor(ALONE) as made:
        registry = made.registry
    await registry.reserve(A, "a", FakeServer("a"), ServerSettings())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del made
        gc.collect()
    assert "they were still there after it was left" in leak_warnings(caught)[0]


@pytest.mark.requirement("BD-11")
def test_each_state_has_its_own_words_and_nothing_mounted_has_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = {}
    for state in CompositorState:
        with pytest.warns(ResourceWarning, match="COMPOSITOR LEAK"):
            leaks.warn(state.value, ["a", "b"])
        told[state] = capsys.readouterr().err
        assert "2 mounted servers ('a', 'b')" in told[state]
        leaks.warn(state.value, [])
    assert "it was never used" in told[CompositorState.CREATED]
    assert len(set(told.values())) == 3


@pytest.mark.requirement("BD-11")
@jumping
async def test_one_that_was_never_used_or_was_left_in_order_says_nothing() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Compositor(ALONE)
        async with Compositor(ALONE) as made:
            await made.mount(A, FakeServer("a"))
        del made
        gc.collect()
    assert leak_warnings(caught) == []
    assert now() < 1
