"""One server behind us: its state, its requests, and everything that must close with it."""

import asyncio
import itertools

import pytest

from clock import jumping, now, quiet
from fakes import FakeServer, Held, Refusal, words
from life import Life, life
from plait.config.model import ServerSettings
from plait.errors import LocalProtocolError, UpstreamRefused, UpstreamTimeout, UpstreamUnavailable
from plait.mounts.calls import PATIENCE
from plait.mounts.state import TRANSITIONS, MountState
from plait.wire.address import as_raw
from plait.wire.envelope import EMPTY, Fields
from plait.wire.spec import Kind
from seams import FakeCaller, result_of

PENDING, ACTIVE, FAILED, CLOSED = MountState


def call(name: str = "t") -> Fields:
    return {"name": as_raw(name), "arguments": EMPTY}


# ---- the table of states


@pytest.mark.requirement("S3-16")
@pytest.mark.parametrize(("before", "after"), list(itertools.product(MountState, MountState)))
@jumping
async def test_a_mount_goes_only_where_the_table_says(before: MountState, after: MountState) -> None:
    allowed = {
        (PENDING, ACTIVE),
        (PENDING, FAILED),
        (PENDING, CLOSED),
        (ACTIVE, PENDING),
        (ACTIVE, FAILED),
        (ACTIVE, CLOSED),
        (FAILED, PENDING),
        (FAILED, CLOSED),
    }
    mount = Life(FakeServer()).instance
    mount.standing.state = before
    assert (after in TRANSITIONS[before]) is ((before, after) in allowed)
    if (before, after) in allowed:
        mount.standing.become(after, "because")
        assert (mount.state, mount.reason) == (after, "because")
    else:
        with pytest.raises(LocalProtocolError, match=f"from {before.value} to {after.value}"):
            mount.standing.become(after, "because")
        assert mount.state is before


@jumping
async def test_a_state_and_its_reason_are_told_and_shown() -> None:
    made = Life(FakeServer())
    assert repr(made.instance) == "<Instance fs: pending, starting>"
    made.instance.standing.become(FAILED, "no such file")
    assert made.around.states == [(FAILED, "no such file")]
    assert repr(made.instance) == "<Instance fs: failed, no such file>"


@pytest.mark.parametrize("first", [ACTIVE, FAILED, CLOSED])
@jumping
async def test_the_first_outcome_is_the_first_state_that_is_not_pending(first: MountState) -> None:
    mount = Life(FakeServer()).instance
    assert not mount.first_outcome.done()
    mount.standing.become(first, "x")
    assert mount.first_outcome.done()


# ---- starting


@jumping
async def test_a_start_reads_all_lists_and_announces_them_before_it_is_active() -> None:
    server = FakeServer(tools=["a", "b"], prompts=["p"], resources=["x:1"], templates=["x:{id}"])
    async with life(server) as made:
        await made.start()
        assert [made.keys(kind) for kind in Kind] == [["a", "b"], ["p"], ["x:1"], ["x:{id}"]]
        assert (made.around.changes, made.around.states) == (1, [(ACTIVE, "running")])
        assert made.instance.greeted


@jumping
async def test_a_list_that_the_server_did_not_declare_is_not_asked_for() -> None:
    server = FakeServer(tools=["a"], prompts=["p"], capabilities={"tools": {}})
    async with life(server) as made:
        await made.start()
        assert made.keys(Kind.PROMPTS) == []
        assert [method for method, _ in server.requests] == ["initialize", "tools/list"]


@pytest.mark.requirement("S1-E4")
@jumping
async def test_an_unknown_revision_is_a_warning_in_the_reason_and_no_more() -> None:
    async with life(FakeServer(tools=["a"], revision="1999-01-01")) as made:
        await made.start()
        assert made.instance.state is ACTIVE
        assert "1999-01-01" in made.instance.reason
        assert made.keys() == ["a"]


