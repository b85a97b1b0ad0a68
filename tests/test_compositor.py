"""Everything behind one endpoint: its life, and what clients are told of it."""

import asyncio

import pytest

from clients import ALONE, Client, RawClient, compositor
from clock import jumping, now, quiet
from fakes import FakeServer, Held, Message, words
from plait.compositor import Compositor, CompositorState
from plait.config.model import Settings
from plait.errors import AlreadyMounted, LifecycleError, UpstreamUnavailable
from plait.mounts.mount import Mount
from plait.mounts.state import MountState
from plait.routing.naming import MountPrefix
from plait.session.exchange import Exchange, Handler, Reply
from plait.wire.content import text_result

# ---- its life


@pytest.mark.requirement("S3-15")
@jumping
async def test_it_is_created_then_active_then_closed_for_good() -> None:
    made = Compositor()
    states = [made.state]
    async with made:
        states.append(made.state)
        with pytest.raises(LifecycleError, match="already in an active context manager"):
            await made.__aenter__()
    states.append(made.state)
    assert states == list(CompositorState)
    with pytest.raises(LifecycleError, match="already closed"):
        await made.__aenter__()
    assert repr(made) == "<Compositor plait: closed>"


@pytest.mark.requirement("S3-17")
@jumping
async def test_leaving_closes_every_mount_and_ends_every_call_also_when_the_body_fails() -> None:
    server = FakeServer("a", tools=["t"])
    server.answers["tools/call"] = lambda params: Held()
    made = Compositor()
    mounts: list[Mount] = []

    async def fail() -> None:
        async with made:
            mounts.append(await made.mount(MountPrefix("a"), server, wait=False))
            raw = await RawClient(made).__aenter__()
            raw.initialize()
            raw.say("tools/call", 2, name="a__t")
            await quiet()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert server.wire.closed
    assert mounts[0].state is MountState.CLOSED
    assert made.registry.mounts == []
    assert len(server.told("notifications/cancelled")) == 1


@pytest.mark.requirement("S3-06")
@jumping
async def test_a_client_in_this_process_is_served_like_any_other() -> None:
    async with compositor(FakeServer("a", tools=["t"])) as made, Client(made) as client:
        assert client.session.server_info["name"] == "plait"
        assert client.session.supports_tools()
        assert words(await client.call("a__t", x=1)) == 'a: t {"x":1}'


@jumping
async def test_it_tells_the_name_of_a_mounted_tool() -> None:
    made = Compositor(Settings(separator="."))
    assert made.tool_name(MountPrefix("a"), "t") == "a.t"


@jumping
async def test_a_prefix_is_mounted_once() -> None:
    async with compositor(FakeServer("a")) as made:
        with pytest.raises(AlreadyMounted):
            await made.mount(MountPrefix("a"), FakeServer("a"), name="again", wait=False)


@jumping
async def test_layers_stand_around_every_request_the_first_outermost() -> None:
    seen: list[str] = []

    async def outer(exchange: Exchange, call_next: Handler) -> Reply:
        seen.append(f"outer {exchange.method}")
        return await call_next(exchange)

    async def inner(exchange: Exchange, call_next: Handler) -> Reply:
        seen.append("inner")
        if exchange.address == "a__forbidden":
            return Reply(result=text_result("refused"))
        return await call_next(exchange)

    server = FakeServer("a", tools=["t", "forbidden"])
    async with Compositor(ALONE, [outer, inner]) as made:
        await made.mount(MountPrefix("a"), server, name="a", wait=False)
        async with Client(made) as client:
            assert words(await client.call("a__t")) == "a: t {}"
            assert words(await client.call("a__forbidden")) == "refused"
    assert seen == ["outer tools/call", "inner"] * 2
    assert len(server.asked("tools/call")) == 1


# ---- welcome


@jumping
async def test_the_welcome_never_waits_and_later_clients_learn_what_is_really_there() -> None:
    server = FakeServer("a", tools=["t"], instructions="Be brief.")
    async with compositor(server, settings=Settings(name="gate")) as made, Client(made) as first:
        assert now() == 0
        assert set(first.session.capabilities) == {
            "tools",
            "prompts",
            "resources",
            "completions",
            "logging",
        }
        await first.names()
        async with Client(made) as second:
            assert set(second.session.capabilities) == {"tools"}
            assert second.session.instructions.endswith("Be brief.")
            assert second.session.server_info["name"] == "gate"


@jumping
async def test_servers_are_greeted_with_what_the_first_client_can_do() -> None:
    server = FakeServer("a")
    declared: Message = {"sampling": {}, "experimental": {"x": 1}}
    async with compositor(server) as made, Client(made, declared, "2025-06-18"):
        await quiet()
        greeting = server.asked("initialize")[0]
        assert greeting["capabilities"] == {"sampling": {}}
        assert greeting["protocolVersion"] == "2025-06-18"


# ---- restarts


@jumping
async def test_a_call_while_a_server_is_restarted_waits_and_then_works() -> None:
    server = FakeServer("a", tools=["t"])
    async with compositor(server) as made, Client(made) as client:
        await client.names()
        server.end()
        await quiet()
        assert words(await client.call("a__t")) == "a: t {}"
        assert client.notes == []


@jumping
async def test_a_crash_loop_is_refused_at_once_and_the_others_serve() -> None:
    bad, good = FakeServer("bad", tools=["t"]), FakeServer("good", tools=["t"])
    async with compositor(bad, good) as made, Client(made) as client:
        await client.names()
        bad.failures = [UpstreamUnavailable("no such file")] * 1000
        bad.end("it exited with code 1")
        await asyncio.sleep(600)
        began = now()
        result = await client.call("bad__t")
        assert (now(), result["isError"]) == (began, True)
        assert "no such file; next try in" in words(result)
        assert words(await client.call("good__t")) == "good: t {}"
        assert await client.names() == ["bad__t", "good__t"]


# ---- without a prefix


@jumping
async def test_a_server_without_a_prefix_keeps_its_names() -> None:
    async with compositor() as made, Client(made) as client:
        server = FakeServer("bare", tools=["as it is", "t"], prompts=["p"])
        await made.mount(MountPrefix.none(), server, name="bare", wait=False)
        await made.mount(MountPrefix("a"), FakeServer("a", tools=["t"]), name="a", wait=False)
        await quiet()
        assert await client.names() == ["as it is", "t", "a__t"]
        assert words(await client.call("as it is")) == "bare: as it is {}"
        assert words(await client.call("t")) == "bare: t {}"
