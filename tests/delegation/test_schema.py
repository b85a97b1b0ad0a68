"""Definitions and results between the shapes of MCP, OpenAI and Anthropic."""

import pytest

from plait.delegation.conversation import Outcome
from plait.delegation.schema import (
    Toolset,
    as_text,
    openai_to_anthropic,
    read_definition,
    tool_result,
    wanted,
)
from plait.wire.tools import ToolDefinition

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NAMES = ("echo", "read_file", "exec_shell")


def openai(name: str) -> dict[str, object]:
    return {"type": "function", "function": {"name": name, "description": name.title(), "parameters": SCHEMA}}


@pytest.mark.requirement("S1-T9.1", "S1-T9.2", "S1-051")
@pytest.mark.parametrize("count", [1, 3])
def test_every_tool_is_unwrapped_and_its_schema_renamed(count: int) -> None:
    names = NAMES[:count]
    expected = [{"name": each, "description": each.title(), "input_schema": SCHEMA} for each in names]
    assert openai_to_anthropic([openai(each) for each in names]) == expected


@pytest.mark.requirement("S1-T9.3")
def test_what_cannot_be_read_is_left_out() -> None:
    broken: list[dict[str, object]] = [
        {"type": "function"},
        {"name": "no schema"},
        {"type": "function", "function": {"description": "no name"}},
    ]
    assert [each["name"] for each in openai_to_anthropic([*broken, openai("echo")])] == ["echo"]


def test_all_three_shapes_mean_the_same() -> None:
    shapes: list[dict[str, object]] = [
        openai("echo"),
        {"name": "echo", "description": "Echo", "inputSchema": SCHEMA},
        {"name": "echo", "description": "Echo", "input_schema": SCHEMA},
    ]
    assert [read_definition(each) for each in shapes] == [ToolDefinition("echo", "Echo", SCHEMA)] * 3


@pytest.mark.requirement("S1-T9.4")
def test_a_result_is_its_json() -> None:
    outcome = Outcome("id", as_text({"file": "content"}))
    assert tool_result(outcome) == {
        "type": "tool_result",
        "tool_use_id": "id",
        "content": '{"file":"content"}',
    }


@pytest.mark.requirement("S1-T9.5")
def test_a_failure_says_so() -> None:
    failed = tool_result(Outcome("id", "not found", is_error=True))
    assert failed == {"type": "tool_result", "tool_use_id": "id", "content": "not found", "is_error": True}


@pytest.mark.requirement("S1-T9.6", "S1-T9.7", "S1-T9.8")
@pytest.mark.parametrize(
    ("include", "exclude", "left"),
    [
        (["echo"], [], ["echo"]),
        ([], ["exec_shell"], ["echo", "read_file"]),
        ([], [], list(NAMES)),
        (["e*"], ["exec_*"], ["echo"]),
    ],
)
def test_tools_are_chosen_by_patterns(include: list[str], exclude: list[str], left: list[str]) -> None:
    assert [name for name in NAMES if wanted((name,), include, exclude)] == left


def test_a_name_that_no_model_takes_is_shown_as_another_and_found_again() -> None:
    toolset = Toolset.of([ToolDefinition("a.b c", "Odd.")])
    [shown] = toolset.definitions
    assert shown != "a.b c"
    assert toolset.find(shown) == "a.b c"
    assert toolset.find("a.b c") is None
    assert toolset.anthropic()[0]["name"] == toolset.sampling()[0]["name"] == shown