@jumping
async def test_a_start_that_fails_in_its_lists_closes_what_it_opened() -> None:
    server = FakeServer(tools=["a"])
    server.answers["tools/list"] = lambda params: Refusal(-32603, "out of order")
    async with life(server) as made:
        with pytest.raises(UpstreamRefused, match="out of order"):
            await made.start()
        assert server.wire.closed
        assert made.instance.link is None
        assert (made.instance.state, made.around.changes) == (PENDING, 0)


@jumping
async def test_lists_that_never_come_end_the_start_at_its_deadline() -> None:
    server = FakeServer(tools=["a"])
    server.answers["tools/list"] = lambda params: Held()
    async with life(server, ServerSettings(start_timeout=7)) as made:
        with pytest.raises(UpstreamTimeout, match="no lists within 7 s"):
            await made.start()
        assert now() == pytest.approx(7)
        assert server.wire.closed


@jumping
async def test_entries_without_a_name_are_counted_and_the_rest_is_kept() -> None:
    async with life(FakeServer(tools=["a", {"title": "nameless"}, "b", {"name": 7}])) as made:
        await made.start()
        assert made.keys() == ["a", "b"]
        assert made.instance.counters["unusable list entry"] == 1


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        (ServerSettings(), ["read_file", "write_file", "delete"]),
        (ServerSettings(tools=("*_file",)), ["read_file", "write_file"]),
        (ServerSettings(hidden_tools=("write_*", "delete")), ["read_file"]),
        (ServerSettings(tools=("*_file",), hidden_tools=("read_*",)), ["write_file"]),
        (ServerSettings(tools=()), []),
    ],
)
@jumping
async def test_the_settings_say_which_tools_are_exposed(settings: ServerSettings, shown: list[str]) -> None:
    mount = Life(FakeServer(), settings).instance
    assert [tool for tool in ("read_file", "write_file", "delete") if mount.exposes(tool)] == shown


# ---- requests


@jumping
async def test_a_request_goes_to_the_server_and_is_counted_if_it_is_a_clients() -> None:
    async with life(FakeServer(tools=["t"])) as made:
        await made.start()
        await made.instance.request("tools/call", call())
        assert made.instance.served == 0
        exchange = FakeCaller().exchange("tools/call", name="t")
        reply = await made.instance.request("tools/call", call(), exchange)
        assert words(result_of(reply)) == "fake: t {}"
        assert made.instance.served == 1


async def _ask(made: Life) -> str:
    exchange = FakeCaller().exchange("tools/call", name="t")
    return words(result_of(await made.instance.request("tools/call", call(), exchange)))


@jumping
async def test_a_call_while_the_server_is_restarted_waits_and_then_works() -> None:
    async with life(FakeServer(tools=["t"])) as made:
        await made.start()
        await made.end()
        async with asyncio.TaskGroup() as group:
            calling = group.create_task(_ask(made))
            made.instance.standing.become(FAILED, "it exited")
            await asyncio.sleep(1)
            made.instance.standing.become(PENDING, "starting again")
            await asyncio.sleep(1)
            assert not calling.done()
            await made.start()
        assert calling.result() == "fake: t {}"
        assert now() == pytest.approx(2, abs=0.01)


@jumping
async def test_a_call_does_not_wait_longer_than_is_reasonable() -> None:
    async with life(FakeServer(tools=["t"])) as made:
        await made.start()
        await made.end()
        made.instance.standing.become(FAILED, "it exited with code 1")
        with pytest.raises(UpstreamUnavailable, match="server 'files' is not there: it exited with code 1"):
            await _ask(made)
        assert now() == pytest.approx(PATIENCE, abs=0.01)


@jumping
async def test_a_crash_loop_refuses_at_once_and_says_when_to_try_again() -> None:
    async with life(FakeServer(tools=["t"])) as made:
        made.instance.standing.become(FAILED, "stopped 5 times in a row")
        made.instance.standing.retry_in = 12
        with pytest.raises(UpstreamUnavailable, match="stopped 5 times in a row; next try in 12 s"):
            await _ask(made)
        assert now() == 0


