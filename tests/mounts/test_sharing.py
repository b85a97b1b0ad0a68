"""Who shares a session with a server, and that nothing of one session reaches anybody else."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack

import pytest

from clients import RawClient, compositor, error_of, result_of
from clock import jumping, now, quiet
from fakes import FakeServer, Message, words
from plait.compositor import Compositor
from plait.config.model import ServerSettings
from plait.mounts.registry import LINGER
from plait.mounts.state import MountState
from plait.routing.naming import MountPrefix
from plait.testing.wire import Wire
from plait.wire.envelope import encode
from plait.wire.spec import Kind
from trail import Lingering

A, B = MountPrefix("a"), MountPrefix("b")
PER_CALL, ALL = ServerSettings(share="call"), ServerSettings(share="all")
EVERYTHING = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True},
    "logging": {},
}


def server(name: str = "a") -> FakeServer:
    return FakeServer(name, tools=["t"], resources=["x:1"], capabilities=EVERYTHING)


async def come(made: Compositor, identity: str, **capabilities: object) -> RawClient:
    client = await RawClient(made, identity).__aenter__()
    client.initialize(**capabilities)
    await quiet()
    return client


async def ask(client: RawClient, method: str, **params: object) -> Message:
    id = 100 + len(client.messages)
    client.say(method, id, **params)
    await client.answered()
    return client.answer(id)


async def call(client: RawClient, tool: str = "a__t") -> str:
    return words(result_of(await ask(client, "tools/call", name=tool)))


def wire_of(server: FakeServer, identity: str) -> Wire:
    """The session that was opened for this identity."""
    [number] = [n for n, known in enumerate(server.behalf) if getattr(known, "identity", "") == identity]
    return server.wires[number]


def tell(wire: Wire, method: str, params: Mapping[str, object]) -> None:
    wire.say({"jsonrpc": "2.0", "method": method, "params": params})


# ---- identity


@jumping
async def test_two_identities_never_share_a_session() -> None:
    behind = server()
    async with compositor(behind) as made:
        ann, bob = await come(made, "ann"), await come(made, "bob")
        assert [getattr(each, "identity", "") for each in behind.behalf] == ["ann", "bob"]
        await call(ann)
        await call(bob)
        assert len(behind.wires) == 2
        for client in (ann, bob):
            await client.__aexit__()


@jumping
async def test_clients_of_one_identity_that_can_do_the_same_share_one_session() -> None:
    behind = server()
    async with compositor(behind) as made:
        clients = [await come(made, "ann", roots={"listChanged": True}, sampling={}) for _ in range(2)]
        clients.append(await come(made, "ann", sampling={}, roots={"listChanged": True}))
        for client in clients:
            await call(client)
        assert len(behind.wires) == 1
        for client in clients:
            await client.__aexit__()


@jumping
async def test_what_clients_can_do_decides_too_since_lists_and_questions_depend_on_it() -> None:
    behind = server()
    async with compositor(behind) as made:
        able: list[dict[str, object]] = [
            {},
            {"roots": {}},
            {"roots": {"listChanged": True}},
            {"sampling": {}},
        ]
        clients = [await come(made, "ann", **each) for each in able]
        greetings = behind.asked("initialize")
        assert [greeting["capabilities"] for greeting in greetings] == able
        behind.lists[Kind.TOOLS] = ["t", "more"]
        tell(behind.wires[1], "notifications/tools/list_changed", {})
        await asyncio.sleep(1)
        listed = [len(result_of(await ask(client, "tools/list"))["tools"]) for client in clients]  # type: ignore[arg-type]
        assert listed == [1, 2, 1, 1]
        assert [len(client.told("notifications/tools/list_changed")) for client in clients] == [0, 1, 0, 0]
        for client in clients:
            await client.__aexit__()


# ---- nothing of one session reaches another


@jumping
async def test_log_messages_of_one_identity_never_reach_the_other() -> None:
    behind = server()
    async with compositor(behind) as made:
        ann, bob = await come(made, "ann"), await come(made, "bob")
        tell(wire_of(behind, "ann"), "notifications/message", {"level": "info", "data": "ann's secret"})
        await quiet()
        assert len(ann.told("notifications/message")) == 1
        assert bob.told("notifications/message") == []
        for client in (ann, bob):
            await client.__aexit__()


@jumping
async def test_updates_for_one_identity_never_reach_the_other_that_watches_the_same() -> None:
    behind = server()
    async with compositor(behind) as made:
        ann, bob = await come(made, "ann"), await come(made, "bob")
        for client in (ann, bob):
            assert "result" in await ask(client, "resources/subscribe", uri="x:1")
        assert len(behind.asked("resources/subscribe")) == 2, "each has one of its own"
        tell(wire_of(behind, "ann"), "notifications/resources/updated", {"uri": "x:1"})
        await quiet()
        assert len(ann.told("notifications/resources/updated")) == 1
        assert bob.told("notifications/resources/updated") == []
        for client in (ann, bob):
            await client.__aexit__()


@jumping
async def test_a_list_that_changed_for_one_identity_is_the_others_as_it_was() -> None:
    behind = server()
    async with compositor(behind) as made:
        ann, bob = await come(made, "ann"), await come(made, "bob")
        for client in (ann, bob):
            await ask(client, "tools/list")
        behind.lists[Kind.TOOLS] = ["ann_only"]
        tell(wire_of(behind, "ann"), "notifications/tools/list_changed", {})
        await asyncio.sleep(1)
        assert len(ann.told("notifications/tools/list_changed")) == 1
        assert bob.told("notifications/tools/list_changed") == []
        assert await call(ann, "a__ann_only") == "a: ann_only {}"
        assert "unknown tool" in await call(bob, "a__ann_only")
        for client in (ann, bob):
            await client.__aexit__()


@pytest.mark.parametrize(
    ("able", "method"),
    [("elicitation", "elicitation/create"), ("sampling", "sampling/createMessage"), ("roots", "roots/list")],
)
@jumping
async def test_questions_of_one_identitys_session_never_reach_the_other(able: str, method: str) -> None:
    behind = server()
    behind.hang("tools/call")
    async with compositor(behind) as made:
        ann, bob = await come(made, "ann", **{able: {}}), await come(made, "bob", **{able: {}})
        for client in (ann, bob):
            client.say("tools/call", 5, name="a__t")
        await quiet()
        params = {"message": "your password?", "requestedSchema": {}, "messages": [], "maxTokens": 1}
        wire_of(behind, "bob").say({"jsonrpc": "2.0", "id": "q", "method": method, "params": params})
        await quiet()
        assert ann.told(method) == []
        [question] = bob.told(method)
        bob.connection.receive(encode({"jsonrpc": "2.0", "id": question["id"], "result": {"x": 1}}))
        await quiet()
        assert wire_of(behind, "bob").replies["q"]["result"] == {"x": 1}
        assert wire_of(behind, "ann").replies == {}
        for client in (ann, bob):
            await client.__aexit__()


@jumping
async def test_the_end_of_one_identitys_session_is_not_the_others() -> None:
    behind = server()
    async with compositor(behind) as made:
        ann, bob = await come(made, "ann"), await come(made, "bob")
        wire_of(behind, "ann").abort("it exited with code 1")
        await quiet()
        assert await call(bob) == "a: t {}"
        assert len(behind.wires) == 2
        assert await call(ann) == "a: t {}"
        assert len(behind.wires) == 3
        for client in (ann, bob):
            await client.__aexit__()


# ---- all


@jumping
async def test_a_session_for_all_declares_nothing_and_asks_nobody() -> None:
    behind = server()
    async with compositor() as made:
        await made.mount(A, behind, settings=ALL)
        ann, bob = await come(made, "ann", roots={}, elicitation={}), await come(made, "bob")
        assert await call(ann) == await call(bob) == "a: t {}"
        assert len(behind.wires) == 1
        assert [greeting["capabilities"] for greeting in behind.asked("initialize")] == [{}]
        behind.hang("tools/call")
        ann.say("tools/call", 5, name="a__t")
        await quiet()
        behind.ask("q", "roots/list")
        behind.ask("p", "elicitation/create", {"message": "?", "requestedSchema": {}})
        await quiet()
        assert {"error" in reply for reply in behind.wire.replies.values()} == {True}
        assert len(behind.wire.replies) == 2
        assert (ann.told("roots/list"), ann.told("elicitation/create")) == ([], [])
        for client in (ann, bob):
            await client.__aexit__()


@jumping
async def test_in_a_session_for_all_each_gets_the_log_messages_that_it_wants() -> None:
    behind = server()
    async with compositor() as made:
        await made.mount(A, behind, settings=ALL)
        ann, bob = await come(made, "ann"), await come(made, "bob")
        await ask(ann, "logging/setLevel", level="debug")
        await ask(bob, "logging/setLevel", level="error")
        await quiet()
        assert behind.asked("logging/setLevel")[-1] == {"level": "debug"}, "the least that anybody wants"
        for level in ("debug", "error"):
            behind.notify("notifications/message", {"level": level, "data": level})
        await quiet()
        assert len(ann.told("notifications/message")) == 2
        assert len(bob.told("notifications/message")) == 1
        for client in (ann, bob):
            await client.__aexit__()


# ---- call


@jumping
async def test_each_call_has_a_server_of_its_own_and_the_lists_stay() -> None:
    behind = server()
    async with compositor() as made:
        mount = await made.mount(A, behind, settings=PER_CALL)
        ann = await come(made, "anonymous")
        assert behind.wire.closed, "it was only asked for its lists"
        assert (mount.state, mount.usable) == (MountState.PENDING, True)
        for number in range(3):
            assert await call(ann) == "a: t {}"
            assert len(behind.wires) == 2 + number
            assert behind.wire.closed
        listed = result_of(await ask(ann, "tools/list"))["tools"]
        assert isinstance(listed, list)
        assert [tool["name"] for tool in listed] == ["a__t"]
        assert len(behind.asked("tools/list")) == 1
        refused = error_of(await ask(ann, "resources/subscribe", uri="x:1"))
        assert "no subscriptions" in str(refused["message"])
        await ann.__aexit__()


@jumping
async def test_calls_at_the_same_time_have_each_their_own() -> None:
    behind = server()
    held = behind.hang("tools/call")
    async with compositor() as made:
        await made.mount(A, behind, settings=PER_CALL)
        ann = await come(made, "anonymous")
        for id in (5, 6, 7):
            ann.say("tools/call", id, name="a__t")
        await asyncio.sleep(30)
        assert [wire.closed for wire in behind.wires] == [True, False, False, False]
        held.answer({"content": []})
        ann.say("notifications/cancelled", requestId=5)
        behind.wires[2].abort("it crashed")
        await quiet()
        assert all(wire.closed for wire in behind.wires)
        await ann.answered()
        assert "it crashed" in words(result_of(ann.answer(6)))
        assert "result" in ann.answer(7)
        await ann.__aexit__()


@jumping
async def test_what_the_server_of_a_call_asks_goes_to_whoever_called() -> None:
    behind = server()
    behind.hang("tools/call")
    async with compositor() as made:
        await made.mount(A, behind, settings=PER_CALL)
        one, other = await come(made, "ann", roots={}), await come(made, "ann", roots={})
        await asyncio.sleep(1)
        opened = len(behind.wires)
        other.say("tools/call", 5, name="a__t")
        await quiet()
        one.say("tools/call", 5, name="a__t")
        await quiet()
        behind.wires[opened].say({"jsonrpc": "2.0", "id": "q", "method": "roots/list", "params": {}})
        await quiet()
        assert one.told("roots/list") == []
        [question] = other.told("roots/list")
        other.connection.receive(encode({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}))
        await quiet()
        assert behind.wires[opened].replies["q"]["result"] == {"roots": []}
        for client in (one, other):
            await client.__aexit__()


@jumping
async def test_a_call_after_which_the_lists_are_others_has_them_read_again() -> None:
    behind = server()
    held = behind.hang("tools/call")
    async with compositor() as made:
        await made.mount(A, behind, settings=PER_CALL)
        ann = await come(made, "anonymous")
        await ask(ann, "tools/list")
        ann.say("tools/call", 5, name="a__t")
        await quiet()
        behind.change(Kind.TOOLS, ["t", "new"])
        await quiet()
        held.answer({"content": []})
        await asyncio.sleep(5)
        assert len(ann.told("notifications/tools/list_changed")) == 1
        assert nothing_open(behind)
        del behind.answers["tools/call"]
        assert await call(ann, "a__new") == "a: new {}"
        await ann.__aexit__()


def nothing_open(behind: FakeServer) -> bool:
    return all(wire.closed for wire in behind.wires)


@jumping
async def test_while_a_call_runs_on_its_own_nobody_spins() -> None:
    behind = server()
    behind.hang("tools/call")
    async with compositor() as made:
        await made.mount(A, behind, settings=PER_CALL)
        ann = await come(made, "anonymous")
        ann.say("tools/call", 5, name="a__t")
        await asyncio.sleep(30)  # a clock that jumps stands still while anything spins
        assert now() > 30
        await ann.__aexit__()


# ---- how long a session stays


@jumping
async def test_a_session_that_nobody_uses_is_closed_after_a_while_and_one_stays() -> None:
    behind = server()
    async with compositor(behind) as made:
        clients = [await come(made, identity) for identity in ("ann", "bob", "cid")]
        for client in clients:
            await client.__aexit__()
        await asyncio.sleep(LINGER - 1)
        assert not any(wire.closed for wire in behind.wires), "somebody may come back"
        await asyncio.sleep(2 * LINGER)
        assert [wire.closed for wire in behind.wires] == [True, True, False]
        again = await come(made, "cid")
        assert await call(again) == "a: t {}"
        assert len(behind.wires) == 3
        await again.__aexit__()


@jumping
async def test_whoever_comes_back_in_time_finds_the_session_as_it_was() -> None:
    behind = server()
    async with compositor(behind) as made, AsyncExitStack() as stack:
        ann, bob = await come(made, "ann"), await come(made, "bob")
        stack.push_async_callback(bob.__aexit__)
        await ann.__aexit__()
        await asyncio.sleep(LINGER / 2)
        ann = await come(made, "ann")
        stack.push_async_callback(ann.__aexit__)
        await asyncio.sleep(5 * LINGER)
        assert await call(ann) == await call(bob) == "a: t {}"
        assert len(behind.wires) == 2


@jumping
async def test_what_was_started_for_nobody_is_closed_when_others_have_their_own() -> None:
    behind = server()
    async with compositor() as made:
        await made.mount(A, behind)
        ann = await come(made, "ann")
        assert len(behind.wires) == 2
        await asyncio.sleep(2 * LINGER)
        assert [wire.closed for wire in behind.wires] == [True, False]
        assert await call(ann) == "a: t {}"
        await ann.__aexit__()


@jumping
async def test_whoever_comes_while_sessions_are_being_closed_is_not_given_one_of_them() -> None:
    first, second = Lingering("a", seconds=5), Lingering("b", seconds=5)
    async with compositor(first, second) as made:
        for identity in ("ann", "bob"):
            await (await come(made, identity)).__aexit__()
        await asyncio.sleep(2 * LINGER + 1)
        assert made.registry.mounts[0]._endings, "they are being closed right now"
        ann = await come(made, "ann")
        assert await call(ann, "a__t") == "a: t {}"
        assert await call(ann, "b__t") == "b: t {}"
        await asyncio.sleep(5 * LINGER)
        assert await call(ann, "b__t") == "b: t {}"
        await ann.__aexit__()


@pytest.mark.parametrize("ending", ["unmount", "leave"])
@jumping
async def test_sessions_that_are_being_closed_when_their_mount_ends_are_closed_whole(ending: str) -> None:
    behind = Lingering("a", seconds=5)
    async with compositor(behind) as made:
        for identity in ("ann", "bob"):
            await (await come(made, identity)).__aexit__()
        await asyncio.sleep(2 * LINGER + 1)
        assert made.registry.mounts[0]._endings, "they are being closed right now"
        if ending == "unmount":
            await made.unmount(A)
            assert nothing_open(behind)
    assert nothing_open(behind)


@jumping
async def test_a_session_that_fails_to_close_keeps_no_other_open() -> None:
    first, second = server("a"), server("b")

    async def fail() -> None:
        raise OSError("sticky")

    async with compositor(first, second) as made:
        for identity in ("ann", "bob"):
            await (await come(made, identity)).__aexit__()
        close, first.wires[0].aclose = first.wires[0].aclose, fail  # type: ignore[method-assign]
        await asyncio.sleep(3 * LINGER)
        assert [wire.closed for wire in second.wires] == [True, False]
        await close()


@jumping
async def test_a_client_says_what_it_is_only_once_it_is_greeted() -> None:
    behind = server()
    async with compositor(behind) as made:
        silent = await RawClient(made, "ann").__aenter__()
        await asyncio.sleep(10)
        assert (behind.requests, made.registry.clients) == ([], 0)
        await silent.__aexit__()
