import json

import jsonschema  # type: ignore[import-untyped]  # it has no stubs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.json import decode

from plait.pipeline.shortening import MARK, cut, shorten

ANYTHING = Raw(b"{}")


def raw(value: object) -> Raw:
    return Raw(json.dumps(value, ensure_ascii=False).encode())


def shortened(value: object, room: int, schema: object = True) -> object:
    short = shorten(raw(value), room, raw(schema))
    if short is None:
        return None
    assert len(short) <= room
    return decode(short)


@given(st.text(max_size=60), st.integers(0, 80))
def test_cutting_never_splits_a_character(text: str, room: int) -> None:
    short = cut(text, room)
    assert text.startswith(short)
    assert len(short.encode()) <= room
    rest = text[len(short) :]
    assert not rest or len(short.encode()) + len(rest[0].encode()) > room


@pytest.mark.parametrize("letter", ["x", "\n", "\x01", "é", "😀"])
def test_a_long_string_ends_early_and_says_so(letter: str) -> None:
    short = shortened({"result": letter * 500}, 200)
    assert isinstance(short, dict)
    text = short["result"]
    assert text.endswith(MARK)
    assert set(text.removesuffix(MARK)) == {letter}
    assert len(raw(short)) > 180


def test_a_long_list_keeps_its_first_items() -> None:
    short = shortened({"items": list(range(1000)), "total": 1000}, 60)
    assert isinstance(short, dict)
    assert short == {"items": list(range(len(short["items"]))), "total": 1000}
    assert len(short["items"]) > 10
    assert shortened([["x" * 100], 1], 40) == [["x" * 21 + MARK]]


def test_small_members_stay_whole_and_large_ones_share_the_rest() -> None:
    short = shortened({"a": "x" * 300, "name": "kept", "b": "y" * 300}, 200)
    assert isinstance(short, dict)
    assert short["name"] == "kept"
    assert abs(len(short["a"]) - len(short["b"])) < 8


def test_what_fits_is_not_touched() -> None:
    assert shorten(Raw(b'{"a" : 1.50e3}'), 20, ANYTHING) == Raw(b'{"a" : 1.50e3}')


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"result": {"minLength": 400}}},
        {"properties": {"result": {"pattern": "^x*$"}}},
        {"properties": {"result": {"format": "byte"}}},
        {"items": {}, "minItems": 3},
        {"uniqueItems": True},
        {"oneOf": [{}, {"required": ["a"]}]},
        {"not": {"maxLength": 3}},
        {"if": {"maxLength": 3}, "then": False},
        {"contains": {"const": 1}},
    ],
)
def test_where_a_schema_could_be_broken_nothing_is_shortened(schema: object) -> None:
    assert shortened({"result": "x" * 500}, 100, schema) is None


def test_formats_of_short_strings_stand_in_nobodys_way() -> None:
    schema = {"properties": {"at": {"type": "string", "format": "date-time"}}}
    short = shortened({"at": "2026-01-01T00:00:00Z", "text": "x" * 500}, 200, schema)
    assert isinstance(short, dict)
    assert short["at"] == "2026-01-01T00:00:00Z"
    assert short["text"].endswith(MARK)


def test_a_choice_is_never_cut() -> None:
    """It stands in the schema, so it is no longer than that, and such values stay whole."""
    choice = "c" * 90
    schema = {"properties": {"kind": {"enum": [choice]}}}
    short = shortened({"kind": choice, "text": "x" * 500}, 240, schema)
    assert isinstance(short, dict)
    assert short["kind"] == choice
    assert shortened({"kind": choice, "text": "x" * 500}, 60, schema) is None


DEEP = json.loads('{"a":' * 60 + '"' + "x" * 999 + '"' + "}" * 60)


@pytest.mark.parametrize("value", [[0] * 200_002, DEEP, 10**300], ids=["items", "nest", "number"])
def test_too_many_items_too_deep_a_nest_and_a_number_are_left_to_be_dropped(value: object) -> None:
    assert shorten(raw(value), 100, ANYTHING) is None


LEAVES = st.one_of(
    st.text(max_size=60).map(lambda text: ({"type": "string"}, text)),
    st.integers(-9, 9).map(lambda number: ({"type": "integer"}, number)),
    st.sampled_from(["alpha", "beta"]).map(lambda choice: ({"enum": ["alpha", "beta"]}, choice)),
    st.none().map(
        lambda nothing: ({"anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}]}, nothing)
    ),
)
Pair = tuple[dict[str, object], object]


def nested(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    def as_object(members: dict[str, Pair]) -> Pair:
        schema: dict[str, object] = {
            "type": "object",
            "properties": {name: schema for name, (schema, _) in members.items()},
            "required": list(members),
            "additionalProperties": False,
        }
        return schema, {name: value for name, (_, value) in members.items()}

    def as_list(pair: Pair, count: int) -> Pair:
        return {"type": "array", "items": pair[0], "maxItems": 100}, [pair[1]] * count

    names = st.sampled_from(["a", "b", "c"])
    return st.dictionaries(names, inner, max_size=3).map(as_object) | st.builds(
        as_list, inner, st.integers(0, 12)
    )


@settings(deadline=None)
@given(st.recursive(LEAVES, nested, max_leaves=4), st.integers(0, 300))
def test_what_is_shortened_still_fits_its_schema(pair: Pair, room: int) -> None:
    schema, value = pair
    jsonschema.validate(value, schema)
    short = shortened(value, room, schema)
    assume(short is not None)
    jsonschema.validate(short, schema)
