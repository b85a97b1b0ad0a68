"""Nothing stays open: whatever fails, hangs or is cancelled while servers come and go."""

import asyncio
import logging

import pytest

from clients import ALONE, Client, RawClient, compositor
from clock import jumping, now, quiet
from fakes import FakeServer, HangingServer, words
from plait.compositor import Compositor
from plait.errors import AlreadyMounted, UpstreamUnavailable
from plait.mounts.mount import CLEANING_UP
from plait.mounts.state import MountState
from plait.providers.function import FunctionProvider
from plait.routing.naming import MountPrefix
from trail import Lingering, Trail, cancelled_after

A, B, C = MountPrefix("a"), MountPrefix("b"), MountPrefix("c")
LONG = 100_000.0
"""Seconds that nobody waits."""


class Noting(FakeServer):
    """Writes down when it is opened and closed."""

    def __init__(self, name: str, trail: Trail) -> None:
        super().__init__(name, tools=["t"])
        self._trail = trail

    async def open(self, *args: object) -> object:  # type: ignore[override]
        self._trail.append("open server")
        link = await super().open(*args)  # type: ignore[arg-type]
        close = self.wire.aclose

        async def aclose() -> None:
            self._trail.append("close server")
            await close()

        self.wire.aclose = aclose  # type: ignore[method-assign]
        return link


# ---- what a server needs around it


@pytest.mark.requirement("S3-07")
@jumping
async def test_what_a_server_needs_is_entered_before_it_and_left_after_it_in_reverse_order() -> None:
    trail = Trail()
    async with compositor() as made:
        await made.mount(A, Noting("a", trail), resources=[trail.needs("folder"), trail.needs("container")])
        assert trail == ["enter folder", "enter container", "open server"]
        trail.clear()
        await made.unmount(A)
        assert trail == ["close server", "leave container", "leave folder"]


@pytest.mark.requirement("BD-08", "S3-18")
@jumping
async def test_a_mount_that_fails_leaves_nothing_open_and_its_prefix_is_free() -> None:
    trail, server = Trail(), FakeServer("a")
    server.failures = [UpstreamUnavailable("no such file")]
    async with compositor() as made:
        with pytest.raises(UpstreamUnavailable, match="no such file"):
            await made.mount(A, server, resources=[trail.needs("folder"), trail.needs("container")])
        assert trail == ["enter folder", "enter container", "leave container", "leave folder"]
        assert (server.wires, made.registry.mounts) == ([], [])
        await made.mount(A, server)


@jumping
async def test_what_cannot_be_entered_fails_the_mount_and_the_server_is_not_started() -> None:
    trail, server = Trail(), FakeServer("a")
    async with compositor() as made:
        with pytest.raises(OSError, match="container cannot be had"):
            await made.mount(A, server, resources=[trail.needs("folder"), trail.cannot_enter("container")])
        assert trail == ["enter folder", "enter container", "leave folder"]
        assert (server.wires, made.registry.mounts) == ([], [])


@jumping
async def test_of_a_prefix_that_is_taken_nothing_is_entered() -> None:
    trail = Trail()
    async with compositor(FakeServer("a")) as made:
        with pytest.raises(AlreadyMounted):
            await made.mount(A, FakeServer("a"), resources=[trail.needs("folder")])
    assert trail == []


@pytest.mark.parametrize("ending", ["unmount", "leave", "fail", "cancel"])
@jumping
async def test_whoever_entered_something_is_the_one_who_leaves_it(ending: str) -> None:
    # A task group of anyio's, and whatever is built on one, must be left by the task that entered it.
    trail = Trail()
    async with compositor() as made:
        if ending == "fail":
            with pytest.raises(OSError, match="cannot be had"):
                await made.mount(
                    A, FakeServer("a"), resources=[trail.one_task("x"), trail.cannot_enter("container")]
                )
        elif ending == "cancel":
            slow = HangingServer("a")
            await cancelled_after(1, made.mount(A, slow, resources=[trail.one_task("x")]))
        else:
            await made.mount(A, FakeServer("a"), resources=[trail.one_task("x")])
        if ending == "unmount":
            await made.unmount(A)
    assert (trail[0], trail[-1]) == ("enter x", "leave x")


@pytest.mark.parametrize("ending", ["unmount", "close", "leave"])
@jumping
async def test_what_is_being_entered_when_the_mount_is_closed_is_left(ending: str) -> None:
    trail = Trail()
    made = await Compositor(ALONE).__aenter__()
    resources = [trail.needs("folder"), trail.takes("container", entering=10)]
    mounting = asyncio.get_running_loop().create_task(made.mount(A, FakeServer("a"), resources=resources))
    await asyncio.sleep(1)
    if ending == "unmount":
        await made.unmount(A)
    elif ending == "close":
        await made.close()
    if ending != "leave":
        assert trail[-2:] == ["left container", "leave folder"]
    await made.__aexit__(None, None, None)
    assert trail == ["enter folder", "enter container", "leave container", "left container", "leave folder"]
    with pytest.raises(RuntimeError, match="was unmounted before it was up"):
        await mounting
    assert now() < 2


