"""The content blocks of a result, opened no further than to their text."""

import re

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder

from plait.wire.address import as_raw, read_text
from plait.wire.envelope import Fields, open_fields

read_list = Decoder(list[Raw]).decode
_KEY = re.compile(rb'[\s{,]*("(?:[^"\\]|\\.)*")\s*:\s*')


class Block(Struct):
    """One block. `text` is None where it has none: an image, a link, something we do not know."""

    raw: Raw
    text: str | None = None
    fields: Fields | None = None
    """None for a bare string, which counts as text (S1-035)."""
    resource: Fields | None = None
    """Of an embedded resource, whose text is one level deeper."""
    mended: bool = False
    """It said something twice, and `raw` is what we read of it."""

    def with_text(self, text: str) -> Raw:
        """The same block with another text; whatever else it holds stays byte for byte."""
        words = as_raw(text)
        if self.fields is None:
            return words
        if self.resource is None:
            return as_raw({**self.fields, "text": words})
        return as_raw({**self.fields, "resource": as_raw({**self.resource, "text": words})})


def open_block(raw: Raw) -> Block:
    """Whatever has a string `text` is text, by whatever `type` it goes."""
    if starts(raw, b'"'):
        return Block(raw, read_text(raw))
    if not starts(raw, b"{"):
        return Block(raw)
    fields = open_fields(raw)
    mended = repeats_a_key(raw, fields)
    inner = fields.get("resource")
    resource = None
    if inner is not None and "text" not in fields and starts(inner, b"{"):
        resource = open_fields(inner)
        if repeats_a_key(inner, resource):
            fields["resource"] = as_raw(resource)
            mended = True
    return Block(as_raw(fields) if mended else raw, _text(resource or fields), fields, resource, mended)


def open_blocks(content: Raw | None) -> list[Block] | None:
    """None where there is no list of blocks."""
    if content is None or not starts(content, b"["):
        return None
    return [open_block(raw) for raw in read_list(content)]


def open_object(raw: Raw | None) -> Fields | None:
    """None for what is no object."""
    try:
        return None if raw is None else open_fields(raw)
    except MsgspecError:
        return None


def repeats_a_key(raw: Raw, fields: Fields) -> bool:
    """Does this object say something twice? We read the last one; somebody else may read the first.

    The members are walked by the length of the values we read: if there are as many as we have,
    each where we expect it, there is no other.
    """
    whole = bytes(raw)
    position = 0
    for _ in fields:
        key = _KEY.match(whole, position)
        value = bytes(fields.get(read_text(key[1]), b"")) if key else b""
        if key is None or not whole.startswith(value, key.end()):
            return True
        position = key.end() + len(value)
    return bool(fields) and whole[position:].lstrip(b" \t\r\n") != b"}"


def starts(raw: Raw, sign: bytes) -> bool:
    """A Raw begins with its value, without blanks."""
    return bytes(memoryview(raw)[:1]) == sign


def _text(fields: Fields) -> str | None:
    text = fields.get("text")
    return read_text(text) if text is not None and starts(text, b'"') else None
