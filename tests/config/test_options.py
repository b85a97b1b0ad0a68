"""Our own keys: what they set, and what is said when they cannot."""

import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from plait.config import Config, ServerSettings, Settings, guards
from plait.config.model import StreamSettings
from plait.config.options import OPTIONS, SERVER_OPTIONS
from plait.config.reading import Option


def server_settings(config: Config) -> ServerSettings:
    assert not config.problems
    return config.servers[0].settings


def entry(rest: str) -> str:
    return '{"mcpServers": {"fs": {"command": "x", ' + rest + "}}}"


def test_every_setting_has_its_option() -> None:
    assert {option.field for option in SERVER_OPTIONS} == set(ServerSettings.__struct_fields__)
    assert {option.field for option in OPTIONS} == {*Settings.__struct_fields__}


DOCUMENT = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()


@pytest.mark.parametrize(
    "option",
    [
        *guards.RULE_OPTIONS,
        *guards.COMMAND_OPTIONS,
        *guards.URL_OPTIONS,
        *guards.POLICY_OPTIONS,
        *guards.RESULT_OPTIONS,
        *guards.AUDIT_OPTIONS,
    ],
    ids=lambda option: option.spellings[0],
)
def test_every_setting_of_a_guard_is_documented(option: Option) -> None:
    assert f"`{option.spellings[0]}`" in DOCUMENT.split("### `rules`")[1]


@pytest.mark.parametrize("example", re.findall(r"```json\n(.+?)```", DOCUMENT, re.DOTALL))
def test_the_examples_of_the_document_are_right(read: Callable[..., Config], example: str) -> None:
    config = read(example)
    assert not config.problems
    assert config.settings != Settings()


def test_the_limits_of_streams_are_set_for_all_servers_or_for_one(read: Callable[..., Config]) -> None:
    config = read(
        '{"plait": {"limits": {"stream": {"items": 7, "seconds": 1.5}}},'
        ' "mcpServers": {"fs": {"command": "x", "plait": {"stream": {"bytes": 9, "items": 8}}}}}'
    )
    assert server_settings(config).stream == StreamSettings(items=8, bytes=9, seconds=1.5)
    assert read(entry('"plait": {"stream": {"bytes": 0}}')).problems


def test_a_file_sets_what_concerns_us(read: Callable[..., Config]) -> None:
    config = read(
        '{"plait": {"separator": ".", "nameBudget": 12, "pageSize": 50, "maxMessageBytes": 1000,'
        ' "startWait": 0, "name": "mine", "env": ["A", "B"], "builtin": true}}'
    )
    assert not config.problems
    assert config.settings == Settings(
        separator=".",
        name_budget=12,
        page_size=50,
        max_message_bytes=1000,
        start_wait=0.0,
        name="mine",
        env=("A", "B"),
        builtin=True,
    )


def test_an_entry_sets_what_concerns_its_server(read: Callable[..., Config]) -> None:
    config = read(
        entry(
            '"plait": {"prefix": "", "timeout": 1.5, "startTimeout": 2, "env": ["A"], "maxMessageBytes": 9,'
            ' "memory": 10, "processes": 11, "tools": ["list_*"], "hiddenTools": ["list_x"],'
            ' "concurrency": 12, "queue": 0, "sanitise": false}'
        )
    )
    assert server_settings(config) == ServerSettings(
        prefix="",
        timeout=1.5,
        start_timeout=2.0,
        env=("A",),
        max_message_bytes=9,
        memory=10,
        processes=11,
        tools=("list_*",),
        hidden_tools=("list_x",),
        concurrency=12,
        queue=0,
        sanitise=False,
    )


def test_words_may_be_joined_by_underscores(read: Callable[..., Config]) -> None:
    config = read(entry('"plait": {"start_timeout": 2, "max_message_bytes": 9, "hidden_tools": ["x"]}'))
    assert server_settings(config) == ServerSettings(
        start_timeout=2.0, max_message_bytes=9, hidden_tools=("x",)
    )


@pytest.mark.parametrize("key", ["includeTools", "enabled_tools", "tools"])
def test_other_programs_words_for_shown_tools_are_read(read: Callable[..., Config], key: str) -> None:
    assert server_settings(read(entry(f'"{key}": ["a", "b"]'))).tools == ("a", "b")


@pytest.mark.parametrize("key", ["excludeTools", "disabledTools", "disabled_tools"])
def test_other_programs_words_for_hidden_tools_are_read(read: Callable[..., Config], key: str) -> None:
    assert server_settings(read(entry(f'"{key}": ["a"]'))).hidden_tools == ("a",)


def test_our_own_word_goes_first_and_hidden_tools_add_up(read: Callable[..., Config]) -> None:
    config = read(
        entry(
            '"includeTools": ["a"], "excludeTools": ["b", "c"],'
            ' "plait": {"tools": ["d"], "hiddenTools": ["b", "e"]}'
        )
    )
    assert server_settings(config) == ServerSettings(tools=("d",), hidden_tools=("b", "e", "c"))


def test_an_object_under_tools_belongs_to_another_program(read: Callable[..., Config]) -> None:
    assert server_settings(read(entry('"tools": {"a": {"name": "b"}}'))).tools is None


