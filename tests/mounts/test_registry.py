"""All mounts: each change publishes a new catalog, and tells the clients whose lists are old."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from clock import jumping, now, quiet
from fakes import FakeServer, HangingServer, Held, Message
from plait.config.model import ServerSettings
from plait.errors import AlreadyMounted, UpstreamUnavailable
from plait.mounts.mount import Mount
from plait.mounts.registry import Registry
from plait.mounts.state import MountState
from plait.mounts.view import View
from plait.routing.naming import MountPrefix, Naming
from plait.wire.address import as_raw
from plait.wire.envelope import EMPTY, Fields
from plait.wire.spec import LATEST_HANDSHAKE, Kind
from seams import FakeCaller

TOOLS_CHANGED: tuple[str, Message] = ("notifications/tools/list_changed", {})


@contextlib.asynccontextmanager
async def registry(*servers: FakeServer, greeted: bool = True) -> AsyncIterator[Registry]:
    made = Registry(Naming(), 5.0)
    try:
        for server in servers:
            await mount(made, server)
        if greeted:
            made.join(FakeCaller())
        yield made
    finally:
        await made.aclose()


async def mount(registry: Registry, server: FakeServer) -> Mount:
    return await registry.mount(MountPrefix(server.name), server.name, server, ServerSettings())


def seen(registry: Registry) -> View:
    """What the client sees that was there first."""
    return next(iter(registry._views.values()))


def tools(registry: Registry) -> list[str]:
    return list(registry.catalog.tools.routes)


# ---- mounting


@jumping
async def test_a_prefix_is_taken_once() -> None:
    async with registry(FakeServer("a")) as made:
        with pytest.raises(AlreadyMounted, match="a is already mounted"):
            await mount(made, FakeServer("a"))
        await made.mount(MountPrefix.none(), "x", FakeServer("x"), ServerSettings())
        await made.mount(MountPrefix.none(), "y", FakeServer("y"), ServerSettings())
        with pytest.raises(ValueError, match=r"\(y\) is already mounted"):
            await made.mount(MountPrefix.none(), "y", FakeServer("y"), ServerSettings())
        assert [str(one.prefix) for one in made.mounts] == ["a", "", ""]


@jumping
async def test_nobody_is_greeted_before_a_client_is_known() -> None:
    server = FakeServer("a", tools=["t"])
    async with registry(server, greeted=False) as made:
        await asyncio.sleep(1000)
        assert server.requests == []
        made.join(FakeCaller("ann", {"roots": {"listChanged": True}, "made_up": {}}, "2025-06-18"))
        await quiet()
        [behalf] = server.behalf
        assert (list(behalf.capabilities), behalf.revision) == (["roots"], "2025-06-18")


@jumping
async def test_of_clients_that_share_a_session_the_first_one_says_the_revision() -> None:
    server = FakeServer("a")
    async with registry(server) as made:
        made.join(FakeCaller(revision="2025-06-18"))
        await quiet()
        [behalf] = server.behalf
        assert (behalf.revision, behalf.capabilities) == (LATEST_HANDSHAKE, {})


@jumping
async def test_servers_start_in_parallel_and_one_that_hangs_delays_nobody() -> None:
    async with registry(HangingServer("slow"), FakeServer("quick", tools=["t"])) as made:
        await quiet()
        assert tools(made) == ["quick__t"]


@jumping
async def test_the_catalog_keeps_the_order_of_mounting_whoever_starts_first() -> None:
    first = HangingServer("first")
    async with registry(first, FakeServer("second", tools=["t"])) as made:
        await quiet()
        assert tools(made) == ["second__t"]
        first.go_on()
        await quiet()
        assert tools(made) == ["first__t", "second__t"]


@jumping
async def test_a_server_that_cannot_start_is_failed_and_the_others_serve() -> None:
    bad = FakeServer("bad")
    bad.failures = [UpstreamUnavailable("no such file") for _ in range(100)]
    async with registry(bad, FakeServer("good", tools=["t"])) as made:
        await quiet()
        assert [one.state for one in made.mounts] == [MountState.FAILED, MountState.ACTIVE]
        assert tools(made) == ["good__t"]


@jumping
async def test_a_mount_that_comes_later_gets_the_level_that_clients_want() -> None:
    async with registry() as made:
        seen(made).set_level(join(made), "warning")
        server = FakeServer("late", capabilities={"logging": {}})
        await mount(made, server)
        await quiet()
        assert server.asked("logging/setLevel") == [{"level": "warning"}]


# ---- waiting for those that start


@jumping
async def test_settled_waits_for_a_first_start() -> None:
    slow = HangingServer("slow")
    async with registry(slow) as made:
        await quiet()
        asyncio.get_running_loop().call_later(3, slow.go_on)
        await seen(made).settled()
        assert now() == pytest.approx(3, abs=0.01)
        assert tools(made) == ["slow__t"]


@jumping
async def test_settled_waits_no_longer_than_a_few_seconds_after_the_client_came() -> None:
    async with registry(HangingServer("slow")) as made:
        await asyncio.sleep(2)
        await seen(made).settled()
        assert now() == pytest.approx(5, abs=0.01)
        await seen(made).settled()
        assert now() == pytest.approx(5, abs=0.01)


@jumping
async def test_settled_waits_for_a_server_that_is_mounted_later_too() -> None:
    slow = HangingServer("slow")
    async with registry(FakeServer("quick", tools=["t"])) as made:
        await asyncio.sleep(100)
        await mount(made, slow)
        asyncio.get_running_loop().call_later(3, slow.go_on)
        await seen(made).settled()
        assert now() == pytest.approx(103, abs=0.01)
        assert tools(made) == ["quick__t", "slow__t"]


@jumping
async def test_settled_does_not_wait_for_a_server_that_has_failed_once() -> None:
    bad = FakeServer("bad")
    bad.failures = [UpstreamUnavailable("no such file") for _ in range(100)]
    async with registry(bad) as made:
        await seen(made).settled()
        assert now() < 1


@jumping
async def test_settled_ends_as_soon_as_there_is_enough() -> None:
    async with registry(HangingServer("slow"), FakeServer("quick", tools=["t"])) as made:
        await seen(made).settled(lambda: "quick__t" in made.catalog.tools.routes)
        assert now() < 1


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("slow__t", True),
        ("slow_t", True),
        ("slow.t", True),
        ("slower__t", False),
        ("quick__t", False),
        ("", False),
    ],
)
@jumping
async def test_a_name_of_a_server_that_is_not_up_says_so(name: str, told: bool) -> None:
    async with registry(HangingServer("slow"), FakeServer("quick")) as made:
        await quiet()
        expected = "server 'slow' is not up (starting)" if told else None
        assert seen(made).starting(name) == expected


# ---- what clients are told


def join(registry: Registry, *kinds: Kind) -> FakeCaller:
    caller = FakeCaller()
    view = registry.join(caller)
    for kind in kinds:
        view.audience.has_listed(caller, kind)
    return caller


@jumping
async def test_a_late_server_announces_itself_to_those_who_have_listed() -> None:
    async with registry() as made:
        listed, fresh = join(made, Kind.TOOLS), join(made)
        await mount(made, FakeServer("late", tools=["t"]))
        await quiet()
        assert (listed.heard, fresh.heard) == ([TOOLS_CHANGED], [])


@jumping
async def test_a_restart_with_the_same_lists_is_not_told() -> None:
    server = FakeServer("a", tools=["t"], resources=["x:1"])
    async with registry(server) as made:
        await quiet()
        client = join(made, *Kind)
        server.end()
        await asyncio.sleep(10)
        assert len(server.wires) == 2
        assert client.heard == []
        assert tools(made) == ["a__t"]


@jumping
async def test_a_restart_with_another_list_is_told_once() -> None:
    server = FakeServer("a", tools=["t"])
    async with registry(server) as made:
        await quiet()
        client = join(made)
        server.end()
        server.lists[Kind.TOOLS] = ["u"]
        await asyncio.sleep(10)
        assert client.heard == [TOOLS_CHANGED]
        assert tools(made) == ["a__u"]


@jumping
async def test_a_list_changed_without_a_change_is_not_told() -> None:
    server = FakeServer("a", tools=["t"])
    async with registry(server) as made:
        await quiet()
        client = join(made, Kind.TOOLS)
        server.notify("notifications/tools/list_changed")
        await asyncio.sleep(1)
        assert len(server.asked("tools/list")) == 2
        assert client.heard == []


@jumping
async def test_a_change_of_what_is_withheld_is_not_told() -> None:
    first, second = FakeServer("a", resources=["x:1"]), FakeServer("b", resources=["x:1"])
    async with registry(first, second) as made:
        await quiet()
        client = join(made, Kind.RESOURCES)
        second.lists[Kind.RESOURCES] = []
        second.notify("notifications/resources/list_changed")
        await asyncio.sleep(1)
        assert client.heard == []
        assert made.catalog.withheld == ()


@jumping
async def test_messages_updates_and_the_end_of_elicitations_find_their_clients() -> None:
    server = FakeServer("a", resources=["x:1"])
    async with registry(server) as made:
        await quiet()
        watching, other = join(made), join(made)
        exchange = watching.exchange("resources/subscribe", uri="x:1")
        await made.subscriptions.subscribe(seen(made).instances[0], exchange)
        server.notify("notifications/message", {"level": "info", "data": "d"})
        server.notify("notifications/resources/updated", {"uri": "x:1"})
        server.notify("notifications/elicitation/complete", {"elicitationId": "e"})
        await quiet()
        both = [
            ("notifications/message", {"level": "info", "data": "d", "logger": "a"}),
            ("notifications/elicitation/complete", {"elicitationId": "e"}),
        ]
        assert other.heard == both
        assert watching.heard == [both[0], ("notifications/resources/updated", {"uri": "x:1"}), both[1]]


@jumping
async def test_what_nobody_understands_or_wants_is_counted() -> None:
    server = FakeServer("a", resources=["x:1"])
    async with registry(server) as made:
        await quiet()
        client = join(made)
        server.notify("notifications/made/up", {"x": 1})
        server.notify("notifications/resources/updated", {"uri": "x:1"})
        server.notify("notifications/resources/updated", {"uri": 7})
        server.notify("notifications/resources/updated")
        await quiet()
        assert client.heard == []
        assert made.mounts[0].counters == {
            "unknown notification": 1,
            "update of a resource that nobody watches": 1,
            "malformed notification": 2,
        }


# ---- restarts and subscriptions


@jumping
async def test_after_a_restart_subscriptions_are_renewed() -> None:
    server = FakeServer("a", resources=["x:1"])
    async with registry(server) as made:
        await quiet()
        client = join(made)
        await made.subscriptions.subscribe(
            seen(made).instances[0], client.exchange("resources/subscribe", uri="x:1")
        )
        server.end()
        await asyncio.sleep(10)
        assert server.asked("resources/subscribe") == [{"uri": "x:1"}] * 2
        assert client.heard == [("notifications/resources/updated", {"uri": "x:1"})]


@jumping
async def test_a_subscription_that_cannot_be_renewed_is_counted_and_the_server_lives() -> None:
    server = FakeServer("a", resources=["x:1"])
    async with registry(server) as made:
        await quiet()
        client = join(made)
        await made.subscriptions.subscribe(
            seen(made).instances[0], client.exchange("resources/subscribe", uri="x:1")
        )
        server.answers["resources/subscribe"] = lambda params: Held()
        server.end()
        await asyncio.sleep(100)
        assert made.mounts[0].state is MountState.ACTIVE
        assert made.mounts[0].counters["subscription that could not be renewed"] == 1


# ---- questions


@jumping
async def test_a_question_goes_to_the_client_that_the_server_works_for() -> None:
    server = FakeServer("a", tools=["t"])
    held = Held()
    server.answers["tools/call"] = lambda params: held
    async with registry(server, greeted=False) as made:
        ann, bob = FakeCaller("team", {"roots": {}}), FakeCaller("team", {"roots": {}})
        for caller in (ann, bob):
            made.join(caller)
        await quiet()
        params: Fields = {"name": as_raw("t"), "arguments": EMPTY}
        async with asyncio.TaskGroup() as group:
            exchange = bob.exchange("tools/call", name="t")
            group.create_task(seen(made).instances[0].request("tools/call", params, exchange))
            await quiet()
            server.ask("q1", "roots/list")
            await quiet()
            held.answer({"content": []})
        assert (ann.asked, bob.asked) == ([], [("roots/list", {})])
        server.ask("q2", "roots/list")
        await quiet()
        assert "error" in server.wire.replies["q2"]


@jumping
async def test_a_question_right_after_the_handshake_is_answered_while_the_lists_are_read() -> None:
    # server-everything asks for the roots as soon as it is initialized.
    server = HangingServer("a", "tools/list")
    async with registry(server, greeted=False) as made:
        made.join(FakeCaller("ann", {"roots": {}}))
        await quiet()
        server.ask("q1", "roots/list")
        await quiet()
        assert server.wire.replies["q1"]["result"] == {}


# ---- its end


@jumping
async def test_closing_closes_every_mount_whatever_state_it_is_in() -> None:
    bad, good, slow = FakeServer("bad"), FakeServer("good", tools=["t"]), HangingServer("slow")
    bad.failures = [UpstreamUnavailable("no such file") for _ in range(100)]
    async with registry(bad, good, slow) as made:
        await quiet()
        mounts = made.mounts
    assert [one.state for one in mounts] == [MountState.CLOSED] * 3
    assert made.mounts == []
    assert good.wire.closed
    assert slow.wire.closed


@jumping
async def test_a_mount_that_fails_to_close_does_not_keep_the_others_open() -> None:
    first, second = FakeServer("first", tools=["t"]), FakeServer("second", tools=["t"])
    async with registry(first, second) as made:
        await quiet()

        async def fail() -> None:
            raise OSError("sticky")

        first.wire.aclose = fail  # type: ignore[method-assign]
        mounts = made.mounts
        assert len(await made.aclose()) == 1
    assert [one.state for one in mounts] == [MountState.CLOSED] * 2
    assert second.wire.closed


@jumping
async def test_closing_before_any_client_came_ends_at_once() -> None:
    async with registry(FakeServer("a"), greeted=False) as made:
        await quiet()
        [mount] = made.mounts
    assert mount.state is MountState.CLOSED
    assert now() < 1
