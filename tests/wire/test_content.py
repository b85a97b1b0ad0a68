import json

import pytest

from plait.errors import ExecutionFailed
from plait.wire.content import FAULT, error_result, extract_tool_result, text_result


def text(content: str) -> dict[str, object]:
    return {"type": "text", "text": content}


@pytest.mark.requirement("S1-T5.1", "S1-034", "S1-004")
def test_one_text_block_is_the_output() -> None:
    assert extract_tool_result({"content": [text("hello")]}) == {"output": "hello"}


@pytest.mark.requirement("S1-T5.2", "S1-013")
def test_an_error_result_is_raised_with_its_text() -> None:
    with pytest.raises(ExecutionFailed) as caught:
        extract_tool_result({"content": [text("not found")], "isError": True})
    assert caught.value.reason == "not found"


@pytest.mark.requirement("S1-T5.3")
@pytest.mark.parametrize("raw", [{"answer": 42}, 42, "text", None, [1], {"content": "no list"}])
def test_a_value_without_blocks_is_returned_unchanged(raw: object) -> None:
    assert extract_tool_result(raw) is raw


@pytest.mark.requirement("S1-T5.4")
def test_two_blocks_are_joined_without_a_separator() -> None:
    assert extract_tool_result({"content": [text("a"), text("b")]}) == {"output": "ab"}


@pytest.mark.requirement("S1-T5.5", "S1-036", "S1-E5")
def test_what_is_no_text_is_ignored() -> None:
    nested = {"type": "resource", "resource": {"text": "inner", "content": [text("x")]}}
    blocks = [text("a"), {"type": "image", "data": "AA=="}, nested, 5, {"type": "text"}]
    assert extract_tool_result({"content": blocks}) == {"output": "a"}


@pytest.mark.requirement("S1-035")
def test_bare_strings_count_as_text() -> None:
    assert extract_tool_result({"content": ["a", text("b")]}) == {"output": "ab"}


@pytest.mark.requirement("S1-E6")
@pytest.mark.parametrize("raw", [{"isError": True}, {"isError": True, "content": []}])
def test_an_error_without_content_has_a_generic_text(raw: object) -> None:
    with pytest.raises(ExecutionFailed, match="Tool reported an error without details"):
        extract_tool_result(raw)


def test_results_of_our_own_are_results() -> None:
    assert extract_tool_result(json.loads(bytes(text_result("hi")))) == {"output": "hi"}
    failed = json.loads(bytes(error_result("no", {"kind": "timeout"})))
    assert failed["isError"] is True
    assert failed["_meta"] == {FAULT: {"kind": "timeout"}}
