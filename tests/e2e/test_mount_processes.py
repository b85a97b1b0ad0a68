"""Mounts with a life, shown with real processes: sharing, sleeping, unmounting and interrupting."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from clients import ALONE, PATIENCE, RawClient, result_of
from fakes import words
from gateway import Gateway, write_config
from gateway import text_of as answer_text
from peers import NODE, Peers
from plait import Client, Compositor, MountPrefix
from plait.config.model import ServerSettings, StdioServer
from processes import alive, children_of, until, until_gone
from stage import SERVER, descendants

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc from outside"),
]

SCRIPT = Path(__file__).with_name("forking_server.sh")
A = MountPrefix("a")


def forking(**settings: object) -> StdioServer:
    return StdioServer(command="sh", args=[str(SCRIPT)], settings=ServerSettings(**settings))  # type: ignore[arg-type]


# ---- sharing


async def come(made: Compositor, identity: str, **capabilities: object) -> RawClient:
    client = await RawClient(made, identity).__aenter__()
    client.initialize(**capabilities)
    return client


async def pid(client: RawClient, id: int) -> int:
    client.say("tools/call", id, name="a__pid")
    await client.answered()
    return int(words(result_of(client.answer(id))))


@pytest.mark.parametrize(("share", "processes"), [("identity", 3), ("all", 1), ("call", 8)])
async def test_who_shares_a_process_is_as_the_mount_says(share: str, processes: int) -> None:
    async with asyncio.timeout(PATIENCE), Compositor(ALONE) as made:
        await made.mount(A, forking(share=share))
        clients = [
            await come(made, "ann"),
            await come(made, "ann"),
            await come(made, "ann", roots={}),
            await come(made, "bob"),
        ]
        pids = [await pid(client, id) for id in (2, 3) for client in clients]
        assert len(set(pids)) == processes
        if share == "call":
            await until_gone(pids)
        for client in clients:
            await client.__aexit__()


async def test_a_real_server_lists_other_tools_for_clients_that_can_do_other_things(tmp_path: Path) -> None:
    Peers(tmp_path)  # skips where the servers are not installed
    everything = StdioServer(command=str(NODE / "mcp-server-everything"))
    some: dict[str, object] = {"roots": {}, "sampling": {}}
    async with asyncio.timeout(2 * PATIENCE), Compositor(ALONE) as made:
        await made.mount(A, everything)
        counts = []
        for able in ({}, some, {**some, "elicitation": {}}, {}):
            client = await come(made, "ann", **able)
            client.say("tools/list", 2)
            await client.answered()
            listed = result_of(client.answer(2))["tools"]
            assert isinstance(listed, list)
            counts.append(len(listed))
            await client.__aexit__()
        assert counts == [13, 15, 16, 13], "one more for each of the three, and nobody has another's"


# ---- unmounting


async def test_a_call_that_runs_when_its_process_is_unmounted_is_answered_at_once() -> None:
    async with Compositor(ALONE) as made, RawClient(made) as client:
        client.initialize()
        for id in range(10, 60):
            await made.mount(A, forking())
            client.say("tools/call", id, name="a__never")
            await until(lambda: bool(made.get_child_client(A).working_for()))
            await made.unmount(A)
            async with asyncio.timeout(10):  # far below the deadline of the call
                await client.answered()
            assert "stopped during tools/call" in words(result_of(client.answer(id)))
        [guardian] = children_of(os.getpid())
        await until(lambda: not any(map(alive, descendants(guardian))))


# ---- sleeping


async def test_a_lazy_server_is_listed_in_the_next_run_without_being_started(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    entry = {
        "command": sys.executable,
        "args": ["-E", "-s", "-S", str(SERVER), "--starts", str(starts)],
        "plait": {"start": "lazy"},
    }
    config = write_config(tmp_path / "plait.json", {"bad": entry})
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    async def names(gateway: Gateway) -> list[str]:
        await gateway.shake_hands()
        listed = await gateway.request("tools/list")
        return [tool["name"] for tool in listed["result"]["tools"]]  # type: ignore[index]

    async with Gateway(config, environ=environ) as first:
        known = await names(first)
    assert len(starts.read_text().split()) == 1, "it must run once to be known"
    async with Gateway(config, environ=environ) as second:
        assert await names(second) == known
        assert "bad__pid" in known
        assert len(starts.read_text().split()) == 1, "it is listed from last time"
        pid = answer_text(await second.call("bad__pid"))
        assert starts.read_text().split()[1:] == [pid]
        assert answer_text(await second.call("bad__pid")) == pid


async def test_a_lazy_server_that_is_not_there_any_more_is_told_at_once(tmp_path: Path) -> None:
    command = tmp_path / "server"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -E -s -S "{SERVER}"\n')
    command.chmod(0o755)
    config = write_config(
        tmp_path / "plait.json", {"bad": {"command": str(command), "plait": {"start": "lazy"}}}
    )
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    async with Gateway(config, environ=environ) as first:
        await first.shake_hands()
        await first.request("tools/list")
    command.unlink()
    async with Gateway(config, environ=environ) as second:
        await second.shake_hands()
        async with asyncio.timeout(15):  # its start has 60 seconds
            answer = await second.call("bad__pid")
        assert "cannot start" in answer_text(answer)


async def test_an_idle_process_is_ended_and_the_next_call_starts_another() -> None:
    async with asyncio.timeout(PATIENCE), Compositor(ALONE) as made:
        await made.mount(A, forking(idle=0.2))
        async with Client(made) as client:
            first = int(await client.execute("a__pid"))
            [guardian] = children_of(os.getpid())
            await until(lambda: not any(map(alive, descendants(guardian))))
            assert [tool.name for tool in await client.list_tools()] == ["a__pid", "a__never"]
            assert int(await client.execute("a__pid")) != first


# ---- Ctrl-C

INTERRUPTED = """
import asyncio, contextlib, sys
from plait import Compositor, MountPrefix
from plait.config.model import StdioServer

@contextlib.asynccontextmanager
async def container():
    try:
        yield
    finally:
        await asyncio.sleep(0.05)
        print("container left", flush=True)

async def main():
    async with Compositor() as made:
        server = StdioServer(command="sh", args=[sys.argv[1]])
        for prefix in ("a", "b"):
            await made.mount(MountPrefix(prefix), server, resources=[container()])
        print("mounted", flush=True)
        await asyncio.sleep(1000)

asyncio.run(main())
"""


@pytest.mark.requirement("S3-17")
async def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    program = [sys.executable, "-c", INTERRUPTED, str(SCRIPT)]
    process = await asyncio.create_subprocess_exec(
        *program, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE):
        assert process.stdout is not None
        assert await process.stdout.readline() == b"mounted\n"
        family = descendants(process.pid)
        assert len(family) >= 7, "the guardian, and for each server a keeper, itself and two children"
        process.send_signal(signal.SIGINT)
        output, errors = await process.communicate()
    assert output == b"container left\ncontainer left\n"
    assert b"KeyboardInterrupt" in errors
    assert b"LEAK" not in errors
    await until_gone(family)
