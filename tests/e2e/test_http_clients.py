"""Real clients over HTTP: the official ones and FastMCP's, several at once, and how it all ends."""

import asyncio
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import fastmcp
import mcp.types as types
import pytest
from mcp import Client
from mcp.client.sse import sse_client

from gateway import Message, write_config
from processes import alive, children_of, until
from served import PATIENCE, Served

pytestmark = pytest.mark.e2e

SDK_CLIENT = Path(__file__).with_name("sdk_client.mjs")
SERVER = """\
import asyncio
from fastmcp import Context, FastMCP

server = FastMCP("py")


@server.tool
async def count(steps: int, ctx: Context) -> str:
    for step in range(steps):
        await ctx.report_progress(step + 1, steps)
        await asyncio.sleep(0.02)
    return f"counted to {steps}"


@server.tool
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("really?", response_type=bool)
    return f"the answer is {answer.action}"


@server.tool
async def slow(seconds: float, mark: str) -> str:
    with open(mark, "a") as file:
        file.write("x")
    await asyncio.sleep(seconds)
    return "at last"


@server.tool
def echo(text: str) -> str:
    return text


if __name__ == "__main__":
    server.run(show_banner=False)
"""
TOOLS = {"py__count", "py__ask", "py__slow", "py__echo"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    entry = {"command": sys.executable, "args": [str(script)]}
    return write_config(tmp_path / "plait.json", {"py": entry}, {"startWait": PATIENCE})


class Asked:
    """What a client was asked, and told of progress."""

    def __init__(self) -> None:
        self.questions: list[str] = []
        self.progress: list[float] = []

    async def elicit(self, context: object, params: object) -> types.ElicitResult:
        self.questions.append(str(getattr(params, "message", "")))
        return types.ElicitResult(action="decline")

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append(progress)


@asynccontextmanager
async def official(url: str, asked: Asked, *, old: bool = False) -> AsyncIterator[Client]:
    where = sse_client(url.replace("/mcp", "/sse")) if old else url
    client = Client(
        where,
        mode="legacy",
        read_timeout_seconds=PATIENCE,
        elicitation_callback=asked.elicit,
        cache=None,
    )
    async with asyncio.timeout(2 * PATIENCE), client:
        yield client


def text_of(result: object) -> str:
    content = getattr(result, "content", [])
    return "".join(str(getattr(block, "text", "")) for block in content)


@pytest.mark.parametrize("old", [False, True], ids=["streamable", "sse"])
async def test_the_official_python_client_has_all_of_it(config: Path, old: bool) -> None:
    asked = Asked()
    async with Served(config) as served, official(served.url, asked, old=old) as client:
        listed = await client.list_tools()
        assert {tool.name for tool in listed.tools} == TOOLS
        result = await client.call_tool("py__count", {"steps": 3}, progress_callback=asked.report)
        assert text_of(result) == "counted to 3"
        assert asked.progress == [1, 2, 3]
        assert text_of(await client.call_tool("py__ask", {})) == "the answer is decline"
        assert asked.questions == ["[py] really?"]


async def test_the_official_client_that_asks_for_the_modern_era_first_is_served_in_it(config: Path) -> None:
    async with Served(config) as served, Client(served.url, read_timeout_seconds=PATIENCE) as client:
        assert client.protocol_version == "2026-07-28"
        assert text_of(await client.call_tool("py__echo", {"text": "hello"})) == "hello"


async def test_fastmcps_client_is_served(config: Path) -> None:
    seen: list[float] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async with Served(config) as served, fastmcp.Client(served.url) as client:
        assert {tool.name for tool in await client.list_tools()} == TOOLS
        result = await client.call_tool("py__count", {"steps": 2}, progress_handler=report)
        assert (text_of(result), seen) == ("counted to 2", [1, 2])


@pytest.mark.parametrize("kind", ["streamable", "sse"])
async def test_the_typescript_sdks_client_is_served(config: Path, kind: str) -> None:
    node = shutil.which("node")
    if node is None or not SDK_CLIENT.with_name("node_modules").is_dir():
        pytest.skip("node, or the npm packages, are not here: run `make peers`")
    async with Served(config) as served:
        url = served.url if kind == "streamable" else served.url.replace("/mcp", "/sse")
        running = await asyncio.create_subprocess_exec(
            node, str(SDK_CLIENT), url, kind, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        async with asyncio.timeout(2 * PATIENCE):
            out, err = await running.communicate()
        assert running.returncode == 0, err.decode()
        seen = json.loads(out)
    assert set(seen["tools"]) == TOOLS
    assert (seen["text"], seen["progress"]) == ("counted to 3", [1, 2, 3])
    assert (seen["answer"], seen["asked"]) == ("the answer is decline", ["[py] really?"])


async def test_several_clients_at_once_get_their_own_answers(config: Path) -> None:
    async def talk(url: str, name: str) -> None:
        async with official(url, Asked()) as client:
            for number in range(20):
                text = f"{name} {number}"
                assert text_of(await client.call_tool("py__echo", {"text": text})) == text

    async with Served(config) as served, asyncio.TaskGroup() as group:
        for name in "abcdef":
            group.create_task(talk(served.url, name))


HELLO: Message = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}},
}
PING: Message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


