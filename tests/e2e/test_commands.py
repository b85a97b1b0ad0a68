"""The commands as people and scripts type them: output, exit codes, and nothing where it does not belong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway import write_config
from raw_peer import RawPeer

pytestmark = pytest.mark.e2e

ECHO = Path(__file__).resolve().parent.parent / "echo_server.py"
SERVER = {"command": sys.executable, "args": [str(ECHO)]}


def plait(*arguments: str, cwd: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "plait", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=60,
        env={**os.environ, **environ},
        check=False,
    )


def test_list_groups_signatures_by_server(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.json", {"one": SERVER, "two": SERVER})
    done = plait("list", "-c", str(config), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "one  1 tool",
        "  one__echo()",
        "      Says it again.",
        "two  1 tool",
        "  two__echo()",
        "      Says it again.",
    ]


@pytest.mark.requirement("S1-R4", "S1-E2")
def test_list_as_json_has_tools_and_the_state_of_every_server(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.json", {"one": SERVER, "bad": {"command": "no-such-program"}})
    done = plait("list", "-c", str(config), "--json", cwd=tmp_path)
    assert done.returncode == 0
    listed = json.loads(done.stdout)
    assert [tool["name"] for tool in listed["tools"]] == ["one__echo"]
    states = {server["name"]: server for server in listed["servers"]}
    assert states["one"]["ok"] is True
    assert states["bad"]["ok"] is False
    assert "no-such-program" in states["bad"]["reason"]


def test_list_takes_a_pattern_and_ours_is_read_from_this_folder(tmp_path: Path) -> None:
    write_config(tmp_path / "plait.json", {"one": SERVER, "two": SERVER})
    done = plait("list", "two*", cwd=tmp_path)
    assert "one" not in done.stdout
    assert "two__echo" in done.stdout


def test_when_no_server_is_there_list_says_so_with_its_exit_code(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.json", {"bad": {"command": "no-such-program"}})
    done = plait("list", "-c", str(config), cwd=tmp_path)
    assert done.returncode == 4
    assert "bad  failed" in done.stdout


def test_call_prints_the_text_of_the_result(tmp_path: Path) -> None:
    done = plait("call", "builtin__echo", "text=hello", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")


def test_call_reads_values_by_the_tools_own_schema(tmp_path: Path) -> None:
    assert plait("call", "builtin__echo", "text=5", cwd=tmp_path).stdout == "5\n"
    config = write_config(tmp_path / "c.json", {"one": SERVER})
    done = plait("call", "one__echo", "n=5", 'l=["a"]', "s=x y", "-c", str(config), cwd=tmp_path)
    assert json.loads(done.stdout) == {"n": 5, "l": ["a"], "s": "x y"}


def test_call_takes_all_arguments_as_json_and_gives_all_of_the_result(tmp_path: Path) -> None:
    done = plait("call", "builtin__echo", "--args", '{"text":"a\\u00e9\\nb"}', "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["content"] == [{"type": "text", "text": "aé\nb"}]


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("builtin__echo", "text"), 1, "'text' is not of the form KEY=VALUE"),
        (("builtin__echo", "--args", "[1]"), 1, "--args is no JSON object"),
        (("builtin__ecko",), 5, "Did you mean builtin__echo"),
        (("builtin__echo",), 5, "echo: Object missing required field `text`"),
        (("nowhere__echo",), 5, "unknown namespace 'nowhere'"),
    ],
)
def test_call_explains_what_went_wrong(
    arguments: tuple[str, ...], code: int, complaint: str, tmp_path: Path
) -> None:
    done = plait("call", *arguments, cwd=tmp_path)
    assert done.returncode == code
    assert complaint in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_a_bare_name_that_fits_one_tool_is_enough(tmp_path: Path) -> None:
    assert plait("call", "echo", "text=hi", cwd=tmp_path).stdout == "hi\n"


def test_check_resolves_and_starts(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.json", {"one": SERVER})
    done = plait("check", "--start", "-c", str(config), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "✓ one  1 tools" in done.stdout


def test_check_names_the_place_of_a_mistake_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "plait.json").write_text(
        '{"mcpServers": {\n  "a": {"command": "${NOT_SET_ANYWHERE}"},\n'
        '  "b": {"command": "no-such-program"}, // a comment\n  "c": {"command": "true"}\n}}'
    )
    done = plait("check", cwd=tmp_path)
    assert done.returncode == 7
    assert "plait.json:2:21" in done.stderr
    assert "NOT_SET_ANYWHERE" in done.stderr
    assert "no-such-program" in done.stdout
    assert "✓ c" in done.stdout


RISKY = {
    "fetched": {"command": "env", "args": ["npx", "-y", "@scope/thing"]},
    "shell": {"command": "sh", "args": ["-c", "cat"]},
    "loaded": {"command": "cat", "env": {"NODE_OPTIONS": "--require=x.js"}},
    "secret": {"command": "cat", "args": ["--api-key", "correct-horse-7"]},
}


def test_check_warns_of_what_is_better_not_in_a_file_and_counts_it_only_when_told_to(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.json", RISKY)
    done = plait("check", "-c", str(config), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for server, code in zip(RISKY, ("W201", "W202", "W203", "W204"), strict=True):
        assert f"warning[{code}]: server '{server}'" in done.stderr
    assert "correct-horse-7" not in done.stdout + done.stderr
    assert plait("check", "--strict", "-c", str(config), cwd=tmp_path).returncode == 7
    told = json.loads(plait("check", "--json", "-c", str(config), cwd=tmp_path).stdout)
    assert [problem["code"] for problem in told["problems"]] == ["W201", "W202", "W203", "W204"]
    assert all(problem["hints"] for problem in told["problems"])


def test_warnings_of_check_stop_no_server(tmp_path: Path) -> None:
    """They are about a user's own file, which works as it is."""
    config = write_config(tmp_path / "c.json", {"one": {**SERVER, "env": {"NODE_OPTIONS": "--x"}}})
    done = plait("call", "one__echo", "a=1", "-c", str(config), cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"a": 1}\n', "")