# ---- cancelled in the middle


@pytest.mark.parametrize("stage", ["entering", "starting"])
@jumping
async def test_a_mount_that_is_cancelled_leaves_nothing_open(stage: str) -> None:
    trail, server = Trail(), HangingServer("a")
    resources = [trail.needs("folder"), trail.takes("container", entering=LONG if stage == "entering" else 0)]
    async with compositor() as made:
        await cancelled_after(5, made.mount(A, server, resources=resources))
        assert trail[-2:] == ["left container", "leave folder"]
        assert all(wire.closed for wire in server.wires)
        assert made.registry.mounts == []


@pytest.mark.requirement("S3-18")
@jumping
async def test_an_unmount_that_is_cancelled_closes_everything_first() -> None:
    trail, server = Trail(), Lingering("a", seconds=3)
    async with compositor() as made:
        mount = await made.mount(A, server, resources=[trail.takes("container", leaving=2)])
        await cancelled_after(1, made.unmount(A))
        assert mount.state is MountState.CLOSED
        assert server.wire.closed
        assert trail[-1] == "left container"
        assert now() == pytest.approx(5, abs=0.01)


@jumping
async def test_whoever_cancels_an_unmount_does_not_wait_for_the_calls_any_more() -> None:
    server = FakeServer("a", tools=["t"])
    server.hang("tools/call")
    async with compositor() as made, RawClient(made) as raw:
        await made.mount(A, server)
        raw.initialize()
        raw.say("tools/call", 2, name="a__t")
        await quiet()
        await cancelled_after(1, made.unmount(A, drain=50))
        assert server.wire.closed
        assert now() < 2
        await raw.answered()
        assert "stopped during tools/call" in words(raw.answer(2)["result"])


@pytest.mark.requirement("S3-17")
@jumping
async def test_leaving_that_is_cancelled_again_and_again_closes_everything_first() -> None:
    servers = [Lingering("a", seconds=3), Lingering("b", seconds=1)]

    async def life() -> None:
        async with Compositor(ALONE) as made:
            for server in servers:
                await made.mount(MountPrefix(server.name), server)

    living = asyncio.get_running_loop().create_task(life())
    for _ in range(3):
        await asyncio.sleep(0.5)
        living.cancel()
    await asyncio.wait((living,))
    assert living.cancelled()
    assert all(server.wire.closed for server in servers)


@pytest.mark.requirement("S3-17")
@jumping
async def test_a_body_that_is_cancelled_is_cleaned_up_after() -> None:
    server = Lingering("a")

    async def life() -> None:
        async with Compositor(ALONE) as made:
            await made.mount(A, server)
            await asyncio.sleep(LONG)

    await cancelled_after(5, life())
    assert server.wire.closed


@jumping
async def test_leaving_waits_for_an_unmount_that_somebody_else_began() -> None:
    trail, server = Trail(), Lingering("a", seconds=3)
    async with Compositor(ALONE) as made:
        await made.mount(A, server, resources=[trail.takes("container", leaving=2)])
        unmounting = asyncio.get_running_loop().create_task(made.unmount(A))
        await quiet()
    assert server.wire.closed
    assert trail[-1] == "left container"
    await unmounting


@jumping
async def test_leaving_does_not_wait_for_calls_that_an_unmount_would_let_finish() -> None:
    server = FakeServer("a", tools=["t"])
    server.hang("tools/call")
    async with Compositor(ALONE) as made:
        await made.mount(A, server)
        raw = await RawClient(made).__aenter__()
        raw.initialize()
        raw.say("tools/call", 2, name="a__t")
        await quiet()
        unmounting = asyncio.get_running_loop().create_task(made.unmount(A, drain=LONG))
        await quiet()
    assert server.wire.closed
    await unmounting
    assert now() < 1


# ---- what fails or hangs


@pytest.mark.requirement("BD-10", "S3-17")
@jumping
async def test_one_cleanup_that_fails_does_not_stop_the_others_and_is_told_at_the_end() -> None:
    trail, servers = Trail(), [FakeServer("a"), FakeServer("b"), FakeServer("c")]

    async def life() -> None:
        async with Compositor(ALONE) as made:
            await made.mount(A, servers[0], resources=[trail.needs("first"), trail.cannot_leave("second")])
            await made.mount(B, servers[1], resources=[trail.needs("third")])
            await made.mount(C, servers[2])

    with pytest.RaisesGroup(
        pytest.RaisesGroup(pytest.RaisesExc(OSError, match="second is sticky"), match="closing 'a' failed"),
        match="closing the compositor failed",
    ):
        await life()
    assert all(server.wire.closed for server in servers)
    assert {"leave first", "leave second", "leave third"} <= set(trail)


