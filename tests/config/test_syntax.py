"""The grammar: what json reads we read the same, and comments change nothing."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.config.document import parse, plain
from plait.config.syntax import MAX_DEPTH

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
DOCUMENTS: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=25,
)
GAPS = st.sampled_from(["", " ", "\t", "\n", "\r\n", "// to the end }\n", '/* " { \n * / */', "/**/", "//\r"])
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def read(text: str) -> object:
    return plain(parse(text, "plait.json").root)


@given(DOCUMENTS, st.sampled_from([None, 0, 2]), st.booleans())
def test_any_json_reads_as_the_standard_library_reads_it(
    document: Json, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    assert read(text) == json.loads(text)


@given(DOCUMENTS, st.data())
def test_comments_between_tokens_change_nothing(document: Json, data: st.DataObject) -> None:
    tokens = TOKEN.findall(json.dumps(document))
    text = "".join(data.draw(GAPS) + token for token in tokens) + data.draw(GAPS)
    assert read(text) == document


@given(DOCUMENTS)
def test_a_comma_after_the_last_entry_changes_nothing(document: Json) -> None:
    tokens = TOKEN.findall(json.dumps([document]))
    pairs = zip(["", *tokens], tokens, strict=False)
    assert read("".join("," + now if now in "]}" and was not in "[{" else now for was, now in pairs)) == [
        document
    ]


@given(st.text(alphabet="{}[]:,\"\\/*\n'-01.eEtrufalsn \u00e9", max_size=40))
def test_what_the_standard_library_reads_is_never_refused(text: str) -> None:
    try:
        expected = json.loads(text, object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError):
        return
    assert read(text) == expected


def _without_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is defined twice")
    return dict(pairs)


def test_numbers_keep_their_kind_and_all_their_digits() -> None:
    assert repr(read("[1, 1.0, -0, 1e2, 123456789012345678901234567890]")) == (
        "[1, 1.0, 0, 100.0, 123456789012345678901234567890]"
    )


def test_escapes_are_decoded() -> None:
    assert read(r'"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"') == '"\\/\b\f\n\r\té😀'


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_a_document_that_is_nested_too_deep_is_refused_before_the_stack_ends(opening: str) -> None:
    with pytest.raises(Exception, match=f"nested more than {MAX_DEPTH} levels deep"):
        parse(opening * 200_000, "plait.json")


def test_a_document_of_the_greatest_depth_is_read() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert read(text) == json.loads(text)


def test_a_file_with_a_hundred_thousand_entries_is_read() -> None:
    text = json.dumps({f"key {number}": [number, str(number)] for number in range(100_000)}, indent=1)
    assert read(text) == json.loads(text)