def test_no_tool_at_all_is_not_every_tool(read: Callable[..., Config]) -> None:
    assert server_settings(read(entry('"includeTools": []'))).tools == ()


def test_a_misspelled_limit_stops_the_server_it_was_for(read: Callable[..., Config]) -> None:
    config = read(entry('"plait": {"tols": ["list_*"]}'))
    assert config.servers == ()
    (problem,) = config.problems
    assert (problem.code, problem.severity, problem.server) == ("C106", "error", "fs")
    assert str(problem) == "plait.json:1:50: unknown field 'tols'. Did you mean 'tools'?"


def test_an_unknown_setting_lists_the_known_ones(read: Callable[..., Config]) -> None:
    problem, consequence = read('{"plait": {"zzz": 1}}').problems
    assert (problem.message, problem.server) == ("unknown field 'zzz'", None)
    assert "separator" in problem.hints[0]
    assert consequence.message == "every call is denied until the configuration's guards can be read"


def test_a_setting_in_two_spellings_is_a_problem(read: Callable[..., Config]) -> None:
    (problem,) = read('{"plait": {"pageSize": 1, "page_size": 2}}').problems
    assert (problem.code, problem.message) == ("C110", "'page_size' says again what 'pageSize' says")


@pytest.mark.parametrize(
    ("setting", "code", "message"),
    [
        ('"prefix": "Fs"', "C107", "'Fs' cannot be a prefix"),
        ('"prefix": 1', "C103", "expected a string, got a number"),
        ('"timeout": 0', "C107", "expected more than 0 seconds, and no more than a year"),
        ('"timeout": 1e999', "C107", "expected more than 0 seconds, and no more than a year"),
        ('"timeout": "60"', "C103", "expected a number of seconds, got a string"),
        ('"timeout": true', "C103", "expected a number of seconds, got true"),
        ('"env": {"A": "b"}', "C103", "expected a list of names, got an object"),
        ('"env": ["A=b"]', "C107", "expected the name of a variable, and only that"),
        ('"memory": 1.5', "C103", "expected a whole number, got a number"),
        ('"processes": 0', "C107", "expected 1 or more"),
        ('"concurrency": 0', "C107", "expected 1 or more"),
        ('"queue": -1', "C107", "expected 0 or more"),
        ('"sanitize": 1', "C103", "expected true or false, got a number"),
        ('"tools": "list_*"', "C103", "expected a list of strings, got a string"),
        ('"tools": [null]', "C103", "expected a string, got null"),
    ],
)
def test_a_wrong_value_says_what_was_expected(
    read: Callable[..., Config], setting: str, code: str, message: str
) -> None:
    config = read(entry('"plait": {' + setting + "}"))
    assert config.servers == ()
    (problem,) = config.problems
    assert (problem.code, problem.message, problem.server) == (code, message, "fs")


def test_a_wrong_setting_of_the_file_leaves_its_default(read: Callable[..., Config]) -> None:
    config = read('{"plait": {"separator": "-", "startWait": -1, "name": "", "env": ["A", ""]}}')
    assert config.settings == Settings()
    assert [problem.message for problem in config.problems] == [
        "'-' is none of '__', '_', '.'",
        "expected 0 or more seconds, and no more than a year",
        "an empty string",
        "expected the name of a variable, and only that",
    ]


def test_a_plait_key_that_is_no_object_is_a_problem(read: Callable[..., Config]) -> None:
    (problem,) = read('{"plait": true}').problems
    assert problem.message == "expected an object, got true"


def test_the_workspace_is_expanded_and_lies_in_the_project(
    read: Callable[..., Config], tmp_path: Path
) -> None:
    for text, expected in (
        ("sub/.", str(tmp_path / "sub")),
        (".", str(tmp_path)),
        ("${workspaceFolder}/a", str(tmp_path / "a")),
        ("~/b", "/home/ada/b"),
        ("/srv/c", "/srv/c"),
    ):
        config = read('{"plait": {"workspace": "' + text + '"}}', HOME="/home/ada")
        assert not config.problems
        assert config.settings.workspace == expected


def test_an_unset_variable_in_the_workspace_points_at_its_placeholder(read: Callable[..., Config]) -> None:
    config = read('{"plait": {"workspace": "/srv/${NOPE}"}}')
    assert config.settings.workspace is None
    assert [str(problem) for problem in config.problems] == [
        "plait.json:1:31: environment variable NOPE is not set"
    ]


def test_limits_are_for_every_server_that_says_nothing_of_its_own(read: Callable[..., Config]) -> None:
    config = read(
        '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x", "plait": {"queue": 7}}},'
        ' "plait": {"limits": {"timeout": 5, "start_timeout": 6, "concurrency": 3, "queue": 4}}}'
    )
    assert not config.problems
    limits = ServerSettings(timeout=5.0, start_timeout=6.0, concurrency=3, queue=4)
    assert config.settings.limits == limits
    assert [server.settings for server in config.servers] == [
        limits,
        msgspec.structs.replace(limits, queue=7),
    ]


def test_a_limit_that_is_none_is_told(read: Callable[..., Config]) -> None:
    config = read('{"plait": {"limits": {"prefix": "x", "queue": "y"}}}')
    assert [problem.message for problem in config.problems] == [
        "unknown field 'prefix'",
        "expected a whole number, got a string",
    ]
    assert config.settings == Settings()
