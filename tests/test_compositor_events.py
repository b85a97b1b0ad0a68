"""What listeners of a compositor are told, and mounting all servers of a configuration at once."""

import asyncio
import logging

import pytest

from clients import ALONE, Client, compositor
from clock import jumping, now, quiet
from fakes import FakeServer, HangingServer
from plait.compositor import Compositor
from plait.config.model import Config, HttpServer, PythonServer, Server, ServerSettings
from plait.errors import UpstreamUnavailable
from plait.mounts.mount import Mount
from plait.mounts.state import MountEvent, MountState
from plait.routing.naming import MountPrefix
from trail import Trail, cancelled_after

A, B = MountPrefix("a"), MountPrefix("b")


class Ear:
    """Writes down what it is told, and in what state the mount was then."""

    def __init__(self, made: Compositor) -> None:
        self._made = made
        self.heard: list[tuple[str, str]] = []

    def __call__(self, prefix: MountPrefix, event: MountEvent) -> None:
        mounts = [mount for mount in self._made.registry.mounts if mount.prefix == prefix]
        self.heard.append((event.value, mounts[0].state.value if mounts else "gone"))


# ---- events


@pytest.mark.requirement("BD-12")
@jumping
async def test_a_mount_says_its_state_then_that_it_is_mounted_and_last_that_it_is_not() -> None:
    async with compositor() as made:
        ear = Ear(made)
        made.add_mount_listener(ear)
        await made.mount(A, FakeServer("a"))
        assert ear.heard == [("state", "active"), ("mounted", "active")]
        ear.heard.clear()
        await made.unmount(A)
        assert ear.heard == [("state", "gone"), ("unmounted", "gone")], "after it was taken out"
    assert [event.value for event in MountEvent] == ["mounted", "unmounted", "state"]


@pytest.mark.requirement("BD-12", "BD-08")
@jumping
async def test_a_mount_that_fails_says_its_state_only() -> None:
    server = FakeServer("a")
    server.failures = [UpstreamUnavailable("no such file")]
    async with compositor() as made:
        ear = Ear(made)
        made.add_mount_listener(ear)
        with pytest.raises(UpstreamUnavailable, match="no such file"):
            await made.mount(A, server)
        assert ear.heard == [("state", "failed"), ("state", "gone")]


@pytest.mark.requirement("BD-08")
@jumping
async def test_in_the_background_a_start_that_fails_is_a_state_of_a_mount_that_stays() -> None:
    server = FakeServer("a")
    server.failures = [UpstreamUnavailable("no such file")]
    async with compositor() as made, Client(made):
        mount = await made.mount(A, server, wait=False)
        await quiet()
        assert (mount.state, str(mount.problem)) == (MountState.FAILED, "no such file")
        assert made.registry.find(A) is mount
        await asyncio.sleep(5)
        assert (mount.state, mount.problem) == (MountState.ACTIVE, None)


@pytest.mark.requirement("BD-12")
@jumping
async def test_each_state_that_a_server_goes_through_is_told() -> None:
    server = FakeServer("a")
    async with compositor() as made:
        await made.mount(A, server)
        ear = Ear(made)
        made.add_mount_listener(ear)
        server.end()
        await asyncio.sleep(5)
        assert ear.heard == [("state", "failed"), ("state", "pending"), ("state", "active")]


@pytest.mark.requirement("BD-12")
@jumping
async def test_listeners_may_be_coroutines_and_hear_in_the_same_order() -> None:
    heard: list[MountEvent] = []

    async def slow(prefix: MountPrefix, event: MountEvent) -> None:
        await asyncio.sleep(1)
        heard.append(event)

    async with Compositor(ALONE) as made:
        made.add_mount_listener(slow)
        await made.mount(A, FakeServer("a"))
        assert now() < 0.1, "nobody waits for a listener"
    assert heard == [MountEvent.STATE, MountEvent.MOUNTED, MountEvent.STATE, MountEvent.UNMOUNTED]


@pytest.mark.requirement("BD-12")
@jumping
async def test_a_listener_that_fails_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def broken(prefix: MountPrefix, event: MountEvent) -> None:
        raise ZeroDivisionError

    async def broken_later(prefix: MountPrefix, event: MountEvent) -> None:
        raise ZeroDivisionError

    with caplog.at_level(logging.CRITICAL, "plait"):
        async with compositor() as made:
            ear = Ear(made)
            for listener in (broken, broken_later, ear):
                made.add_mount_listener(listener)
            await made.mount(A, FakeServer("a"))
            await made.unmount(A)
            assert [event for event, _ in ear.heard] == ["state", "mounted", "state", "unmounted"]


@jumping
async def test_whoever_stops_listening_hears_no_more_and_may_say_so_twice() -> None:
    async with compositor() as made:
        ear = Ear(made)
        stop = made.add_mount_listener(ear)
        await made.mount(A, FakeServer("a"))
        stop()
        stop()
        await made.unmount(A)
        assert [event for event, _ in ear.heard] == ["state", "mounted"]


