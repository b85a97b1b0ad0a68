"""Schemas as the APIs of models take them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.wire.schemas import DEEPEST, Schema, acceptable

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}


def test_a_good_schema_stays_as_it_is() -> None:
    schema: Schema = {
        "type": "object",
        "properties": {
            "a": {"anyOf": [TEXT, {"type": "array", "items": NUMBER}]},
            "b": {"$ref": "#/$defs/B"},
        },
        "required": ["a"],
        "additionalProperties": False,
        "$defs": {"B": {"type": "object", "properties": {"c": TEXT}}},
    }
    assert acceptable(schema) == schema


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": ["object", "null"]},
        {"properties": None},
        {"type": "object", "required": None},
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"},
        {"$ref": "elsewhere"},
        {"enum": [{}], "not": {"type": "string"}},
    ],
)
def test_a_root_that_lacks_what_apis_want_is_an_object_without_properties(schema: Schema) -> None:
    assert acceptable(schema) == {"type": "object", "properties": {}}


def test_a_root_that_is_a_reference_becomes_what_it_refers_to() -> None:
    inner: Schema = {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}
    schema: Schema = {"$ref": "#/$defs/In~1ner", "$defs": {"In/ner": {"$ref": "#/$defs/Deep"}, "Deep": inner}}
    flat = acceptable(schema)
    assert {key: flat[key] for key in inner} == inner
    assert "$ref" not in flat


def test_a_reference_to_itself_comes_to_an_end() -> None:
    assert acceptable({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}})["type"] == "object"


def test_a_choice_of_what_is_needed_is_put_into_words() -> None:
    schema: Schema = {
        "type": "object",
        "description": "Where.",
        "properties": {"route": TEXT, "file": TEXT, "line": NUMBER},
        "required": ["line"],
        "anyOf": [{"required": ["route"]}, {"required": ["file", "line"]}],
    }
    assert acceptable(schema) == {
        "type": "object",
        "description": "Where. Needed as well: route or file.",
        "properties": {"route": TEXT, "file": TEXT, "line": NUMBER},
        "required": ["line"],
    }


def test_a_choice_of_objects_is_one_object_with_all_their_properties() -> None:
    first: Schema = {"properties": {"kind": {"const": "a"}, "x": TEXT}, "required": ["kind", "x"]}
    second: Schema = {"properties": {"kind": {"const": "b"}, "x": TEXT}, "required": ["kind"]}
    schema: Schema = {"oneOf": [first, {"$ref": "#/$defs/Second"}], "$defs": {"Second": second}}
    flat = acceptable(schema)
    assert flat["properties"] == {"kind": {"oneOf": [{"const": "a"}, {"const": "b"}]}, "x": TEXT}
    assert flat["required"] == ["kind"]
    assert flat["description"] == "Needed as well: x or none of these."
    assert "oneOf" not in flat


def test_all_of_several_objects_is_one_object_that_needs_what_each_needs() -> None:
    schema: Schema = {
        "properties": {"a": TEXT},
        "required": ["a"],
        "allOf": [
            {"properties": {"a": NUMBER, "b": TEXT}, "required": ["b"]},
            {"anyOf": [{"properties": {"c": TEXT}}]},
            True,
        ],
    }
    assert acceptable(schema) == {
        "type": "object",
        "properties": {"a": TEXT, "b": TEXT, "c": TEXT},
        "required": ["a", "b"],
    }


def test_arrays_say_what_they_hold_and_objects_what_they_have_at_every_level() -> None:
    schema: Schema = {
        "type": "object",
        "properties": {
            "list": {"type": ["array", "null"]},
            "tuple": {"type": "array", "items": [TEXT, {"type": "array"}]},
            "nested": {"additionalProperties": {"type": "object"}, "type": "object"},
            "choice": {"anyOf": [{"type": "array"}, TEXT]},
            "default": {"type": "object", "default": {"type": "array"}},
        },
    }
    assert acceptable(schema)["properties"] == {
        "list": {"type": ["array", "null"], "items": {}},
        "tuple": {"type": "array", "prefixItems": [TEXT, {"type": "array", "items": {}}], "items": {}},
        "nested": {
            "type": "object",
            "properties": {},
            "additionalProperties": {"type": "object", "properties": {}},
        },
        "choice": {"anyOf": [{"type": "array", "items": {}}, TEXT]},
        "default": {"type": "object", "properties": {}, "default": {"type": "array"}},
    }


def test_a_schema_that_is_nested_very_deeply_does_no_harm() -> None:
    inside: Schema = {"type": "array"}
    choice: Schema = {}
    for _ in range(DEEPEST * 5):
        inside, choice = {"type": "object", "properties": {"in": inside}}, {"allOf": [choice]}
    assert acceptable({**inside, **choice})["properties"] == inside["properties"]


def test_a_short_schema_that_grows_without_end_does_no_harm() -> None:
    twice: list[object] = [{"$ref": f"#/$defs/{end}"} for end in ("next", "next")]
    defs: Schema = {f"{number}": {"anyOf": [{"$ref": f"#/$defs/{number + 1}"}] * 2} for number in range(64)}
    endless: Schema = {"next": {"oneOf": twice, "properties": {"a": TEXT}}}
    assert acceptable({"$ref": "#/$defs/0", "$defs": defs})["properties"] == {}
    assert acceptable({"$ref": "#/$defs/next", "$defs": endless})["properties"] == {"a": TEXT}


KEYWORDS = st.sampled_from(
    ["type", "properties", "items", "anyOf", "allOf", "oneOf", "$ref", "required", "$defs", "not", "x"]
)
ANYTHING = st.recursive(
    st.sampled_from(["object", "array", "#/$defs/x", "#/properties/x", None, True, 1]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(KEYWORDS, ANYTHING, max_size=5))
def test_whatever_a_server_calls_a_schema_comes_out_acceptable_and_stays_so(schema: Schema) -> None:
    once = acceptable(schema)
    assert once["type"] == "object"
    assert isinstance(once["properties"], dict)
    assert not {"anyOf", "allOf", "oneOf", "$ref", "not"} & once.keys()
    assert acceptable(once) == once
