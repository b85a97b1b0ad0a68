"""Whoever waits is told: calls, clients and servers when a mount or the whole compositor ends."""

import asyncio
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import fastmcp
import mcp
import pytest
from fastmcp import FastMCP
from mcp import types
from mcp.server.lowlevel import Server

from clients import ALONE, PATIENCE, Client, RawClient, compositor
from clock import jumping, now, quiet
from fakes import FakeServer, words
from plait import Client as PlaitClient
from plait.compositor import Compositor
from plait.config.model import ServerSettings
from plait.downstream.sdk_fastmcp import CompositorTransport
from plait.errors import UpstreamUnavailable
from plait.mounts.state import MountState
from plait.providers.function import FunctionProvider
from plait.routing.naming import MountPrefix
from trail import Lingering, Trail, cancelled_after

A = MountPrefix("a")
PER_CALL = ServerSettings(share="call")


# ---- calls that run when their server is unmounted


@pytest.mark.parametrize("settings", [ServerSettings(), PER_CALL, ServerSettings(share="all")])
@jumping
async def test_a_call_that_runs_when_its_server_is_unmounted_is_answered_at_once(
    settings: ServerSettings,
) -> None:
    server, trail = FakeServer("a", tools=["t"]), Trail()
    server.hang("tools/call")
    async with compositor() as made, RawClient(made) as raw:
        await made.mount(A, server, settings=settings, resources=[trail.needs("folder")])
        raw.initialize()
        raw.say("tools/call", 2, name="a__t")
        await quiet()
        await made.unmount(A)
        assert all(wire.closed for wire in server.wires), "also one that was opened for this call only"
        assert trail[-1] == "leave folder"
        await raw.answered()
        assert "server 'a' stopped during tools/call: closed" in words(raw.answer(2)["result"])
        assert now() < 1


@pytest.mark.parametrize("share", ["identity", "call"])
@jumping
async def test_calls_that_wait_for_their_turn_are_answered_and_start_nothing_anew(share: str) -> None:
    server = FakeServer("a", tools=["t"])
    server.hang("tools/call")
    settings = ServerSettings(share=share, concurrency=1)  # type: ignore[arg-type]
    async with compositor() as made, RawClient(made) as raw:
        await made.mount(A, server, settings=settings)
        raw.initialize()
        for id in (2, 3, 4):
            raw.say("tools/call", id, name="a__t")
        await quiet()
        opened = len(server.wires)
        await made.unmount(A)
        await raw.answered()
        assert all("server 'a'" in words(raw.answer(id)["result"]) for id in (2, 3, 4))
        assert (len(server.wires), server.wire.closed) == (opened, True)
        assert now() < 1


@jumping
async def test_a_call_to_a_provider_that_is_unmounted_is_answered_and_what_it_does_is_ended() -> None:
    trail = Trail()

    async def work() -> str:
        async with trail.needs("something of its own"):
            await asyncio.sleep(50)
        return "done"

    async with compositor() as made, RawClient(made) as raw:
        await made.mount(A, FunctionProvider("a", [work]), resources=[trail.needs("folder")])
        raw.initialize()
        raw.say("tools/call", 2, name="a__work")
        await quiet()
        await made.unmount(A)
        assert trail[-2:] == ["leave something of its own", "leave folder"]
        await raw.answered()
        assert "its provider was unmounted during work" in words(raw.answer(2)["result"])
        assert now() < 1


@pytest.mark.parametrize("settings", [ServerSettings(), PER_CALL])
@jumping
async def test_calls_that_run_may_be_let_finish(settings: ServerSettings) -> None:
    server = FakeServer("a", tools=["t"])
    held = server.hang("tools/call")
    async with compositor() as made, Client(made) as client, asyncio.TaskGroup() as group:
        await made.mount(A, server, settings=settings)
        calling = group.create_task(client.call("a__t"))
        await quiet()
        unmounting = group.create_task(made.unmount(A, drain=30))
        await quiet()
        assert await client.names() == [], "nobody sees it any more"
        assert "unknown tool" in words(await client.call("a__t"))
        assert [wire.closed for wire in server.wires][-1:] == [False]
        held.answer({"content": [{"type": "text", "text": "done"}]})
        assert words(await calling) == "done"
        await unmounting
        assert server.wire.closed
        assert now() < 1


@jumping
async def test_calls_that_do_not_finish_in_time_are_ended() -> None:
    server = FakeServer("a", tools=["t"])
    server.hang("tools/call")
    async with compositor() as made, Client(made) as client, asyncio.TaskGroup() as group:
        await made.mount(A, server)
        calling = group.create_task(client.call("a__t"))
        await quiet()
        await made.unmount(A, drain=30)
        assert now() == pytest.approx(30, abs=0.01)
        assert "stopped during tools/call" in words(await calling)


@jumping
async def test_a_tool_may_unmount_the_server_that_it_belongs_to() -> None:
    async def leave() -> str:
        await made.unmount(A)
        return "gone"

    async with compositor() as made, Client(made) as client:
        await made.mount(A, FunctionProvider("a", [leave]))
        assert "its provider was unmounted" in words(await client.call("a__leave"))
        assert await client.names() == []


