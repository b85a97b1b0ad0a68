"""Real servers over HTTP behind a real plait: FastMCP's, the official SDKs', in Python and in Node."""

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway import PATIENCE, Gateway, Message, text_of, write_config
from peers import NODE
from processes import until

pytestmark = pytest.mark.e2e

SERVER = Path(__file__).with_name("web_server.py")


@asynccontextmanager
async def running(
    argv: Sequence[str], environ: Mapping[str, str]
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, **environ},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@asynccontextmanager
async def serving(kind: str, port: int = 0) -> AsyncIterator[int]:
    """The port of a server of ours, once it listens."""
    async with running([sys.executable, str(SERVER), kind, str(port)], {}) as process:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            said = await process.stdout.readline()
        yield int(said)


def entry(port: int, path: str = "/mcp", **more: object) -> Message:
    return {"url": f"http://127.0.0.1:{port}{path}", **more}


async def plait(*arguments: str, cwd: Path) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "plait", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=cwd,
    )
    async with asyncio.timeout(PATIENCE):
        said, _ = await process.communicate()
    return process.returncode or 0, said.decode()


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("http", {}),
        ("json", {"type": "http"}),
        ("stateless", {}),
        ("sse", {"type": "sse"}),
        ("sse", {}),
    ],
)
async def test_a_server_over_http_is_listed_and_called(
    kind: str, more: Mapping[str, object], tmp_path: Path
) -> None:
    async with serving(kind) as port:
        there = entry(port, "/sse" if kind == "sse" else "/mcp", **more)
        config = str(write_config(tmp_path / "plait.json", {"notes": there}))
        code, said = await plait("list", "-c", config, cwd=tmp_path)
        assert (code, "notes__add" in said) == (0, True), said
        code, said = await plait(
            "call", "-c", config, "notes__add", "--args", '{"a": 2, "b": 3}', cwd=tmp_path
        )
        assert (code, said.strip()) == (0, "5"), said


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_progress_questions_and_cancellation_cross_both_ways(kind: str, tmp_path: Path) -> None:
    async with serving(kind) as port:
        there = entry(port, "/sse" if kind == "sse" else "/mcp")
        config = write_config(tmp_path / "plait.json", {"notes": there}, {"startWait": PATIENCE})
        async with Gateway(config) as gateway:
            await gateway.shake_hands({"roots": {}})
            call = await gateway.ask(
                "tools/call",
                {"name": "notes__add", "arguments": {"a": 1, "b": 1}, "_meta": {"progressToken": "mine"}},
            )
            progress = (await gateway.heard("notifications/progress"))["params"]
            assert isinstance(progress, dict)
            assert (progress["progressToken"], progress["progress"]) == ("mine", 1)
            assert text_of(await gateway.answer(call)) == "2"

            call = await gateway.ask("tools/call", {"name": "notes__whose", "arguments": {}})
            question = await gateway.heard("roots/list")
            roots = {"roots": [{"uri": "file:///here"}]}
            await gateway.send({"jsonrpc": "2.0", "id": question["id"], "result": roots})
            assert text_of(await gateway.answer(call)) == "file:///here"

            call = await gateway.ask("tools/call", {"name": "notes__linger", "arguments": {}})
            await gateway.notify("notifications/cancelled", {"requestId": call})
            read = await gateway.request("resources/read", {"uri": "notes://all"})
            assert "all notes" in str(read["result"])
        assert "Traceback" not in gateway.stderr


async def test_the_official_sdks_server_is_served_beside_a_process(tmp_path: Path) -> None:
    echo = {"command": sys.executable, "args": [str(SERVER.parent.parent / "echo_server.py")]}
    async with serving("sdk") as port:
        config = write_config(tmp_path / "plait.json", {"calc": entry(port), "here": echo})
        async with Gateway(config) as gateway:
            await gateway.shake_hands()
            assert text_of(await gateway.call("calc__double", {"x": 21})) == "42"
            assert "result" in await gateway.call("here__echo")


async def test_a_server_that_is_started_again_is_greeted_again(tmp_path: Path) -> None:
    async with serving("http") as port:
        config = write_config(tmp_path / "plait.json", {"notes": entry(port)}, {"startWait": PATIENCE})
        gateway = Gateway(config)
        await gateway.__aenter__()
        await gateway.shake_hands()
        assert text_of(await gateway.call("notes__add", {"a": 1, "b": 1})) == "2"
    try:
        away = await gateway.call("notes__add", {"a": 1, "b": 1})
        assert "notes" in text_of(away)
        async with serving("http", port):
            answers: list[str] = []
            async with asyncio.timeout(PATIENCE):
                while answers[-1:] != ["2"]:
                    answers.append(text_of(await gateway.call("notes__add", {"a": 1, "b": 1})))
    finally:
        await gateway.__aexit__(None, None, None)


async def test_a_server_that_is_not_there_does_not_stop_the_others(tmp_path: Path) -> None:
    echo = {"command": sys.executable, "args": [str(SERVER.parent.parent / "echo_server.py")]}
    config = str(write_config(tmp_path / "plait.json", {"far": entry(free_port()), "here": echo}))
    code, said = await plait("list", "-c", config, cwd=tmp_path)
    assert code == 0
    assert "here__echo" in said
    assert "127.0.0.1 cannot be reached" in said


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.mark.skipif(not NODE.is_dir(), reason="the npm servers are not installed: run `make peers`")
@pytest.mark.parametrize(("kind", "path"), [("streamableHttp", "/mcp"), ("sse", "/sse")])
async def test_server_everything_over_http(kind: str, path: str, tmp_path: Path) -> None:
    assert shutil.which("node")
    port = free_port()
    async with running([str(NODE / "mcp-server-everything"), kind], {"PORT": str(port)}):
        await until(lambda: listens(port), PATIENCE)
        config = write_config(tmp_path / "plait.json", {"all": entry(port, path)}, {"startWait": PATIENCE})
        code, said = await plait(
            "call", "-c", str(config), "all__echo", "--args", '{"message": "é"}', cwd=tmp_path
        )
        assert (code, said.strip()) == (0, "Echo: é"), said
        async with Gateway(config) as gateway:
            await gateway.shake_hands({"sampling": {}})
            meta = {"progressToken": 7}
            arguments: Message = {"duration": 0.2, "steps": 2}
            call = await gateway.ask(
                "tools/call",
                {"name": "all__trigger-long-running-operation", "arguments": arguments, "_meta": meta},
            )
            await gateway.heard("notifications/progress")
            assert "completed" in text_of(await gateway.answer(call))


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