@jumping
async def test_a_call_that_waits_learns_at_once_that_the_mount_is_in_a_crash_loop() -> None:
    async with life(FakeServer(tools=["t"])) as made:
        async with asyncio.TaskGroup() as group:
            calling = group.create_task(_refused(made))
            await quiet()
            made.instance.standing.retry_in = 30
            made.instance.standing.become(FAILED, "again")
        assert "next try in 30 s" in calling.result()
        assert now() < 1


@jumping
async def test_a_call_that_waits_learns_at_once_that_the_mount_is_closed() -> None:
    made = Life(FakeServer(tools=["t"]))
    async with asyncio.TaskGroup() as group:
        calling = group.create_task(_refused(made))
        await quiet()
        await made.instance.aclose()
    assert "closed" in calling.result()
    assert now() < 1


async def _refused(made: Life) -> str:
    with pytest.raises(UpstreamUnavailable) as caught:
        await _ask(made)
    return str(caught.value)


@jumping
async def test_a_request_of_our_own_never_waits_for_a_restart() -> None:
    # Levels and subscriptions are sent anew after a start anyway, and a client that leaves must not wait.
    async with life(FakeServer(tools=["t"])) as made:
        with pytest.raises(UpstreamUnavailable):
            await made.instance.request("resources/unsubscribe", {"uri": as_raw("x:1")})
        assert now() == 0


@jumping
async def test_a_server_that_stops_fails_its_calls_at_once() -> None:
    server = FakeServer(tools=["t"])
    server.answers["tools/call"] = lambda params: Held()
    async with life(server) as made:
        await made.start()
        async with asyncio.TaskGroup() as group:
            calling = group.create_task(_refused(made))
            await quiet()
            await made.end("it exited with code 3")
        assert "stopped during tools/call: it exited with code 3" in calling.result()


# ---- what is known of a server that is being started again


@jumping
async def test_while_it_is_started_again_its_lists_and_abilities_stay_known() -> None:
    server = FakeServer(tools=["t"], capabilities={"tools": {}, "resources": {"subscribe": True}})
    async with life(server) as made:
        assert not made.instance.supports("tools")
        await made.start()
        await made.end()
        assert made.keys() == ["t"]
        assert made.instance.supports("resources", "subscribe")
        assert not made.instance.supports("prompts")


@jumping
async def test_instructions_are_the_servers_or_what_is_remembered_of_them() -> None:
    server = FakeServer(instructions="now")
    server.instructions = "last time"
    async with life(server) as made:
        assert made.instance.instructions == "last time"
        await made.start()
        assert made.instance.instructions == "now"


@jumping
async def test_a_restart_may_bring_other_abilities() -> None:
    server = FakeServer(capabilities={"prompts": {}})
    async with life(server) as made:
        await made.start()
        await made.end()
        made.instance.standing.become(FAILED, "x")
        made.instance.standing.become(PENDING, "x")
        server.capabilities = {"tools": {}}
        await made.start()
        assert (made.instance.supports("tools"), made.instance.supports("prompts")) == (True, False)


# ---- its end


@jumping
async def test_closing_closes_the_server_and_may_be_repeated() -> None:
    made = Life(FakeServer(tools=["t"]))
    await made.start()
    await made.instance.aclose()
    await made.instance.aclose()
    assert made.server.wire.closed
    assert made.around.states[-1] == (CLOSED, "closed")
    assert len([state for state, _ in made.around.states if state is CLOSED]) == 1


@jumping
async def test_a_mount_that_never_started_can_be_closed() -> None:
    made = Life(FakeServer())
    await made.instance.aclose()
    assert made.instance.state is CLOSED


@jumping
async def test_closing_ends_what_still_runs() -> None:
    server = FakeServer(tools=["t"])
    made = Life(server)
    await made.start()
    server.notify("notifications/tools/list_changed")
    server.ask("q1", "roots/list")
    await quiet()
    await made.instance.aclose()
    assert len(made.instance._tasks) == 0
