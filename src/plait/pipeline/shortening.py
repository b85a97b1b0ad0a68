"""A large JSON value made small without changing its shape: long strings and lists end early.

Clients check `structuredContent` against the tool's `outputSchema`, and both official SDKs throw the
whole result away when it is missing or does not fit. So what is too large is shortened where that can
be shown to keep every promise of the schema, and nowhere else.
"""

import re

from msgspec import Raw

from plait.pipeline.blocks import read_list, starts
from plait.wire.address import as_raw, read_text
from plait.wire.envelope import encode, open_fields

MARK = "\n[truncated]"
"""Stands behind what was cut, and is not counted."""
DEEPEST = 32
MOST_ITEMS = 200_000
"""More commas than that are not opened: each item would cost an object."""

# What a shorter string or list could break. A choice (enum, const) cannot be broken: whatever is no
# longer than the schema itself is left whole, and the choices stand in the schema.
_SHORT_FORMATS = rb"date|time|date-time|duration|uuid|email|ipv4|ipv6|hostname|u?int\d+|float|double"
_BINDING = re.compile(
    rb'"(?:minLength|pattern|minItems|contains|uniqueItems|not|oneOf|if)"\s*:'
    rb'|"format"\s*:\s*"(?!(?:' + _SHORT_FORMATS + rb')")'
)


def shorten(value: Raw, room: int, schema: Raw) -> Raw | None:
    """The value in at most so many bytes of JSON, still fitting its schema; None if that cannot be shown."""
    if _BINDING.search(schema) or bytes(value).count(b",") > MOST_ITEMS:
        return None
    return _shorten(value, room, len(schema), DEEPEST)


def cut(text: str, room: int) -> str:
    """The beginning of the text, in so many bytes of UTF-8, never in the middle of a character."""
    return text[:room].encode()[:room].decode(errors="ignore")


def _shorten(value: Raw, room: int, least: int, depth: int) -> Raw | None:
    size = len(value)
    if size <= room:
        return value
    if size <= least or depth == 0:
        return None
    if starts(value, b'"'):
        return _shorten_text(read_text(value), room)
    if starts(value, b"["):
        return _shorten_list(read_list(value), room, least, depth)
    if starts(value, b"{"):
        return _shorten_object(value, room, least, depth)
    return None


def _shorten_text(text: str, room: int) -> Raw | None:
    """What a character costs in JSON is not known before: cut, look, and cut again."""
    length = room
    while length > 0:
        shorter = as_raw(cut(text, length) + MARK)
        if len(shorter) <= room:
            return shorter
        length = min(length - 1, length * room // len(shorter))
    return None


def _shorten_list(items: list[Raw], room: int, least: int, depth: int) -> Raw | None:
    kept: list[Raw] = []
    left = room - 2
    for item in items:
        if len(item) + 1 > left:
            first = None if kept else _shorten(item, left, least, depth - 1)
            kept += [] if first is None else [first]
            break
        kept.append(item)
        left -= len(item) + 1
    return as_raw(kept) if room >= 2 else None


def _shorten_object(value: Raw, room: int, least: int, depth: int) -> Raw | None:
    """Every member stays. The small ones are served first; the large ones share what is left."""
    fields = open_fields(value)
    left = room - 2 - sum(len(encode(key)) + 2 for key in fields)
    ordered = sorted(fields, key=lambda key: len(fields[key]))
    for waiting, key in zip(range(len(ordered), 0, -1), ordered, strict=True):
        shorter = _shorten(fields[key], left // waiting, least, depth - 1)
        if shorter is None:
            return None
        fields[key] = shorter
        left -= len(shorter)
    return as_raw(fields)
