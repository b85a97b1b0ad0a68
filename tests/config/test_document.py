"""Positions: of every key and value, of characters in strings, and of what is wrong."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.config import ConfigFileError
from plait.config.document import Document, parse, plain
from plait.config.syntax import Node

VALUES = st.recursive(
    st.text() | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)

BROKEN = [
    ('{\n  "a": 1,\n  "b": 2\n  "c": 3\n}', "4:3: missing ',' between entries"),
    (
        '{"mcpServers": {\n  "fs": {},\n  "fs": {}\n}}',
        "3:3: 'fs' is defined twice; the later one would win silently",
    ),
    ('{"a": "b\n}', "1:7: unterminated string"),
    ('{"a": "b', "1:7: unterminated string"),
    ('{"a": "b\\', "1:7: unterminated string"),
    ('{"a": "b\tc"}', "1:9: a control character in a string"),
    ('{"a": "b\\q"}', "1:9: a bad escape in a string"),
    ('{"a": "\\ud800"}', "1:8: a bad escape in a string"),
    ('{"a": "\\u12"}', "1:8: a bad escape in a string"),
    ("{\n'a': 1}", "2:1: expected a key in double quotes"),
    ("{a: 1}", "1:2: expected a key in double quotes"),
    ("{,}", "1:2: expected a key in double quotes"),
    ('{"a" 1}', "1:6: missing ':' after a key"),
    ('{"a": }', "1:7: expected a value"),
    ("{\"a\": 'b'}", "1:7: expected a value"),
    ("[1,,2]", "1:4: expected a value"),
    ('{"a": True}', "1:7: True is not JSON"),
    ('{"a": NaN}', "1:7: NaN is not JSON"),
    ('{"a": -Infinity}', "1:7: -Infinity is not JSON"),
    ('{"a": 012}', "1:7: not a number that JSON knows"),
    ('{"a": 1.}', "1:7: not a number that JSON knows"),
    ('{"a": +1}', "1:7: expected a value"),
    ('{"a": ' + "1" * 5000 + "}", "1:7: a number with too many digits"),
    ('{"a": [1, 2}', "1:12: expected ']' here, got '}'"),
    ('{"a": [1,\n', "2:1: the file ends before the '[' is closed"),
    ('{"a": 1', "1:8: the file ends before the '{' is closed"),
    ("{}\r\n{}", "2:1: text after the end of the document"),
    ("{} /* \n", "1:4: unterminated comment"),
    ("{/}", "1:2: a stray '/'"),
    ("", "1:1: there is nothing in this file"),
    ("// only words\n", "2:1: there is nothing in this file"),
    ('\ufeff{"é": x}', "1:7: expected a value"),
]


@pytest.mark.parametrize(("text", "expected"), BROKEN)
def test_a_broken_file_says_where_and_what(text: str, expected: str) -> None:
    with pytest.raises(ConfigFileError) as caught:
        parse(text, "plait.json")
    assert str(caught.value) == f"plait.json:{expected}"


def test_a_key_that_is_defined_twice_says_where_it_was_first() -> None:
    with pytest.raises(ConfigFileError) as caught:
        parse('{\n "fs": 1,\n "fs": 2}', "plait.json")
    assert caught.value.problem.code == "C102"
    assert caught.value.problem.hints == ("it is first defined at plait.json:2:2",)


def test_the_excerpt_of_a_broken_file_has_keys_and_no_values() -> None:
    with pytest.raises(ConfigFileError) as caught:
        parse('{"env": {"TOKEN": "hush" "OTHER": \'hush\', "PIN": 4711, "X": hush, "Y": "hush', "plait.json")
    assert (
        caught.value.problem.excerpt == '{"env": {"TOKEN": *** "OTHER": ***, "PIN": ***, "X": ***, "Y": ***'
    )


def test_a_byte_order_mark_is_no_column() -> None:
    document = parse("\ufeff[1]", "plait.json")
    assert str(document.where(document.root.start)) == "plait.json:1:1"


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_lines_end_as_on_any_system(ending: str) -> None:
    document = parse(f"[{ending}// words{ending}  1]", "plait.json")
    assert isinstance(document.root.value, tuple)
    assert str(document.where(document.root.value[0].start)) == "plait.json:3:3"


@given(VALUES, st.sampled_from([None, 1, 4]))
def test_every_value_and_key_is_where_it_says(value: object, indent: int | None) -> None:
    document = parse(json.dumps(value, indent=indent), "plait.json")
    lines = document.text.split("\n")
    for key, node in _every_node(document.root):
        assert json.loads(document.text[node.start : node.end]) == plain(node)
        if node.key_start is not None:
            where = document.where(node.key_start)
            assert lines[where.line - 1][where.column - 1 :].startswith(json.dumps(key))


@given(st.text(), st.booleans())
def test_every_character_of_a_string_is_found_behind_its_escapes(value: str, ascii_only: bool) -> None:
    document: Document = parse(json.dumps(value, ensure_ascii=ascii_only), "plait.json")
    for index in range(len(value) + 1):
        offset = document.inside(document.root, index)
        assert json.loads('"' + document.text[offset:]) == value[index:]


def _every_node(node: Node, key: str | None = None) -> list[tuple[str | None, Node]]:
    children: list[tuple[str | None, Node]] = []
    if isinstance(node.value, dict):
        children = [*node.value.items()]
    elif isinstance(node.value, tuple):
        children = [(None, item) for item in node.value]
    return [(key, node)] + [found for name, child in children for found in _every_node(child, name)]
