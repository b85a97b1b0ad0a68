"""Clients as the compositor knows them: held no longer than they are there, and none is another's trouble."""

import gc
import logging
import weakref

import pytest

from clients import Client, RawClient, compositor
from clock import jumping, quiet
from fakes import FakeServer, words
from plait import Client as PlaitClient
from plait.cli.session import describe
from plait.mounts.state import MountState
from plait.notices import Notices
from plait.routing.naming import MountPrefix
from plait.wire.spec import Kind

A = MountPrefix("a")


class Broken(RawClient):
    """A client whose pipe breaks."""

    broken = False

    def write(self, message: bytes, within: bytes | None = None) -> None:
        if self.broken:
            raise OSError("no space left")
        super().write(message)


@pytest.mark.requirement("BD-31")
@jumping
async def test_a_client_that_cannot_be_written_to_is_dropped_and_nobody_else_notices(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = FakeServer("a", tools=["t"], capabilities={"tools": {}, "logging": {}})
    async with compositor(server) as made, Broken(made) as broken, RawClient(made) as other:
        for client in (broken, other):
            client.initialize()
        await quiet()
        broken.broken = True
        with caplog.at_level(logging.CRITICAL, "plait"):
            for number in range(3):
                server.notify("notifications/message", {"level": "info", "data": number})
            broken.say("tools/list", 5)
            await quiet()
        assert len(other.told("notifications/message")) == 3
        assert len(server.wires) == 1, "the server's session lives on"
        other.say("tools/call", 5, name="a__t")
        await other.answered()
        assert "result" in other.answer(5)


@pytest.mark.requirement("BD-31")
@jumping
async def test_a_client_that_has_left_is_held_by_nobody() -> None:
    server = FakeServer("a", resources=["x:1"], capabilities={"resources": {"subscribe": True}})
    async with compositor(server) as made:
        async with RawClient(made) as client:
            client.initialize()
            for id, method in enumerate(("resources/subscribe", "resources/read"), 2):
                client.say(method, id, uri="x:1")
            await client.answered()
            held = weakref.ref(client.connection)
        await quiet()
        del client
        gc.collect()
        assert held() is None


@pytest.mark.requirement("BD-31")
@jumping
async def test_what_changed_before_anybody_came_is_told_to_the_first_who_comes() -> None:
    server = FakeServer("a", tools=["t"], resources=["x:1"])
    async with compositor() as made:
        await made.mount(A, server)
        server.updated("x:1")
        server.change(Kind.TOOLS, ["t", "u"])
        await quiet()
        async with PlaitClient(made) as first, PlaitClient(made) as second:
            assert first.notifications.poll() == {"a": Notices(frozenset(["x:1"]), list_changed=False)}
            assert second.notifications.poll() == {}


@jumping
async def test_what_a_client_says_after_its_end_is_not_heard() -> None:
    server = FakeServer("a", tools=["t"])
    async with compositor(server) as made, RawClient(made) as client:
        client.initialize()
        await quiet()
        await made.disconnect(client.connection)
        client.say("tools/call", 5, name="a__t")
        await quiet()
        assert server.asked("tools/call") == []


@pytest.mark.requirement("K-13")
@jumping
async def test_a_mount_that_is_closed_says_so_and_not_that_it_starts() -> None:
    async with compositor() as made:
        mount = await made.mount(A, FakeServer("a"))
        await made.unmount(A)
        assert (mount.state, mount.reason, mount.usable) == (MountState.CLOSED, "closed", False)
        assert describe(mount)["state"] == "closed"
        assert repr(mount) == "<Mount a: closed, closed>"


@jumping
async def test_a_client_that_comes_while_servers_are_unmounted_sees_what_is_left() -> None:
    async with compositor(FakeServer("a", tools=["t"]), FakeServer("b", tools=["t"])) as made:
        await made.unmount(A)
        async with Client(made) as client:
            assert await client.names() == ["b__t"]
            assert "unknown" in words(await client.call("a__t"))
