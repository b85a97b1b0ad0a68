"""A tool's input schema as people write it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.cli.signature import read_pair, signature

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
schemas = st.one_of(
    json_values,
    st.fixed_dictionaries(
        {"properties": st.dictionaries(st.text(max_size=5), json_values, max_size=3), "required": json_values}
    ),
)


def schema(required: object = None, **properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": required or []}


# ---- signatures


def test_what_is_required_and_what_is_not() -> None:
    given = schema(["path"], path={"type": "string"}, head={"type": "number"})
    assert signature("read_file", given) == "read_file(path: string, head?: number)"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"type": "integer"}, "integer"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"enum": ["a", 1, None]}, '"a" | 1 | null'),
        ({"type": "string", "enum": ["a", "b", "c", "d", "e"]}, "string"),
        ({"enum": ["a", "b", "c", "d", "e"]}, "any"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}, "string | integer"),
        ({}, "any"),
        (True, "any"),
    ],
)
def test_how_a_type_is_written(value: object, shown: str) -> None:
    assert signature("t", schema(["x"], x=value)) == f"t(x: {shown})"


@pytest.mark.parametrize(
    "given", [None, {}, 7, [], {"properties": None}, {"properties": []}, {"required": "path"}]
)
def test_a_schema_that_says_nothing_takes_nothing(given: object) -> None:
    assert signature("now", given) == "now()"


@pytest.mark.parametrize("required", [None, "x", 7, {"x": 1}, [["x"]], [{}], [None, "x"]])
def test_a_required_that_is_none_breaks_nothing(required: object) -> None:
    shown = signature("t", {"properties": {"x": {"type": "string"}}, "required": required})
    assert shown == ("t(x: string)" if required == [None, "x"] else "t(x?: string)")


@given(schemas)
@settings(deadline=None)
def test_no_schema_of_a_server_can_break_the_list(given_schema: object) -> None:
    assert signature("t", given_schema).startswith("t(")


# ---- arguments


@pytest.mark.parametrize(
    ("pair", "argument"),
    [
        ("n=7", ("n", 7)),
        ("n=-0.5", ("n", -0.5)),
        ("on=true", ("on", True)),
        ("nothing=null", ("nothing", None)),
        ('list=[1,"a"]', ("list", [1, "a"])),
        ('object={"a":{}}', ("object", {"a": {}})),
        ("word=hello world", ("word", "hello world")),
        ("almost={", ("almost", "{")),
        ('quoted="7"', ("quoted", "7")),
        ("empty=", ("empty", "")),
        ("equation=a=b", ("equation", "a=b")),
    ],
)
def test_a_value_is_json_if_it_is_any_and_text_otherwise(pair: str, argument: tuple[str, object]) -> None:
    assert read_pair(pair, None) == argument
    assert read_pair(pair, schema(other={"type": "string"})) == argument


@pytest.mark.parametrize("text", ["7", "true", "null", '{"a":1}', '"quoted"', "plain", ""])
def test_where_the_schema_says_string_it_is_text_as_it_is(text: str) -> None:
    assert read_pair(f"path={text}", schema(path={"type": "string"})) == ("path", text)


def test_where_the_schema_says_number_it_is_one() -> None:
    assert read_pair("n=7", schema(n={"type": "number"})) == ("n", 7)


@pytest.mark.parametrize("pair", ["", "word", "=7", "="])
def test_what_is_no_pair_is_refused_in_words(pair: str) -> None:
    with pytest.raises(ValueError, match="is not of the form KEY=VALUE"):
        read_pair(pair, None)