def test_check_lists_tools_that_look_executable_or_networked_and_that_no_policy_covers(
    tmp_path: Path,
) -> None:
    peer = RawPeer(tmp_path)
    peer.says("tools/list", "result", json.dumps({"tools": [RUN, GET, ADD]}).encode())
    arguments = ("check", "--start", "-c", str(peer.config()))
    done = plait(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "warning[W210]: raw__run_it (cmd) looks as if it ran commands" in done.stderr
    assert "warning[W211]: raw__get (url) looks as if it reached URLs" in done.stderr
    assert "raw__add" not in done.stderr
    assert plait(*arguments, "--strict", cwd=tmp_path).returncode == 7
    policy = write_config(tmp_path / "policy.json", {}, {"policy": {"commands": {}, "urls": {}}})
    covered = plait(*arguments, "--strict", "-c", str(policy), cwd=tmp_path)
    assert (covered.returncode, covered.stderr) == (0, "")


RUN = {"name": "run_it", "inputSchema": {"type": "object", "properties": {"cmd": {"type": "string"}}}}
GET = {"name": "get", "inputSchema": {"type": "object", "properties": {"url": {"type": "string"}}}}
ADD = {"name": "add", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}}}


def test_a_command_that_is_not_on_path_says_where_we_looked(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.json", {"b": {"command": "no-such-program"}})
    done = plait("check", "-c", str(config), cwd=tmp_path, PATH=f"/usr/bin:{tmp_path}")
    assert str(tmp_path) in done.stdout


def test_a_file_that_is_not_json_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "plait.json").write_text('{"mcpServers": {"a": {"command": "x"} "b": 1}}')
    for command in (("list",), ("check",), ("call", "x"), ("mcp-server",)):
        done = plait(*command, cwd=tmp_path)
        assert done.returncode == 7, command
        assert "plait.json:1:39: missing ',' between entries" in done.stderr
        assert "Traceback" not in done.stderr


def test_files_of_other_programs_are_mentioned_and_not_read(tmp_path: Path) -> None:
    write_config(tmp_path / ".mcp.json", {"evil": {"command": "touch", "args": [str(tmp_path / "ran")]}})
    done = plait("list", cwd=tmp_path)
    assert "-c .mcp.json" in done.stderr
    assert "evil" not in done.stdout
    assert not (tmp_path / "ran").exists()


def test_help_version_and_usage_errors(tmp_path: Path) -> None:
    assert plait("--version", cwd=tmp_path).stdout.startswith("plait ")
    assert "mcp-server" in plait("--help", cwd=tmp_path).stdout
    assert plait("no-such-command", cwd=tmp_path).returncode == 1
    assert plait(cwd=tmp_path).returncode == 1


def test_the_log_goes_to_stderr_only(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.json", {"one": SERVER})
    hello = (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
        b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
    )
    argv = [sys.executable, "-m", "plait", "mcp-server", "-c", str(config), "--log-level", "debug"]
    done = subprocess.run(argv, input=hello, capture_output=True, timeout=60, check=True)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]
    assert b"active: running" in done.stderr


def test_output_that_nobody_reads_to_its_end_is_no_error_message(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m plait list | head -c 1",
        shell=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=True,
    )
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
