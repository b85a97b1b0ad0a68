"""The command `plait`: what may be typed, and which module does it."""

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

from plait.cli.exits import CONFIG, OK, TOOL_ERROR, UNEXPECTED, UNREACHABLE
from plait.cli.main import build_parser, main
from plait.errors import ConfigError
from plait.version import VERSION

COMMANDS = ["up", "mcp-server", "list", "call", "check"]

Fake = Callable[[Callable[[argparse.Namespace], int]], None]


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file, the built-in tools are served: no process is started."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def fake_list(monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Put something else in the place of what `plait list` does."""
    module = importlib.import_module("plait.cli.list")
    return lambda run: monkeypatch.setattr(module, "run", run)


# ---- what may be typed


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"plait {VERSION}\n"


@pytest.mark.parametrize(
    "arguments",
    [[], ["lsit"], ["list", "--nonsense"], ["call"], ["list", "--log-level", "loud"], ["list", "-c"]],
)
def test_a_usage_error_is_exit_code_1_on_stderr(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    captured = capsys.readouterr()
    assert left.value.code == UNEXPECTED
    assert captured.out == ""
    assert captured.err.startswith("usage: plait")
    assert "\nplait: " in captured.err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_module_that_runs_it_and_a_line_of_help(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module(f"plait.cli.{command.replace('-', '_')}")
    assert callable(module.run)
    with pytest.raises(SystemExit):
        main(["--help"])
    assert any(line.split()[:1] == [command] for line in capsys.readouterr().out.splitlines())


def test_the_help_tells_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert (
        "0 ok, 1 usage or unexpected, 4 unreachable, 5 tool error, 6 denied, 7 configuration"
        in capsys.readouterr().out
    )


def test_several_configuration_files_are_kept_in_order() -> None:
    options = build_parser().parse_args(["list", "-c", "a.json", "--config", "b.json", "fs__*"])
    assert (options.config, options.pattern, options.json) == (["a.json", "b.json"], "fs__*", False)


def test_a_call_takes_pairs_and_json() -> None:
    options = build_parser().parse_args(["call", "fs__read", "a=1", "b=2", "--args", "{}", "--json"])
    assert (options.tool, options.pairs, options.args, options.json) == (
        "fs__read",
        ["a=1", "b=2"],
        "{}",
        True,
    )


# ---- how it ends


def test_the_exit_code_is_the_commands(fake_list: Fake) -> None:
    fake_list(lambda options: 4)
    assert main(["list"]) == UNREACHABLE


def test_a_wrong_configuration_is_exit_code_7(fake_list: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(options: argparse.Namespace) -> int:
        raise ConfigError("plait.json:3:5: not like that")

    fake_list(fail)
    assert main(["list"]) == CONFIG
    assert capsys.readouterr().err == "error: plait.json:3:5: not like that\n"


def test_an_interrupt_is_exit_code_130_without_a_traceback(
    fake_list: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(options: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    fake_list(interrupt)
    assert main(["list"]) == 130
    assert capsys.readouterr().err == ""


def test_a_bug_is_said_to_be_one_and_its_traceback_is_on_request(
    fake_list: Fake, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(options: argparse.Namespace) -> int:
        raise ZeroDivisionError("division by zero")

    fake_list(fail)
    assert main(["list"]) == UNEXPECTED
    assert "this is a bug in plait; run again with --debug" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        main(["list", "--debug"])


# ---- the looking commands on the built-in tools


def test_list_shows_the_tools_as_signatures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "*__echo"]) == OK
    assert capsys.readouterr().out == (
        "builtin  1 tool\n  builtin__echo(text: string)\n      Answers with the text it is given.\n"
    )


def test_list_shows_only_what_the_pattern_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "fs__*"]) == OK
    assert capsys.readouterr().out == ""


def test_call_prints_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "builtin__echo", "text=7"]) == OK
    assert capsys.readouterr().out == "7\n"


def test_call_by_another_spelling_works_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "builtin.echo", '--args={"text":"hi"}', "--json"]) == OK
    assert capsys.readouterr().out == '{"content":[{"type":"text","text":"hi"}],"isError":false}\n'


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["builtin__echo"], TOOL_ERROR, "text"),
        (["builtin__ecoh"], TOOL_ERROR, "Did you mean builtin__echo"),
        (["other__echo"], TOOL_ERROR, "unknown namespace 'other'"),
        (["builtin__echo", "text"], UNEXPECTED, "'text' is not of the form KEY=VALUE"),
        (["builtin__echo", "--args", "[]"], UNEXPECTED, "--args is no JSON object"),
    ],
)
def test_a_call_that_fails_says_why_and_by_which_code(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["call", *arguments]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


def test_a_file_that_is_not_there_is_a_configuration_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "-c", "missing.json"]) == CONFIG
    assert "missing.json" in capsys.readouterr().err
