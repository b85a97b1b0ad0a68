"""`x-mcp-header`: where it may stand, and what it means for a call."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.wire.header_schema import BadAnnotation, check_parameters, mirrored, parameter_headers
from plait.wire.headers import Misheaded, gather

REGION = {"type": "string", "x-mcp-header": "Region"}
SCHEMA = {
    "type": "object",
    "properties": {
        "region": REGION,
        "deep": {"type": "object", "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
        "fast": {"type": "boolean", "x-mcp-header": "Fast"},
        "q": {"type": "string", "default": {"x-mcp-header": "data, no schema"}},
    },
}


def test_what_a_schema_mirrors_is_found_however_deep() -> None:
    found = {parameter.header: parameter.path for parameter in mirrored(SCHEMA)}
    assert found == {
        "Mcp-Param-Region": ("region",),
        "Mcp-Param-Count": ("deep", "count"),
        "Mcp-Param-Fast": ("fast",),
    }
    assert mirrored({"type": "object"}) == mirrored(None) == mirrored(True) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
        {"properties": {"a": {"type": ["string"], "x-mcp-header": "A"}}},
        {"properties": {"a": {"x-mcp-header": "A"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": ""}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": "a b"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": 5}}},
        {"properties": {"a": REGION, "b": {"type": "string", "x-mcp-header": "region"}}},
        {"properties": {"a": {"type": "array", "items": REGION}}},
        {"anyOf": [{"properties": {"a": REGION}}]},
        {"$defs": {"r": REGION}, "properties": {"a": {"$ref": "#/$defs/r"}}},
        {"additionalProperties": REGION},
        {"type": "string", "x-mcp-header": "A"},
    ],
)
def test_a_bad_annotation_is_told(schema: object) -> None:
    with pytest.raises(BadAnnotation):
        mirrored(schema)


def test_a_call_repeats_what_is_there() -> None:
    arguments = {"region": "Köln", "deep": {"count": 7}, "fast": False, "q": "x"}
    assert parameter_headers(mirrored(SCHEMA), arguments) == {
        "Mcp-Param-Region": "=?base64?S8O2bG4=?=",
        "Mcp-Param-Count": "7",
        "Mcp-Param-Fast": "false",
    }
    assert parameter_headers(mirrored(SCHEMA), {"region": None, "deep": 5}) == {}


@given(st.text().filter(lambda text: text.isprintable()), st.integers(), st.booleans())
def test_what_we_write_we_accept(region: str, count: int, fast: bool) -> None:
    arguments = {"region": region, "deep": {"count": count}, "fast": fast}
    headers = parameter_headers(mirrored(SCHEMA), arguments)
    check_parameters(mirrored(SCHEMA), arguments, gather(headers.items()))


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, {}),
        ({}, {"mcp-param-region": "eu"}),
        ({"region": "eu"}, {"mcp-param-region": "EU"}),
        ({"region": "eu"}, {"mcp-param-region": "=?base64?!?="}),
        ({"deep": {"count": 42}}, {"mcp-param-count": "43"}),
        ({"deep": {"count": 42}}, {"mcp-param-count": "forty-two"}),
        ({"fast": True}, {"mcp-param-fast": "True"}),
    ],
)
def test_disagreement_is_refused(arguments: dict[str, object], headers: dict[str, str]) -> None:
    with pytest.raises(Misheaded):
        check_parameters(mirrored(SCHEMA), arguments, headers)


def test_integers_are_numbers_and_unknown_headers_are_nobodys() -> None:
    check_parameters(mirrored(SCHEMA), {"deep": {"count": 42}}, {"mcp-param-count": "42.0"})
    check_parameters(mirrored(SCHEMA), {"deep": {"count": 42.0}}, {"mcp-param-count": "42"})
    check_parameters(mirrored(SCHEMA), {}, {"mcp-param-other": "x"})
