import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.json import decode

from plait.pipeline.cutting import OpenResult
from plait.pipeline.shortening import MARK

LIMIT = 100
Result = dict[str, object]


def opened(result: object) -> OpenResult:
    found = OpenResult.of(result if isinstance(result, Raw) else Raw(json.dumps(result).encode()))
    assert found is not None
    return found


def text(words: str) -> Result:
    return {"type": "text", "text": words}


def fitted(result: Result, limit: int = LIMIT, schema: object = None) -> tuple[Result, list[bytes], int]:
    """The result after cutting, what was removed, and how much is left."""
    found = opened(result)
    left = found.fit(limit, None if schema is None else Raw(json.dumps(schema).encode()))
    after: Result = decode(found.raw())
    return after, [document.data for document in found.removed], left


IMAGE: Result = {"type": "image", "data": "A" * 500, "mimeType": "image/png"}


@pytest.mark.requirement("S1-T7.11", "BC-22", "X-17")
def test_five_hundred_bytes_with_a_limit_of_a_hundred_are_a_hundred_and_the_mark() -> None:
    assert fitted({"content": [text("x" * 500)]}) == (
        {"content": [text("x" * 100 + "\n[truncated]")]},
        [b"x" * 500],
        100,
    )


def test_the_budget_is_over_all_texts_together() -> None:
    after, removed, left = fitted({"content": [text("a" * 60), IMAGE, text("b" * 60), text("c" * 9), IMAGE]})
    assert after["content"] == [text("a" * 60), IMAGE, text("b" * 40 + MARK), IMAGE]
    assert removed == [b"\n".join([b"a" * 60, b"b" * 60, b"c" * 9])]
    assert left == 100


def test_an_image_is_none_of_its_business() -> None:
    assert opened({"content": [IMAGE, text("hi")]}).size == 2


def test_the_text_of_an_embedded_resource_counts_and_is_cut() -> None:
    block = {
        "type": "resource",
        "resource": {"uri": "a:b", "text": "x" * 500},
        "annotations": {"priority": 1},
    }
    after, _, _ = fitted({"content": [block]})
    assert after["content"] == [{**block, "resource": {"uri": "a:b", "text": "x" * 100 + MARK}}]


def test_structured_content_that_leaves_room_stays_and_the_text_gets_the_rest() -> None:
    structured = {"result": "y" * 20}
    after, removed, left = fitted({"content": [text("x" * 500)], "structuredContent": structured})
    size = len(json.dumps(structured))
    assert after == {"content": [text("x" * (100 - size) + MARK)], "structuredContent": structured}
    assert (removed, left) == ([b"x" * 500], 100)


def test_structured_content_that_is_too_large_goes_and_the_text_stays() -> None:
    structured = {"result": "y" * 500}
    after, removed, left = fitted({"content": [text("summary")], "structuredContent": structured})
    assert after == {"content": [text("summary")]}
    assert (removed, left) == ([json.dumps(structured).encode()], 7)


def test_structured_content_without_a_text_leaves_its_beginning_as_a_preview() -> None:
    structured = {"result": "y" * 500}
    after, removed, left = fitted({"content": [], "structuredContent": structured})
    assert after == {"content": [text(json.dumps(structured)[:100] + MARK)]}
    assert (removed, left) == ([json.dumps(structured).encode()], 100)


def test_where_a_schema_asks_for_it_structured_content_is_shortened_instead() -> None:
    """Both SDKs throw away a result that lacks the structured content its schema promises."""
    schema = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}
    structured = {"result": "y" * 500}
    after, removed, left = fitted(
        {"content": [text("y" * 500)], "structuredContent": structured}, 200, schema
    )
    short = after["structuredContent"]
    assert isinstance(short, dict)
    assert set(short["result"].removesuffix(MARK)) == {"y"}
    assert removed == [b"y" * 500, json.dumps(structured).encode()]
    assert left == 200


def test_everything_else_of_a_result_goes_on_byte_for_byte() -> None:
    raw = Raw(
        b'{"content":[{"type":"text","text":"%s","x":{ "k" : 1.0e2}},{"type":"new" ,"z":[ 1]}],'
        b'"isError" :true,"_meta":{"a" : 1},"future":{"deep": [1 , 2.50]}}' % (b"x" * 200)
    )
    result = opened(raw)
    result.fit(LIMIT, None)
    result.note("k", 1)
    assert bytes(result.raw()) == (
        b'{"content":[{"type":"text","text":"%s\\n[truncated]","x":{ "k" : 1.0e2}},{"type":"new" ,"z":[ 1]}],'
        b'"isError":true,"_meta":{"a":1,"k":1},"future":{"deep": [1 , 2.50]}}' % (b"x" * 100)
    )


def test_a_second_content_under_the_same_name_does_not_get_by() -> None:
    raw = Raw(b'{"content":[{"type":"text","text":"%s"}],"content":[]}' % (b"x" * 200))
    result = opened(raw)
    assert result.changed
    assert bytes(result.raw()) == b'{"content":[]}'


def test_odd_results_are_none_of_its_business() -> None:
    assert OpenResult.of(Raw(b"[1]")) is None
    oddities: list[Result] = [{"a": 1}, {"content": "text"}, {"content": None}, {"content": [1, None, []]}]
    for odd in oddities:
        result = opened(odd)
        assert (result.size, result.changed) == (0, False)
        assert decode(result.raw()) == odd


BLOCKS = st.one_of(
    st.text(max_size=80).map(text),
    st.text(max_size=40),
    st.text(max_size=80).map(lambda words: {"type": "resource", "resource": {"uri": "a:b", "text": words}}),
    st.just(IMAGE),
)
RESULTS = st.fixed_dictionaries(
    {"content": st.lists(BLOCKS, max_size=5)},
    optional={"structuredContent": st.dictionaries(st.text(max_size=5), st.text(max_size=60), max_size=3)},
)


def texts_of(result: Result) -> list[str]:
    found = opened(result)
    return [words for _, words in found.texts]


@given(RESULTS, st.integers(0, 120), st.sampled_from([None, {"type": "object"}]))
def test_whatever_is_cut_fits_its_budget_and_was_there_before(
    result: Result, limit: int, schema: object
) -> None:
    before = opened(result)
    if before.size <= limit:
        return
    after, removed, left = fitted(result, limit, schema)
    texts = texts_of(after)
    words = sum(len(each.removesuffix(MARK).encode()) for each in texts)
    structured = (
        len(json.dumps(after["structuredContent"], separators=(",", ":"), ensure_ascii=False).encode())
        if ("structuredContent" in after)
        else 0
    )
    assert words + min(structured, limit) <= limit
    assert left <= limit
    assert removed
    whole = [*texts_of(result), json.dumps(result.get("structuredContent"))]
    for position, each in enumerate(texts):
        if position < len(whole) - 1:
            assert whole[position] == each or whole[position].startswith(each.removesuffix(MARK))
