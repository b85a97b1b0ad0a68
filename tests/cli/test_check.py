"""`plait check`: what it tells, and by which exit code."""

import itertools
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from plait.cli.exits import CONFIG, OK
from plait.cli.main import main

Check = Callable[..., int]

PROVIDER = """
from plait import FunctionProvider

async def run(command: str) -> str:
    "Runs."
    return command

async def read(url: str) -> str:
    "Reads."
    return url

async def add(a: int, b: int) -> int:
    "Adds."
    return a + b

provider = FunctionProvider("any", [run, read, add])
"""
_numbers = itertools.count()


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """`check(plait settings, *options)` on a file that mounts a provider which lies beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    module = f"checked_{next(_numbers)}"
    (tmp_path / f"{module}.py").write_text(PROVIDER)

    def run(plait: Mapping[str, object], *options: str, **servers: object) -> int:
        entries = {"s": {"type": "python", "module": f"{module}:provider"}, **servers}
        (tmp_path / "plait.json").write_text(json.dumps({"mcpServers": entries, "plait": plait}))
        return main(["check", *options])

    return run


UNPINNED = {"command": "env", "args": ["npx", "thing"]}


def test_tools_that_no_policy_covers_are_listed_once_their_server_was_started(
    check: Check, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check({}) == OK
    assert "W21" not in capsys.readouterr().err
    assert check({}, "--start") == OK
    told = capsys.readouterr()
    assert "warning[W210]: s__run (command) looks as if it ran commands" in told.err
    assert "warning[W211]: s__read (url) looks as if it reached URLs" in told.err
    assert "plait.json:1:" in told.err
    assert "s__add" not in told.err
    assert "✓ s  3 tools" in told.out


@pytest.mark.parametrize(
    "plait",
    [
        {"policy": {"commands": {}, "urls": {}}},
        {"policy": {"parameters": {"s__*": {"command": "none", "url": "none"}}}},
        {"rules": [{"deny": "s__r*"}]},
        {"allowedTools": ["s__add"]},
    ],
)
def test_they_are_not_once_a_policy_a_declaration_or_a_rule_is_about_them(
    plait: Mapping[str, object], check: Check, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(plait, "--start", "--strict") == OK
    assert "warning" not in capsys.readouterr().err


def test_the_built_in_tools_are_covered_as_we_ship_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["check", "--start", "--strict"]) == OK
    assert "warning" not in capsys.readouterr().err


def test_warnings_count_where_they_are_asked_to(check: Check, capsys: pytest.CaptureFixture[str]) -> None:
    assert check({}, thing=UNPINNED) == OK
    assert "warning[W201]" in capsys.readouterr().err
    assert check({}, "--strict", thing=UNPINNED) == CONFIG
    assert check({}, "--strict") == OK
    assert check({}, "--strict", "--start") == CONFIG


def test_programs_get_code_place_and_hints(check: Check, capsys: pytest.CaptureFixture[str]) -> None:
    assert check({"policy": {"parameters": {"x": {"y": "url"}}}}, "--json", thing=UNPINNED) == OK
    told = json.loads(capsys.readouterr().out)
    unpinned, unjudged = told["problems"]
    assert (unpinned["code"], unpinned["severity"], unpinned["server"]) == ("W201", "warning", "thing")
    assert unpinned["where"].startswith("plait.json:1:")
    assert unpinned["hints"][0].startswith("write thing@VERSION")
    assert (unjudged["code"], unjudged["where"]) == ("W205", None)
