"""Between a model and its tools: definitions, arguments, words."""

from collections.abc import Mapping

import pytest
from msgspec import UNSET
from msgspec.json import decode

from plait.agent import LONGEST_DESCRIPTION, ToolText, in_words, read_arguments, shaped
from plait.errors import ToolError
from plait.wire.tools import CallToolResult, ContentBlock, ToolDefinition

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}

# ---- definitions


def test_openai_gets_a_function_with_parameters() -> None:
    assert shaped(ToolDefinition("fs__read", "Reads.", SCHEMA), "openai") == {
        "type": "function",
        "function": {"name": "fs__read", "description": "Reads.", "parameters": SCHEMA},
    }


def test_anthropic_gets_a_tool_with_an_input_schema() -> None:
    assert shaped(ToolDefinition("fs__read", "Reads.", SCHEMA), "anthropic") == {
        "name": "fs__read",
        "description": "Reads.",
        "input_schema": SCHEMA,
    }


def test_a_dialect_that_nobody_speaks_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="'gemini' is no dialect; there is openai and anthropic"):
        shaped(ToolDefinition("t"), "gemini")


@pytest.mark.parametrize(
    ("tool", "described"),
    [
        (ToolDefinition("t", "Words.", more={"title": "A title"}), "Words."),
        (ToolDefinition("t", more={"title": "A title"}), "A title"),
        (ToolDefinition("t"), "t"),
    ],
)
def test_there_is_always_a_description(tool: ToolDefinition, described: str) -> None:
    assert shaped(tool, "anthropic")["description"] == described


def test_a_description_too_long_for_openai_is_cut_for_openai_only() -> None:
    tool = ToolDefinition("t", "x" * (LONGEST_DESCRIPTION + 1))
    function = shaped(tool, "openai")["function"]
    assert isinstance(function, dict)
    assert (len(function["description"]), function["description"][-2:]) == (LONGEST_DESCRIPTION, "x…")
    assert shaped(tool, "anthropic")["description"] == tool.description


def test_a_name_that_apis_refuse_becomes_one_that_they_take() -> None:
    assert shaped(ToolDefinition("as it is"), "anthropic")["name"] == "as_it_is_f5c9477a"
    assert len(str(shaped(ToolDefinition("x" * 65), "anthropic")["name"])) == 64


# ---- arguments


@pytest.mark.parametrize("given", [None, "", "  ", "{}", {}])
def test_no_arguments_are_an_empty_object(given: str | Mapping[str, object] | None) -> None:
    assert bytes(read_arguments(given)) == b"{}"


@pytest.mark.parametrize("given", [{"a": [1, None]}, '{"a": [1, null]}', ' {"a":[1,null]}\n'])
def test_arguments_are_an_object_or_its_text(given: str | Mapping[str, object]) -> None:
    assert decode(read_arguments(given)) == {"a": [1, None]}


@pytest.mark.parametrize("given", ['{"a": ', "[1]", "null", "path=x", {"a": object()}, {"a": "\ud83d"}])
def test_arguments_that_are_none_are_explained_to_the_model(given: str | Mapping[str, object]) -> None:
    with pytest.raises(ToolError, match=r"the arguments are not one JSON object: .*; call again with one"):
        read_arguments(given)


# ---- results

PICTURE = ContentBlock.image("AAAA", "image/png")
LINK = ContentBlock.link("x:1", "one")
BLOB = ContentBlock("resource", {"resource": {"uri": "x:2", "mimeType": "a/b", "blob": "AAAA"}})
TEXTUAL = ContentBlock("resource", {"resource": {"uri": "x:3", "text": "inside"}})
A, B = ContentBlock.text("a"), ContentBlock.text("b")


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ([A, B], "ab"),
        ([A, PICTURE, B], "a\n[image image/png]\nb"),
        ([LINK], "[resource_link one x:1]"),
        ([BLOB, TEXTUAL], "[resource x:2 a/b]\ninside"),
        ([ContentBlock("later", {"x": 1})], "[later]"),
        ([ContentBlock("text", {"text": 7}), ContentBlock("")], "[text]\n[block]"),
        ([], "(no output)"),
        ([ContentBlock.text("")], "(no output)"),
    ],
)
def test_texts_are_joined_and_the_rest_is_named(blocks: list[ContentBlock], said: str) -> None:
    assert in_words(CallToolResult(blocks)) == said


def test_structured_content_speaks_where_there_is_no_text() -> None:
    assert in_words(CallToolResult(structured={"x": [1]})) == '{"x":[1]}'
    assert in_words(CallToolResult([A], structured={"x": [1]})) == "a"
    assert in_words(CallToolResult(structured=None)) == "null"
    assert in_words(CallToolResult(structured=UNSET)) == "(no output)"


def test_a_failure_is_text_as_well_and_says_that_it_is_one() -> None:
    assert not in_words(CallToolResult.text("fine")).is_error
    failed = in_words(CallToolResult.error("no such file"))
    assert (failed, failed.is_error, type(failed)) == ("no such file", True, ToolText)
    assert in_words(CallToolResult(is_error=True)) == "Tool reported an error without details"