# ---- clients that are there when the compositor ends


@jumping
async def test_a_client_that_waits_when_the_compositor_ends_is_told_at_once() -> None:
    server = FakeServer("a", tools=["t"])
    server.hang("tools/call")
    async with Compositor(ALONE) as made:
        await made.mount(A, server)
        client = await PlaitClient(made).__aenter__()
        calling = asyncio.get_running_loop().create_task(client.call_tool("a__t"))
        await quiet()
    with pytest.raises(UpstreamUnavailable, match="'plait' stopped during tools/call: closed"):
        await calling
    with pytest.raises(UpstreamUnavailable, match="not there: closed"):
        await client.list_tools()
    await client.__aexit__()
    assert now() < 1


async def test_clients_of_the_ecosystem_are_told_too() -> None:
    called = asyncio.Event()

    async def never() -> str:
        called.set()
        await asyncio.get_running_loop().create_future()
        return ""

    async def call(client: mcp.Client | fastmcp.Client[CompositorTransport]) -> str:
        try:
            async with client:
                await client.call_tool("a__t", {})
        except Exception as problem:
            return "".join(traceback.format_exception(problem))
        return "answered"

    for kind in ("official", "fastmcp"):
        called.clear()
        async with asyncio.timeout(PATIENCE), Compositor(ALONE) as made:
            await made.mount(A, FakeServer("a", tools={"t": never}))
            client: mcp.Client | fastmcp.Client[CompositorTransport] = (
                mcp.Client(made.transport())
                if kind == "official"
                else fastmcp.Client(made.fastmcp_transport())
            )
            calling = asyncio.get_running_loop().create_task(call(client))
            await called.wait()
        async with asyncio.timeout(PATIENCE):
            assert "closed" in (await calling).lower()


@jumping
async def test_a_client_that_leaves_after_the_compositor_leaves_nothing_behind() -> None:
    server = FakeServer("a", resources=["x:1"], capabilities={"resources": {"subscribe": True}})
    async with Compositor(ALONE) as made:
        await made.mount(A, server)
        client = await PlaitClient(made).__aenter__()
        await client.subscribe_resource("x:1")
    await client.__aexit__()
    assert len(asyncio.all_tasks()) == 1


@jumping
async def test_nobody_connects_while_it_is_being_left() -> None:
    refused: list[str] = []

    async def try_to_connect() -> None:
        await asyncio.sleep(1)
        with pytest.raises(RuntimeError) as problem:
            await PlaitClient(made).__aenter__()
        refused.append(str(problem.value))

    async with Compositor(ALONE) as made:
        await made.mount(A, Lingering("a", seconds=3))
        trying = asyncio.get_running_loop().create_task(try_to_connect())
    await trying
    assert refused == ["nobody can connect to a compositor that is closed"]


# ---- clients that leave


@jumping
async def test_a_server_that_does_not_answer_keeps_no_client_from_leaving() -> None:
    server = FakeServer("a", resources=["x:1", "x:2"], capabilities={"resources": {"subscribe": True}})
    server.hang("resources/unsubscribe")
    async with compositor() as made:
        await made.mount(A, server)
        async with PlaitClient(made) as client:
            await client.subscribe_resource("x:1")
            await client.subscribe_resource("x:2")
        assert now() < 1
        await quiet()
        assert made.registry.clients == 0
        assert not made.registry.watched(made.registry.mounts[0].instances[0])
    assert now() < 1


@jumping
async def test_a_client_whose_leaving_is_cancelled_has_left() -> None:
    let_go = asyncio.Event()

    async def slow_to_stop() -> str:
        try:
            await asyncio.sleep(50)
        finally:
            await let_go.wait()
        return ""

    async with compositor() as made:
        await made.mount(A, FunctionProvider("a", [slow_to_stop]))
        raw = await RawClient(made).__aenter__()
        raw.initialize()
        raw.say("tools/call", 2, name="a__slow_to_stop")
        await quiet()
        asyncio.get_running_loop().call_later(3, let_go.set)
        await cancelled_after(1, raw.__aexit__())
        assert made.registry.clients == 0
        assert now() == pytest.approx(3, abs=0.01)


@jumping
async def test_a_client_that_leaves_in_the_middle_of_a_call_closes_the_server_of_that_call() -> None:
    server = Lingering("a", seconds=1)
    server.hang("tools/call")
    async with compositor() as made:
        await made.mount(A, server, settings=PER_CALL)
        raw = await RawClient(made).__aenter__()
        raw.initialize()
        await asyncio.sleep(10)
        raw.say("tools/call", 2, name="a__t")
        await quiet()
        raw.say("notifications/cancelled", requestId=2)
        await asyncio.sleep(0.1)
        await raw.__aexit__()  # cancels it once more, while its server is being closed
        assert all(wire.closed for wire in server.wires)
        assert len(server.wires) == 2


