"""Results across the eras: what a modern client needs beyond the payload, and a handshake client does not.

Between two sides of one era nothing here reads or changes a payload, but for what every hop of the modern
era says of itself (`serverInfo`). Keys that nobody knows survive in every direction.
"""

from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType, field
from msgspec.json import Decoder

from plait.session.eras.schemas import Form, form_of, wrap_value
from plait.session.negotiation import fields_of
from plait.wire.address import as_raw
from plait.wire.envelope import Fields, encode, open_fields
from plait.wire.modern import CACHEABLE, LISTEN, SERVER_KEY, SUBSCRIPTION_KEY

COMPLETE = Raw(b'"complete"')
INPUT_REQUIRED = Raw(b'"input_required"')
_PRIVATE = Raw(b'"private"')
_PUBLIC = Raw(b'"public"')
_CACHE_FIELDS = ("ttlMs", "cacheScope")


class Freshness(Struct, frozen=True):
    """How long a result may be kept, and whether by anybody."""

    milliseconds: int = 0
    public: bool = False

    def __and__(self, other: "Freshness") -> "Freshness":
        """Of something made from both: kept no longer, and shared no wider, than either."""
        return Freshness(min(self.milliseconds, other.milliseconds), self.public and other.public)

    def put(self, fields: Fields) -> Fields:
        scope = _PUBLIC if self.public else _PRIVATE
        return {**fields, "ttlMs": as_raw(self.milliseconds), "cacheScope": scope}


STALE = Freshness()
"""Of what a handshake server says: it never says how long that holds."""


class _Kind(Struct):
    type: Raw | UnsetType = field(name="resultType", default=UNSET)


_read_kind = Decoder(_Kind).decode
_read_whole = Decoder(int).decode


def kind_of(payload: Raw) -> str:
    """The `resultType`. "Absent [from an older server] MUST be treated as complete" (2026-07-28, basic)."""
    try:
        kind = _read_kind(payload).type
    except (MsgspecError, UnicodeDecodeError):
        return ""
    return "complete" if isinstance(kind, UnsetType) else bytes(kind).decode(errors="replace").strip('"')


def freshness_of(fields: Fields) -> Freshness:
    """What a result says of itself; what is absent, negative or no number means: stale at once."""
    try:
        milliseconds = max(0, _read_whole(fields["ttlMs"]))
    except (KeyError, MsgspecError):
        milliseconds = 0
    return Freshness(milliseconds, bytes(fields.get("cacheScope", b"")) == bytes(_PUBLIC))


def completed(method: str, id: bytes, payload: Raw, server: Raw | None, *, asks: bool = False) -> Raw:
    """The result as a modern client gets it, whoever made it: a server of either era, or we ourselves."""
    try:
        fields = open_fields(payload)
    except (MsgspecError, UnicodeDecodeError):
        return payload
    fields["resultType"] = INPUT_REQUIRED if asks else COMPLETE
    if method in CACHEABLE and not asks:
        fields = freshness_of(fields).put(fields)
    meta = fields_of(fields.get("_meta"))
    meta.pop(SUBSCRIPTION_KEY, None)
    meta.pop(SERVER_KEY, None)
    if server is not None:
        meta[SERVER_KEY] = server
    if method == LISTEN:
        meta[SUBSCRIPTION_KEY] = Raw(id)
    if meta:
        fields["_meta"] = Raw(encode(meta))
    return Raw(encode(fields))


def for_handshake(method: str, payload: Raw, output_schema: Raw | None = None) -> Raw:
    """A modern server's result as a handshake client gets it."""
    fields = open_fields(payload)
    fields.pop("resultType", None)
    for name in _CACHE_FIELDS if method in CACHEABLE else ():
        fields.pop(name, None)
    if "_meta" in fields:
        fields = _without_server(fields)
    if method == "tools/call" and "structuredContent" in fields:
        fields = _structured(fields, output_schema)
    return Raw(encode(fields))


def _without_server(fields: Fields) -> Fields:
    meta = fields_of(fields["_meta"])
    if SERVER_KEY not in meta:
        return fields
    del meta[SERVER_KEY]
    if meta:
        return {**fields, "_meta": Raw(encode(meta))}
    return {key: value for key, value in fields.items() if key != "_meta"}


def _structured(fields: Fields, schema: Raw | None) -> Fields:
    """ "structuredContent: a JSON object" in every handshake revision; any value at all in the modern one.

    It is wrapped exactly where the tool's schema was, so that the two still fit; what cannot be wrapped is
    said as text, and so not lost.
    """
    value = fields["structuredContent"]
    form = Form.OBJECT if schema is None else form_of(schema)
    if form is Form.OBJECT and bytes(memoryview(value)[:1]) == b"{":
        return fields
    told = _told(fields, value)
    if form is Form.WRAPPED:
        return {**told, "structuredContent": wrap_value(value)}
    return {key: value for key, value in told.items() if key != "structuredContent"}


def _told(fields: Fields, value: Raw) -> Fields:
    """With a text block, so that a client that reads only those loses nothing."""
    content = fields.get("content")
    if content is not None and b'"text"' in bytes(content):
        return fields
    blocks = _read_blocks(content)
    return {**fields, "content": as_raw([*blocks, {"type": "text", "text": bytes(value).decode()}])}


def _read_blocks(content: Raw | None) -> list[Raw]:
    try:
        return [] if content is None else _open_list(content)
    except MsgspecError:
        return []


_open_list = Decoder(list[Raw]).decode
