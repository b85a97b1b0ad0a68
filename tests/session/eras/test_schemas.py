"""Tools of one era for clients of the other."""

import pytest
from msgspec import Raw
from msgspec.json import decode

from plait.session.eras.schemas import Form, fitted, form_of, without_execution
from plait.wire.address import as_raw


def tool(**more: object) -> Raw:
    return as_raw({"name": "t", "inputSchema": {"type": "object"}, "x": 1, **more})


def test_a_tool_that_handshake_clients_can_take_is_not_touched() -> None:
    for plain in (tool(), tool(outputSchema={"type": "object"}), tool(description='"outputSchema"')):
        assert fitted(plain) is plain


def test_a_schema_of_another_shape_is_put_into_an_object() -> None:
    schema = {
        "$schema": "s",
        "type": "array",
        "items": {"$ref": "#/$defs/n"},
        "$defs": {"n": {"type": "integer"}},
    }
    got = decode(fitted(tool(outputSchema=schema)))
    assert got["outputSchema"] == {
        "type": "object",
        "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/n"}}},
        "required": ["result"],
        "$defs": {"n": {"type": "integer"}},
        "$schema": "s",
    }
    assert got["x"] == 1


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"$ref": "#"}},
        {"anyOf": [{"$ref": "#/properties/a"}]},
        {"type": "string", "$id": "here"},
        {"type": "array", "items": {"$anchor": "a"}},
        {"$dynamicRef": "#x"},
        True,
        {"$ref": 5},
    ],
)
def test_a_schema_that_cannot_be_moved_is_left_out(schema: object) -> None:
    assert form_of(as_raw(schema)) is Form.DROPPED
    got = decode(fitted(tool(outputSchema=schema)))
    assert "outputSchema" not in got
    assert got["name"] == "t"


def test_how_a_tool_takes_tasks_is_nothing_for_modern_clients() -> None:
    assert decode(without_execution(tool(execution={"taskSupport": "optional"}))) == decode(tool())
    plain = tool()
    assert without_execution(plain) is plain