@jumping
async def test_whoever_listens_before_it_is_entered_misses_nothing() -> None:
    made = Compositor(ALONE)
    ear = Ear(made)
    made.add_mount_listener(ear)
    async with made:
        await made.mount(A, FakeServer("a"))
    assert [event for event, _ in ear.heard] == ["state", "mounted", "state", "unmounted"]


@jumping
async def test_a_listener_that_never_ends_does_not_keep_us() -> None:
    async def endless(prefix: MountPrefix, event: MountEvent) -> None:
        await asyncio.sleep(100_000)

    async with Compositor(ALONE) as made:
        made.add_mount_listener(endless)
        await made.mount(A, FakeServer("a"))
    assert now() < 10


@jumping
async def test_a_listener_may_unmount_what_it_hears_of() -> None:
    async with compositor() as made:

        async def unmount(prefix: MountPrefix, event: MountEvent) -> None:
            if event is MountEvent.MOUNTED:
                await made.unmount(prefix)

        made.add_mount_listener(unmount)
        await made.mount(A, FakeServer("a"))
        await quiet()
        assert made.registry.mounts == []


# ---- all servers of a configuration


class Shelf:
    """Scripted servers, as a configuration names them: `shelf:a`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *servers: FakeServer) -> None:
        self._servers = {server.name: server for server in servers}
        monkeypatch.setattr("plait.openers.load_provider", lambda place, where: self._servers[place[6:]])

    def config(self, *others: Server) -> Config:
        named = [PythonServer(name=name, module=f"shelf:{name}") for name in self._servers]
        return Config(servers=(*named, *others))


@pytest.mark.requirement("BD-05")
@jumping
async def test_all_servers_of_a_configuration_are_mounted_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    servers = [HangingServer(name) for name in ("a", "b", "c")]
    shelf = Shelf(monkeypatch, *servers)
    for server in servers:
        asyncio.get_running_loop().call_later(10, server.go_on)
    async with compositor() as made:
        outcomes = await made.mount_servers_from_config(shelf.config())
        assert outcomes == {"a": None, "b": None, "c": None}
        assert [str(mount.prefix) for mount in made.registry.mounts] == ["a", "b", "c"]
        assert now() == pytest.approx(10, abs=0.1)


@pytest.mark.requirement("BD-05")
@jumping
async def test_problems_can_be_collected_and_the_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = FakeServer("good"), FakeServer("bad")
    bad.failures = [UpstreamUnavailable("no such file")]
    wrong = HttpServer(name="taken", url="http://127.0.0.1:9", settings=ServerSettings(prefix="good"))
    async with compositor() as made:
        outcomes = await made.mount_servers_from_config(
            Shelf(monkeypatch, good, bad).config(wrong), on_error="collect"
        )
        assert {name: str(problem) for name, problem in outcomes.items() if name != "taken"} == {
            "good": "None",
            "bad": "no such file",
        }
        assert isinstance(outcomes["taken"], ValueError)
        assert [str(mount.prefix) for mount in made.registry.mounts] == ["good"]


@pytest.mark.requirement("BD-05", "K-19")
@jumping
async def test_after_a_problem_none_of_them_stays_and_all_problems_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good, bad, worse = FakeServer("good"), FakeServer("bad"), FakeServer("worse")
    bad.failures = [UpstreamUnavailable("no such file")]
    worse.failures = [UpstreamUnavailable("no such user")]
    async with compositor() as made:
        before = await made.mount(A, FakeServer("a"))
        with pytest.raises(UpstreamUnavailable, match="no such file") as raised:
            await made.mount_servers_from_config(Shelf(monkeypatch, good, bad, worse).config())
        assert raised.value.__notes__ == ["another server failed too: no such user"]
        assert made.registry.mounts == [before]
        assert good.wire.closed


@pytest.mark.requirement("K-19")
@jumping
async def test_one_that_cannot_be_unmounted_does_not_keep_the_others_mounted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sticky, good, bad = FakeServer("sticky"), FakeServer("good"), FakeServer("bad")
    bad.failures = [UpstreamUnavailable("no such file")]
    trail = Trail()
    own = Mount.own

    async def own_more(self: Mount, belongings: object) -> None:
        await own(self, [trail.cannot_leave("folder")] if self.name == "sticky" else [])

    monkeypatch.setattr(Mount, "own", own_more)
    async with compositor() as made:
        with pytest.raises(UpstreamUnavailable, match="no such file"):
            await made.mount_servers_from_config(Shelf(monkeypatch, sticky, good, bad).config())
        assert made.registry.mounts == []
        assert sticky.wire.closed
        assert good.wire.closed


@pytest.mark.requirement("K-19")
@jumping
async def test_cancelled_in_the_middle_it_leaves_nothing_mounted(monkeypatch: pytest.MonkeyPatch) -> None:
    quick, slow = FakeServer("quick"), HangingServer("slow")
    async with compositor() as made:
        shelf = Shelf(monkeypatch, quick, slow)
        for on_error in ("raise", "collect"):
            await cancelled_after(5, made.mount_servers_from_config(shelf.config(), on_error))
            assert made.registry.mounts == []
            assert quick.wire.closed
            assert slow.wire.closed