@pytest.mark.requirement("BD-10")
@jumping
async def test_close_goes_on_after_a_failure_and_raises_at_the_end() -> None:
    trail, server = Trail(), FakeServer("b")
    async with compositor() as made:
        mount = await made.mount(A, FakeServer("a"), resources=[trail.cannot_leave("folder")])
        await made.mount(B, server)
        with pytest.raises(ExceptionGroup, match="closing the compositor failed"):
            await made.close()
        assert server.wire.closed
        assert mount.state is MountState.CLOSED


@pytest.mark.requirement("BD-10")
@jumping
async def test_what_the_body_raised_goes_on_whatever_cleaning_up_raises() -> None:
    trail = Trail()

    async def life() -> None:
        async with Compositor(ALONE) as made:
            await made.mount(A, FakeServer("a"), resources=[trail.cannot_leave("folder")])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await life()
    assert trail[-1] == "leave folder"


@jumping
async def test_an_unmount_whose_cleanup_fails_says_so_and_the_prefix_is_free() -> None:
    trail = Trail()
    async with compositor() as made:
        await made.mount(A, FakeServer("a"), resources=[trail.needs("x"), trail.cannot_leave("folder")])
        with pytest.raises(ExceptionGroup, match="closing 'a' failed"):
            await made.unmount(A)
        assert trail[-1] == "leave x"
        await made.mount(A, FakeServer("a"))


@jumping
async def test_a_cleanup_that_hangs_is_given_up_and_the_rest_is_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trail = Trail()
    async with compositor() as made:
        server = Lingering("a", seconds=LONG)
        await made.mount(A, server, resources=[trail.needs("folder")])
        await made.mount(B, FakeServer("b"), resources=[trail.takes("container", leaving=LONG)])
        with pytest.raises(ExceptionGroup) as failed, caplog.at_level(logging.WARNING, "plait"):
            await made.close()
        assert now() == pytest.approx(CLEANING_UP, abs=2)
        assert "leave folder" in trail
        assert failed.group_contains(TimeoutError, match=f"within {CLEANING_UP:g} s")
        assert made.registry.mounts == []
        server.seconds = 0


@jumping
async def test_a_cleanup_that_will_not_be_cancelled_is_left_behind_and_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    let_go = asyncio.Event()

    class Stubborn:
        async def __aenter__(self) -> None: ...
        async def __aexit__(self, *exc: object) -> None:
            while not let_go.is_set():
                try:
                    await let_go.wait()
                except asyncio.CancelledError:
                    continue

    server = FakeServer("a")
    async with compositor() as made:
        await made.mount(A, server, resources=[Stubborn()])
        with pytest.raises(ExceptionGroup, match="closing 'a' failed"):
            await made.unmount(A)
        assert server.wire.closed
        assert now() < 2 * CLEANING_UP
    let_go.set()
    await quiet()


@jumping
async def test_a_tool_that_will_not_be_cancelled_does_not_keep_us_from_leaving() -> None:
    let_go = asyncio.Event()

    async def stubborn() -> str:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    server = FakeServer("a")
    async with Compositor(ALONE) as made:
        await made.mount(A, server)
        await made.mount(B, FunctionProvider("b", [stubborn]))
        raw = await RawClient(made).__aenter__()
        raw.initialize()
        raw.say("tools/call", 2, name="b__stubborn")
        await quiet()
    assert server.wire.closed
    assert now() < 60
    let_go.set()
    await quiet()


# ---- a start that nobody expected to fail so


@jumping
async def test_a_mistake_in_an_opener_fails_the_mount_and_is_tried_again_in_the_background() -> None:
    class Mistaken(FakeServer):
        mistakes = 1

        async def open(self, *args: object) -> object:  # type: ignore[override]
            if self.mistakes:
                self.mistakes -= 1
                raise KeyError("oops")
            return await super().open(*args)  # type: ignore[arg-type]

    async with Compositor(ALONE) as made:
        with pytest.raises(UpstreamUnavailable, match="KeyError: 'oops'"):
            await made.mount(A, Mistaken("a"))
        mount = await made.mount(A, Mistaken("a"), wait=False)
        async with Client(made):
            await quiet()
            assert (mount.state, "oops" in mount.reason) == (MountState.FAILED, True)
            await asyncio.sleep(10)
            assert (mount.state, mount.reason) == (MountState.ACTIVE, "running")
