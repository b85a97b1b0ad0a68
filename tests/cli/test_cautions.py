"""What works in a file and is better not there."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from plait.cli.cautions import cautions
from plait.config.load import load
from plait.config.model import Config, StdioServer
from plait.config.problem import Problem

SECRET = "correct-horse-7"


def of(folder: Path, entry: Mapping[str, object], plait: Mapping[str, object] | None = None) -> list[Problem]:
    """The warnings about one server of a file."""
    path = folder / "plait.json"
    path.write_text(json.dumps({"mcpServers": {"s": entry}, "plait": plait or {}}, indent=1))
    return cautions(load([path], {"TOKEN": SECRET}, folder))


def codes(found: list[Problem]) -> list[str]:
    return [problem.code for problem in found]


def test_each_is_a_warning_that_says_where_it_is_and_what_to_do(tmp_path: Path) -> None:
    entry = {"command": "npx", "args": ["-y", "thing"], "env": {"LD_PRELOAD": "x.so"}}
    found = of(tmp_path, entry)
    assert codes(found) == ["W201", "W203"]
    for problem in found:
        assert (problem.severity, problem.server) == ("warning", "s")
        assert problem.where is not None
        assert problem.where.line == 3
        assert problem.hints
        assert "is not started" not in problem.render()


def test_a_file_without_any_of_it_has_no_warnings(tmp_path: Path) -> None:
    entry = {
        "command": "/usr/bin/node",
        "args": ["server.js", "-c", "--token", "${TOKEN}"],
        "env": {"TOKEN": SECRET, "PATH": "/bin"},
    }
    assert of(tmp_path, entry) == []


# ---- W201


def test_a_package_without_a_version_is_named_with_its_remedy(tmp_path: Path) -> None:
    [problem] = of(tmp_path, {"command": "/usr/local/bin/npx", "args": ["-y", "@scope/thing", "/data"]})
    assert problem.code == "W201"
    assert "npx fetches whatever version of '@scope/thing' is the newest" in problem.message
    assert problem.hints == ("write @scope/thing@VERSION, with the exact version that you have tried",)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["NODE_ENV=production", "npx", "thing"], ["W201"]),
        (["-i", "-u", "HOME", "A=1", "uvx", "thing"], ["W201"]),
        (["env", "A=1", "bash", "-c", "x"], ["W202"]),
        (["LD_PRELOAD=x.so", "thing"], ["W203"]),
        (["A=1"], []),
    ],
)
def test_what_stands_behind_env_is_looked_at_too(
    args: list[str], expected: list[str], tmp_path: Path
) -> None:
    assert codes(of(tmp_path, {"command": "env", "args": args})) == expected


# ---- W202


@pytest.mark.parametrize(
    "words",
    ["sh -c x", "/bin/bash -c x", "bash -lc x", "bash -o pipefail -ec x", "zsh --login -c x", "dash +e -c x"],
)
def test_a_program_for_a_shell_is_warned_of(words: str, tmp_path: Path) -> None:
    command, *args = words.split()
    [problem] = of(tmp_path, {"command": command, "args": args})
    assert problem.code == "W202"
    assert "args" in problem.hints[0]


@pytest.mark.parametrize(
    "words", ["bash server.sh -c x", "sh -e server.sh", "bash -- -c", "python -c x", "bash"]
)
def test_a_script_in_a_file_is_not(words: str, tmp_path: Path) -> None:
    command, *args = words.split()
    assert of(tmp_path, {"command": command, "args": args}) == []


# ---- W203


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "NODE_OPTIONS", "PYTHONSTARTUP", "BASH_ENV", "GIT_SSH_COMMAND"]
)
def test_a_variable_that_loads_code_is_warned_of_however_it_gets_there(name: str, tmp_path: Path) -> None:
    ways: list[tuple[Mapping[str, object], Mapping[str, object]]] = [
        ({"command": "thing", "env": {name: "x"}}, {}),
        ({"command": "thing", "plait": {"env": [name]}}, {}),
        ({"command": "thing"}, {"env": [name]}),
    ]
    for entry, plait in ways:
        [problem] = of(tmp_path, entry, plait)
        assert problem.code == "W203"
        assert name in problem.message


# ---- W204


def test_a_secret_that_is_written_out_is_warned_of_and_never_repeated(tmp_path: Path) -> None:
    [problem] = of(tmp_path, {"command": "thing", "args": ["--api-key", SECRET]})
    assert problem.code == "W204"
    assert "the value of '--api-key'" in problem.message
    assert problem.where is not None
    assert problem.where.path == "mcpServers.s.args[1]"
    assert SECRET not in repr(problem) + problem.render()


def test_the_words_of_the_file_count_and_not_what_they_stand_for(tmp_path: Path) -> None:
    assert of(tmp_path, {"command": "thing", "args": ["--api-key", "${TOKEN}"]}) == []


def test_two_servers_of_one_shape_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "plait.json"
    servers = {
        "a": {"command": "thing", "args": ["--api-key", "${TOKEN}"]},
        "ab": {"command": "thing", "args": ["--api-key", SECRET]},
    }
    path.write_text(json.dumps({"tools": {"mcpServers": servers}}))
    [problem] = cautions(load([path], {"TOKEN": SECRET}, tmp_path))
    assert problem.server == "ab"


def test_a_server_that_stands_in_no_file_is_judged_by_its_arguments(tmp_path: Path) -> None:
    server = StdioServer(name="s", command="thing", args=["--api-key", SECRET])
    assert codes(cautions(Config(servers=(server,)))) == ["W204"]


def test_a_file_that_is_gone_meanwhile_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "plait.json"
    path.write_text(json.dumps({"mcpServers": {"s": {"command": "thing", "args": [f"--password={SECRET}"]}}}))
    config = load([path], {}, tmp_path)
    path.unlink()
    assert codes(cautions(config)) == ["W204"]


# ---- W205


@pytest.mark.parametrize(("kind", "section"), [("command", "commands"), ("url", "urls")])
def test_a_declared_parameter_without_a_policy_is_warned_of(kind: str, section: str, tmp_path: Path) -> None:
    declared = {"parameters": {"ci__*": {"line": kind}}}
    [problem] = of(tmp_path, {"command": "thing"}, {"policy": declared})
    assert problem.code == "W205"
    assert f'"{section}": {{}}' in problem.hints[0]
    assert of(tmp_path, {"command": "thing"}, {"policy": {**declared, section: {}}}) == []


def test_our_own_tools_and_what_is_left_out_on_purpose_need_none(tmp_path: Path) -> None:
    declared = {"builtin__echo": {"text": "command"}, "ci__*": {"line": "none"}}
    assert of(tmp_path, {"command": "thing"}, {"policy": {"parameters": declared}}) == []