# ---- servers in this process run their cleanup (BD-46)


class Lifespan:
    """What an in-process server does around its life."""

    def __init__(self) -> None:
        self.trail: list[str] = []
        self.called = asyncio.Event()
        self.torn = False

    @asynccontextmanager
    async def __call__(self, server: object) -> AsyncIterator[None]:
        self.trail.append("begun")
        try:
            yield
        finally:
            try:
                await asyncio.sleep(0.05)  # cleaning up takes a moment, and must not be torn
            except asyncio.CancelledError:
                self.torn = True
                raise
            self.trail.append("ended")

    async def work(self) -> None:
        self.called.set()
        await asyncio.get_running_loop().create_future()


def fast(lifespan: Lifespan) -> FastMCP[None]:
    server: FastMCP[None] = FastMCP("fast", lifespan=lifespan)

    @server.tool
    async def work() -> str:
        await lifespan.work()
        return "never"

    return server


def lowlevel(lifespan: Lifespan) -> Server[None]:
    async def list_tools(context: object, params: object) -> types.ListToolsResult:
        schema = {"type": "object", "properties": {}}
        return types.ListToolsResult(tools=[types.Tool(name="work", input_schema=schema)])

    async def call_tool(context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        await lifespan.work()
        return types.CallToolResult(content=[])

    return Server("lowlevel", lifespan=lifespan, on_list_tools=list_tools, on_call_tool=call_tool)


@pytest.mark.requirement("BD-46")
@pytest.mark.parametrize("make", [fast, lowlevel])
@pytest.mark.parametrize("share", ["identity", "call"])
@pytest.mark.parametrize("ending", ["unmount", "leave", "cancel the call", "client leaves"])
async def test_a_server_in_this_process_cleans_up_whatever_ends_it_in_the_middle_of_a_call(
    make: object, share: str, ending: str
) -> None:
    lifespan = Lifespan()
    before = asyncio.all_tasks()
    async with asyncio.timeout(PATIENCE):
        async with Compositor(ALONE) as made:
            settings = ServerSettings(share=share)  # type: ignore[arg-type]
            await made.mount(A, make(lifespan), settings=settings)  # type: ignore[operator]
            raw = await RawClient(made).__aenter__()
            raw.initialize()
            raw.say("tools/call", 2, name="a__work")
            await lifespan.called.wait()
            if ending == "unmount":
                await made.unmount(A)
                await raw.answered()
                assert "stopped during tools/call" in words(raw.answer(2)["result"])
            elif ending == "cancel the call":
                raw.say("notifications/cancelled", requestId=2)
                await raw.answered()
            elif ending == "client leaves":
                await raw.__aexit__()
            if ending == "unmount" or (share == "call" and ending != "leave"):
                assert lifespan.trail.count("begun") == lifespan.trail.count("ended"), "at once"
        assert lifespan.trail.count("begun") == lifespan.trail.count("ended") >= 1
        assert not lifespan.torn
    assert asyncio.all_tasks() == before


async def test_a_server_in_this_process_that_does_not_clean_up_in_time_is_left_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for module in ("inprocess", "lifespan"):
        monkeypatch.setattr(f"plait.upstream.{module}.PATIENCE", 0.05)

    @asynccontextmanager
    async def endless(server: object) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await asyncio.sleep(1000)

    before = asyncio.all_tasks()
    async with asyncio.timeout(PATIENCE), Compositor(ALONE) as made:
        await made.mount(A, FastMCP("fast", lifespan=endless))
        await made.unmount(A)
    assert "the cleaning up of FastMCP did not end within 0.05 s" in caplog.text
    assert asyncio.all_tasks() == before, "it was cancelled once more"


async def test_sessions_of_one_server_object_share_its_lifespan_which_ends_after_the_last() -> None:
    lifespan = Lifespan()
    async with asyncio.timeout(PATIENCE), Compositor(ALONE) as made:
        mount = await made.mount(A, fast(lifespan))
        first, second = RawClient(made), RawClient(made)
        async with first, second:
            first.initialize()
            second.initialize(roots={})
            await asyncio.wait([each.first_outcome for each in mount.instances])
            assert len(mount.instances) == 2
            [left] = mount.retire([mount.instances[1]])
            while left.state is not MountState.CLOSED:
                await left.standing.move()
            assert lifespan.trail == ["begun"], "the one that began it is gone, the other still uses it"
        await made.unmount(A)
        assert lifespan.trail == ["begun", "ended"]


async def test_a_lifespan_that_cannot_begin_fails_the_mount() -> None:
    @asynccontextmanager
    async def broken(server: object) -> AsyncIterator[None]:
        if server is not None:
            raise OSError("no database")
        yield

    async with asyncio.timeout(PATIENCE), Compositor(ALONE) as made:
        with pytest.raises(UpstreamUnavailable, match="no database"):
            await made.mount(A, FastMCP("fast", lifespan=broken))
        assert made.registry.mounts == []
