"""The line of a file that is shown has no secret on it, however the file is wrong."""

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait.config import Config, ConfigFileError
from plait.config.document import parse
from plait.config.excerpt import excerpt

SECRET = "hush1234"
FILE = {
    "mcpServers": {
        "one": {
            "command": "x",
            "args": ["${UNSET}"],
            "env": {"PASS": SECRET, "name": SECRET, "X": "${UNSET:-" + SECRET + "}", "Y": "${UNSET}"},
            "oauth": {"type": SECRET},
            "plait": {"env": {"TOKEN": SECRET}, "prefix": "A", "timeout": "x"},
        },
        "two": {
            "url": "https://api.example",
            "headers": {"Authorization": f"Bearer {SECRET}", "command": "${UNSET}", "A B": SECRET},
        },
        "three": {
            "url": f"https://ada:{SECRET}@api.example/?key={SECRET}&other=${{UNSET}}",
        },
    },
    "delegation": [SECRET],
    "security": {"auth": {"mode": SECRET}, "url_policy": {"blocked_domains": [f"https://x:{SECRET}@y"]}},
    "plait": {
        "rules": [{"deny": "x", "unless": {"token": SECRET, "n": 1}, "identity": SECRET, "reasn": SECRET}],
        "policy": {"urls": {"allowedDomains": [f"https://x:{SECRET}@y"], "tokn": SECRET}, "key": SECRET},
        "results": {"token": SECRET},
        "audit": {"dir": "${UNSET}", "key": SECRET},
    },
}


def shown(text: str, part: str) -> str:
    return excerpt(parse(text, "plait.json"), text.index(part))


def rendered(read: Callable[..., Config], text: str) -> str:
    try:
        config = read(text, SET=SECRET)
    except ConfigFileError as fault:
        return f"{fault}\n{fault.problem.render()}\n{fault.problem!r}"
    return "\n".join((repr(config), *(problem.render() for problem in config.problems)))


def test_the_whole_line_is_shown_without_its_indentation() -> None:
    assert shown('{\n  "plait": {\n    "prefix": "x",\t\n  }}', "prefix") == '"prefix": "x",'


def test_of_a_long_line_only_what_is_near_is_shown() -> None:
    text = '{"mcpServers": {"fs": {"args": ["' + "a" * 500 + '", "here", "' + "b" * 500 + '"]}}}'
    found = shown(text, '"here"')
    assert len(found) <= 125
    assert re.fullmatch('…a+", "here", "b+…', found)


def test_a_comment_is_not_shown() -> None:
    assert shown('{"plait": {"prefix": "x"}} // was hush', "prefix") == '{"plait": {"prefix": "x"}} ***'


def test_a_placeholder_is_shown_and_the_text_around_it_is_not() -> None:
    text = '{"servers": {"x": {"headers": {"A": "Bearer ${T}", "B": "hush${T:-hush}"}}}}'
    assert shown(text, "${T}").endswith('"A": "Bearer ${T}", "B": "***${T:-***}"}}}}')


def test_a_server_of_a_project_is_shown_as_any_other() -> None:
    text = '{"projects": {"/srv": {"mcpServers": {"x": {"command": "npx", "env": {"A": "hush"}}}}}}'
    assert shown(text, "npx").endswith('{"command": "npx", "env": {"A": "***"}}}}}}')


def test_a_terminal_gets_nothing_to_obey() -> None:
    assert shown('{"plait": {"prefix": "\u202e\x9b"}}', "prefix") == '{"plait": {"prefix": "  "}}'


@pytest.mark.parametrize("indent", [None, 1])
def test_no_secret_is_in_any_message(read: Callable[..., Config], indent: int | None) -> None:
    text = rendered(read, json.dumps(FILE, indent=indent))
    assert text.count("error[") >= 14
    assert SECRET not in text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(st.data())
def test_one_wrong_character_anywhere_reveals_no_secret(
    read: Callable[..., Config], data: st.DataObject
) -> None:
    text = json.dumps(FILE, indent=data.draw(st.sampled_from([None, 1])))
    position = data.draw(st.integers(0, len(text)))
    wrong = data.draw(st.sampled_from(["", '"', "'", ",", "{", "}", "\\", "\n", "x", "/", "//", "$"]))
    broken = text[:position] + wrong + text[position + data.draw(st.integers(0, 1)) :]
    assert SECRET not in rendered(read, broken)