async def post(
    http: aiohttp.ClientSession, url: str, message: Message, **headers: str
) -> aiohttp.ClientResponse:
    both = {"Accept": "application/json, text/event-stream", **headers}
    async with http.post(url, json=message, headers=both) as answer:
        await answer.read()
        return answer


async def hello(http: aiohttp.ClientSession, url: str, **headers: str) -> dict[str, str]:
    answer = await post(http, url, HELLO, **headers)
    return {"Mcp-Session-Id": answer.headers["mcp-session-id"]}


# ---- saying what happens


async def test_it_says_where_it_is_what_came_up_and_how_to_connect(config: Path, tmp_path: Path) -> None:
    broken = write_config(tmp_path / "b.json", {"gone": {"command": "no-such-program-here"}})
    async with Served(config, broken) as served:
        await served.said("in all")
        text = "\n".join(served.lines)
        assert f"claude mcp add --transport http plait {served.url}" in text
        assert re.search(r"✓ py  4 tools  [\d.]+ s", text)
        assert "✗ gone" in text
        assert "4 tools in all" in text
        assert "\x1b" not in text
        async with aiohttp.ClientSession() as http, http.get(served.url.replace("/mcp", "/readyz")) as ready:
            states = {each["name"]: each["state"] for each in (await ready.json())["servers"]}
            assert (ready.status, states["py"]) == (200, "active")


