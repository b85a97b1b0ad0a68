"""Servers that are started when they are used, stopped when they are not, or wait for a sign-in."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clients import Client, compositor
from clock import jumping, now, quiet
from fakes import FakeServer, words
from plait.compositor import Compositor
from plait.config.model import ServerSettings
from plait.errors import NeedsAuth, UpstreamUnavailable
from plait.mounts.mount import Mount
from plait.mounts.state import MountState
from plait.mounts.supervisor import SIGN_IN
from plait.routing.naming import MountPrefix
from plait.testing.server import Greeted
from plait.upstream.base import Link
from plait.upstream.client import Listener
from plait.upstream.recollection import Recollection
from plait.wire.spec import Kind
from trail import Lingering

A = MountPrefix("a")
LAZY, IDLE = ServerSettings(start="lazy"), ServerSettings(idle=60)
WATCHED = {"tools": {}, "resources": {"subscribe": True}}


class Remembered(FakeServer):
    """A server that is known from last time, in whatever run that was."""

    def __init__(self, folder: Path, seconds: float = 0.0) -> None:
        super().__init__("a", tools=["t"], resources=["x:1"], capabilities=WATCHED)
        self.recollection = Recollection(folder, ("a",))
        self._seconds = seconds
        self.openings = 0

    async def open(self, listener: Listener, behalf: Awaitable[Greeted]) -> Link:
        self.openings += 1
        await asyncio.sleep(self._seconds)
        return await super().open(listener, behalf)


@asynccontextmanager
async def serving(server: FakeServer, settings: ServerSettings) -> AsyncIterator[tuple[Compositor, Mount]]:
    async with compositor() as made:
        yield made, await made.mount(A, server, settings=settings, wait=False)


async def learn(folder: Path) -> None:
    """A first run: it must be started once to be known."""
    server = Remembered(folder)
    async with serving(server, LAZY) as (made, _), Client(made) as client:
        assert await client.names() == ["a__t"]
    assert server.openings == 1


# ---- lazy


@jumping
async def test_a_lazy_server_is_listed_from_last_time_and_started_when_it_is_used(tmp_path: Path) -> None:
    await learn(tmp_path)
    server = Remembered(tmp_path)
    async with serving(server, LAZY) as (made, mount), Client(made) as client:
        assert await client.names() == ["a__t"]
        await asyncio.sleep(10_000)
        assert (server.openings, mount.state, mount.usable) == (0, MountState.PENDING, True)
        assert mount.reason == "asleep; started when it is first used"
        assert words(await client.call("a__t")) == "a: t {}"
        assert (server.openings, mount.state, mount.reason) == (1, MountState.ACTIVE, "running")
        assert client.notes == [], "its lists are as they were"


@jumping
async def test_many_calls_at_once_start_it_once(tmp_path: Path) -> None:
    await learn(tmp_path)
    server = Remembered(tmp_path, seconds=20)
    async with serving(server, LAZY) as (made, _), Client(made) as client:
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(client.call("a__t", n=n)) for n in range(5)]
        assert [words(each.result()) for each in calls] == [f'a: t {{"n":{n}}}' for n in range(5)]
        assert server.openings == 1
        assert now() == pytest.approx(20, abs=0.1), "its whole start is waited for"


@jumping
async def test_what_it_offers_to_other_clients_is_remembered_apart(tmp_path: Path) -> None:
    await learn(tmp_path)
    server = Remembered(tmp_path)
    async with serving(server, LAZY) as (made, _), Client(made, {"roots": {}}) as client:
        await client.names()
        assert server.openings == 1, "it has never been asked by such a client"


@jumping
async def test_lists_that_turn_out_to_be_others_are_told(tmp_path: Path) -> None:
    await learn(tmp_path)
    server = Remembered(tmp_path)
    server.lists[Kind.TOOLS] = ["t", "new"]
    async with serving(server, LAZY) as (made, _), Client(made) as client:
        assert await client.names() == ["a__t"]
        await client.call("a__t")
        assert client.notes == [("notifications/tools/list_changed", {})]
        assert await client.names() == ["a__t", "a__new"]


@jumping
async def test_a_lazy_server_that_cannot_be_started_is_told_at_once(tmp_path: Path) -> None:
    await learn(tmp_path)
    server = Remembered(tmp_path)
    server.failures = [UpstreamUnavailable("no such file")]
    async with serving(server, LAZY) as (made, _), Client(made) as client:
        result = await client.call("a__t")
        assert (result["isError"], now() < 0.01) == (True, True)
        assert "no such file" in words(result)
        await asyncio.sleep(5)
        assert words(await client.call("a__t")) == "a: t {}", "it was tried again"


@jumping
async def test_a_lazy_server_is_mounted_asleep_and_unmounted_asleep(tmp_path: Path) -> None:
    await learn(tmp_path)
    server = Remembered(tmp_path)
    async with compositor() as made:
        mount = await made.mount(A, server, settings=LAZY)
        assert mount.usable
        await made.unmount(A)
        assert (server.openings, mount.state) == (0, MountState.CLOSED)


@jumping
async def test_a_subscription_starts_it_too(tmp_path: Path) -> None:
    await learn(tmp_path)
    server = Remembered(tmp_path)
    async with serving(server, LAZY) as (made, _), Client(made) as client:
        await client.send("resources/subscribe", uri="x:1")
        assert server.asked("resources/subscribe") == [{"uri": "x:1"}]


# ---- idle


@jumping
async def test_an_idle_server_is_stopped_and_the_next_call_starts_it() -> None:
    server = FakeServer("a", tools=["t"])
    async with serving(server, IDLE) as (made, mount), Client(made) as client:
        await client.call("a__t")
        await asyncio.sleep(30)
        assert not server.wire.closed
        await asyncio.sleep(120)
        assert (server.wire.closed, mount.state, mount.usable) == (True, MountState.PENDING, True)
        assert "asleep" in mount.reason
        assert await client.names() == ["a__t"]
        assert words(await client.call("a__t")) == "a: t {}"
        assert (len(server.wires), mount.state) == (2, MountState.ACTIVE)
        assert client.notes == []


@jumping
async def test_whoever_uses_it_now_and_then_keeps_it_awake() -> None:
    server = FakeServer("a", tools=["t"])
    async with serving(server, IDLE) as (made, _), Client(made) as client:
        for _ in range(10):
            await client.call("a__t")
            await asyncio.sleep(45)
        assert len(server.wires) == 1


@jumping
async def test_a_call_that_takes_long_keeps_it_awake() -> None:
    server = FakeServer("a", tools=["t"])
    held = server.hang("tools/call")
    settings = ServerSettings(idle=60, timeout=3600)
    server.timeout = 3600
    async with serving(server, settings) as (made, _), Client(made) as client, asyncio.TaskGroup() as group:
        calling = group.create_task(client.call("a__t"))
        await asyncio.sleep(1000)
        assert not server.wire.closed
        held.answer({"content": []})
        await calling


@jumping
async def test_whoever_watches_a_resource_keeps_it_awake() -> None:
    server = FakeServer("a", resources=["x:1"], capabilities=WATCHED)
    async with serving(server, IDLE) as (made, mount), Client(made) as client:
        await client.send("resources/subscribe", uri="x:1")
        await asyncio.sleep(1000)
        server.updated("x:1")
        await quiet()
        assert client.told("notifications/resources/updated") == [{"uri": "x:1"}]
        await client.send("resources/unsubscribe", uri="x:1")
        await asyncio.sleep(1000)
        assert (server.wire.closed, mount.usable) == (True, True)


@jumping
async def test_a_question_that_somebody_ponders_keeps_it_awake() -> None:
    server = FakeServer("a", tools=["t"])
    async with serving(server, IDLE) as (made, _), Client(made, {"roots": {}}) as client:
        await client.names()
        held = client.answers["roots/list"] = server.hang("nothing")
        server.ask("q", "roots/list")
        await asyncio.sleep(500)
        assert not server.wire.closed
        held.answer({"roots": []})
        await quiet()
        assert server.wire.replies["q"]["result"] == {"roots": []}


@jumping
async def test_a_call_while_it_is_being_stopped_waits_for_the_next_start() -> None:
    server = Lingering("a", seconds=20)
    async with serving(server, IDLE) as (made, mount), Client(made) as client:
        await client.names()
        await asyncio.sleep(61)
        assert (mount.link, server.wire.closed) == (None, False), "it is just being stopped"
        assert words(await client.call("a__t")) == "a: t {}"
        assert len(server.wires) == 2
        server.seconds = 0


@jumping
async def test_whoever_wanted_it_before_it_was_up_does_not_wake_it_later() -> None:
    server = FakeServer("a", tools=["t"])
    server.failures = [UpstreamUnavailable("no such file")]
    async with serving(server, IDLE) as (made, mount), Client(made) as client:
        await quiet()
        assert "not up" in words(await client.call("a__t"))
        await asyncio.sleep(1000)
        assert (mount.usable, len(server.wires), server.wire.closed) == (True, 1, True)


@pytest.mark.parametrize("after", [61, 100])
@jumping
async def test_unmounting_one_that_is_being_stopped_or_sleeps_closes_it_whole(after: float) -> None:
    server = Lingering("a", seconds=10)
    async with serving(server, IDLE) as (made, mount):
        async with Client(made) as client:
            await client.names()
        await asyncio.sleep(after)
        await made.unmount(A)
        assert (server.wire.closed, mount.state) == (True, MountState.CLOSED)


# ---- a server that wants somebody to sign in


@jumping
async def test_one_that_wants_a_sign_in_is_not_asked_again_until_somebody_wants_to_use_it() -> None:
    server = FakeServer("a", tools=["t"])
    server.failures = [NeedsAuth("sign in first")] * 100
    async with serving(server, ServerSettings()) as (made, mount), Client(made) as client:
        await asyncio.sleep(SIGN_IN / 2)
        began = now()
        refused = await client.call("a__t")
        assert "needs auth: sign in first" in words(refused)
        assert now() == began, "nobody waits for it"
        assert (mount.state, len(server.failures)) == (MountState.FAILED, 99)
        await asyncio.sleep(100_000)
        assert len(server.failures) == 99, "not tried again for ever"
        await client.call("a__t")
        await asyncio.sleep(100_000)
        assert len(server.failures) == 98, "once for whoever wanted it"
        server.failures.clear()
        await client.call("a__t")
        await asyncio.sleep(1)
        assert await client.names() == ["a__t"], "somebody has signed in meanwhile"


@jumping
async def test_a_mount_that_wants_a_sign_in_raises_that_and_leaves_nothing() -> None:
    server = FakeServer("a", tools=["t"])
    server.failures = [NeedsAuth("sign in first")]
    async with compositor() as made:
        with pytest.raises(NeedsAuth, match="sign in first"):
            await made.mount(A, server)
        assert made.registry.mounts == []
