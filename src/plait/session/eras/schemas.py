"""Tools across the eras: an output schema of any shape, for clients that know objects only.

The modern revision lets `outputSchema` be any schema and `structuredContent` any value. In the handshake
revisions both are an object's; one tool that is otherwise makes some clients drop the whole list. So a
schema of another shape is put into an object under one name, and so is the value.
"""

import enum
from collections.abc import Iterator

from msgspec import MsgspecError, Raw
from msgspec.json import decode

from plait.wire.address import as_raw
from plait.wire.envelope import Fields, encode, open_fields

NAME = "result"
"""The one property of the object that a value of another shape is put into."""

_TIED = ("$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor")
"""Keywords by which a schema depends on where it stands: it cannot be moved."""
_SHARED = ("$defs", "definitions")
_MOVABLE = tuple(f"#/{name}/" for name in _SHARED)


class Form(enum.Enum):
    """What becomes of an output schema, and so of the values that fit it."""

    OBJECT = "as it is"
    WRAPPED = "put into an object"
    DROPPED = "left out: it cannot be moved into an object"


def form_of(schema: Raw) -> Form:
    return _fitted(schema)[0]


def fitted(tool: Raw) -> Raw:
    """The tool as handshake clients can take it."""
    if b'"outputSchema"' not in bytes(tool):
        return tool
    fields = open_fields(tool)
    schema = fields.get("outputSchema")
    if schema is None:
        return tool
    form, made = _fitted(schema)
    if form is Form.OBJECT:
        return tool
    rest: Fields = {key: value for key, value in fields.items() if key != "outputSchema"}
    return Raw(encode(rest if made is None else {**rest, "outputSchema": made}))


def without_execution(tool: Raw) -> Raw:
    """The tool as modern clients know it: how it takes 2025's tasks is nothing that they can use."""
    if b'"execution"' not in bytes(tool):
        return tool
    fields = open_fields(tool)
    return Raw(encode({key: value for key, value in fields.items() if key != "execution"}))


def wrap_value(value: Raw) -> Raw:
    return as_raw({NAME: value})


def _fitted(raw: Raw) -> tuple[Form, Raw | None]:
    try:
        schema: object = decode(raw)
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return Form.DROPPED, None
    if not isinstance(schema, dict):
        # `true` and `false` are schemas too, and say nothing that a client could use.
        return Form.DROPPED, None
    if schema.get("type") == "object":
        return Form.OBJECT, raw
    if not _movable(schema):
        return Form.DROPPED, None
    shared = {key: schema.pop(key) for key in (*_SHARED, "$schema") if key in schema}
    return Form.WRAPPED, as_raw(
        {"type": "object", "properties": {NAME: schema}, "required": [NAME], **shared}
    )


def _movable(schema: dict[str, object]) -> bool:
    for inner in _objects(schema):
        if any(key in inner for key in _TIED):
            return False
        reference = inner.get("$ref")
        if reference is not None and not (isinstance(reference, str) and reference.startswith(_MOVABLE)):
            return False
    return True


def _objects(value: object) -> Iterator[dict[str, object]]:
    todo = [value]
    while todo:
        inner = todo.pop()
        if isinstance(inner, dict):
            yield inner
            todo += inner.values()
        elif isinstance(inner, list):
            todo += inner