async def test_a_port_that_is_taken_is_one_clear_line(config: Path) -> None:
    async with Served(config) as served:
        argv = [sys.executable, "-m", "plait", "up", "--port", str(served.port)]
        done = await asyncio.to_thread(
            subprocess.run, argv, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert "listens there already" in done.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_it_does_not_listen_to_the_world_without_a_token(host: str, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "plait", "up", "--port", "0", "--host", host]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 7
    assert "plait token add" in done.stderr


# ---- who may come in


@pytest.mark.requirement("K-16")
async def test_a_token_lets_in_is_revoked_at_once_and_is_found_nowhere(config: Path, tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}

    def plait(*words: str) -> str:
        argv = [sys.executable, "-m", "plait", *words]
        done = subprocess.run(
            argv, env={**environ, "PATH": ""}, capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        return done.stdout.strip()

    token = await asyncio.to_thread(plait, "token", "add", "alice", "--tools", "py__echo")
    async with Served(config, arguments=["--log-level", "debug"], environ=environ) as served:
        assert '--header "Authorization: Bearer TOKEN"' in await served.said("claude mcp add")
        async with aiohttp.ClientSession() as http:
            refused = await post(http, served.url, HELLO)
            assert (refused.status, refused.headers["www-authenticate"]) == (401, 'Bearer realm="plait"')
            async with asyncio.timeout(2 * PATIENCE), fastmcp.Client(served.url, auth=token) as client:
                assert [tool.name for tool in await client.list_tools()] == ["py__echo"]
                assert text_of(await client.call_tool("py__echo", {"text": "hi"})) == "hi"
            proof = {"Authorization": f"Bearer {token}"}
            session = await hello(http, served.url, **proof)
            await asyncio.to_thread(plait, "token", "revoke", "alice")
            refused = await post(http, served.url, PING, **proof, **session)
            assert refused.status == 401
            assert 'error="invalid_token"' in refused.headers["www-authenticate"]
    assert token not in served.stderr
    assert token not in "".join(served.lines)
    for path in (tmp_path / "state").rglob("*"):
        assert not path.is_file() or token.encode() not in path.read_bytes(), path


async def test_built_in_tools_that_change_something_are_not_offered_without_a_token(tmp_path: Path) -> None:
    async with Served(cwd=tmp_path) as served, official(served.url, Asked()) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert "builtin__read_file" in names
        assert not names & {"builtin__exec_shell", "builtin__write_file", "builtin__web_fetch"}
        result = await client.call_tool("builtin__exec_shell", {"command": "ls"})
        assert getattr(result, "is_error", None) is True
        assert text_of(result).startswith("unknown tool")


# ---- how it ends


@asynccontextmanager
async def working(served: Served, mark: Path, count: int, seconds: float) -> AsyncIterator[list[Message]]:
    """So many calls under way at the server; the answers, once all is over."""
    answers: list[Message] = []

    async def call(id: int) -> None:
        arguments: Message = {"seconds": seconds, "mark": str(mark)}
        params: Message = {"name": "py__slow", "arguments": arguments}
        message: Message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        answer = await post(http, served.url, message, **session)
        answers.append(await answer.json())

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as http, asyncio.timeout(2 * PATIENCE):
        await served.said("in all")
        session = await hello(http, served.url)
        async with asyncio.TaskGroup() as group:
            for id in range(count):
                group.create_task(call(id))
            await until(lambda: mark.exists() and mark.stat().st_size == count, PATIENCE)
            yield answers


async def test_a_hundred_calls_are_answered_while_it_stops_and_nobody_is_left(
    config: Path, tmp_path: Path
) -> None:
    async with Served(config) as served:
        async with working(served, tmp_path / "mark", 100, 0.5) as answers:
            family = children_of(served.process.pid)
            assert await served.stop() == 0
        assert len(answers) == 100
        assert all("result" in answer for answer in answers)
        assert family
        await until(lambda: not any(alive(pid) for pid in family))


async def test_calls_that_take_too_long_are_told_that_it_stops(config: Path, tmp_path: Path) -> None:
    async with Served(config) as served, working(served, tmp_path / "mark", 2, 600) as answers:
        assert await served.stop() == 0
    assert [answer["error"] for answer in answers] == [
        {"code": -32603, "message": "plait is shutting down"}
    ] * 2


async def test_open_streams_do_not_keep_it_from_stopping(config: Path) -> None:
    async with Served(config) as served, aiohttp.ClientSession() as http:
        session = await hello(http, served.url)
        events = {"Accept": "text/event-stream"}
        standing = await http.get(served.url, headers={**session, **events})
        old = await http.get(served.url.replace("/mcp", "/sse"), headers=events)
        assert (standing.status, old.status) == (200, 200)
        assert await served.stop() == 0
        for stream in (standing, old):
            async with asyncio.timeout(PATIENCE):
                await stream.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_whoever_insists_is_obeyed_at_once(config: Path, tmp_path: Path, number: int) -> None:
    async with Served(config) as served, working(served, tmp_path / "mark", 1, 600) as answers:
        served.process.send_signal(number)
        assert served.process.stderr is not None
        await served.noted("stopping")
        assert await served.stop(number) == 0
    assert len(answers) == 1


async def test_it_can_be_stopped_while_servers_are_starting(tmp_path: Path) -> None:
    entry = {"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]}
    config = write_config(tmp_path / "plait.json", {"hangs": entry})
    async with Served(config) as served:
        family = children_of(served.process.pid)
        assert await served.stop(signal.SIGINT) == 0
    await until(lambda: not any(alive(pid) for pid in family))
