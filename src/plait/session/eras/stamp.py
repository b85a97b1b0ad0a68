"""The stamp of a modern request: what its `_meta` says of who asks, in which revision, with which abilities.

Every modern request carries its own, and may differ from the one before. It is taken off where a request
comes in and put on where one goes out, so that what is in between is the same in both eras, and nothing
of one hop is seen on the next.
"""

from msgspec import MsgspecError, Raw, Struct

from plait.session.negotiation import fields_of
from plait.wire.address import as_raw, read_text
from plait.wire.envelope import Fields, encode, error_body, open_fields
from plait.wire.modern import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    LATEST_MODERN,
    LEVEL_KEY,
    SPOKEN,
    TASK_KEY,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
)
from plait.wire.spec import INVALID_PARAMS, LEVELS, RESERVED


class Stamp(Struct, frozen=True):
    """Who asks, as far as this one request says."""

    revision: str
    capabilities: Fields
    info: Fields
    """What the client calls itself. "Servers MUST NOT require it" (2026-07-28, basic)."""
    level: int | None
    """Index into LEVELS: log messages of this request from there on; None: none at all."""


def read_stamp(method: str, meta: Fields | None) -> Stamp | Raw:
    """The stamp, or the body of the error that says what is wrong with it."""
    meta = meta or {}
    revision = _text(meta.get(VERSION_KEY))
    if revision is None:
        return error_body(INVALID_PARAMS, f"{method} needs a string '{VERSION_KEY}' in its _meta")
    capabilities = _object(meta.get(CAPABILITIES_KEY))
    if capabilities is None:
        return error_body(INVALID_PARAMS, f"{method} needs an object '{CAPABILITIES_KEY}' in its _meta")
    if revision not in SPOKEN:
        data = {"supported": SPOKEN, "requested": revision}
        return error_body(UNSUPPORTED_VERSION, f"Unsupported protocol version: {revision[:40]}", data)
    level = _text(meta.get(LEVEL_KEY))
    if LEVEL_KEY in meta and level not in LEVELS:
        return error_body(INVALID_PARAMS, f"'{LEVEL_KEY}' must be one of {', '.join(LEVELS)}")
    index = None if level is None else LEVELS.index(level)
    return Stamp(revision, capabilities, fields_of(meta.get(CLIENT_KEY)), index)


def unstamped(params: Fields, meta: Fields) -> tuple[Fields, Fields | None]:
    """The request without its stamp: its params, and its `_meta` if anything is left of that."""
    rest = _own(meta)
    if rest:
        return {**params, "_meta": Raw(encode(rest))}, rest
    return {key: value for key, value in params.items() if key != "_meta"}, None


def stamped(meta: Fields | None, capabilities: Fields, client: Raw, level: int | None = None) -> Fields:
    """The `_meta` of a request of ours, with our stamp on it."""
    stamp = {
        VERSION_KEY: as_raw(LATEST_MODERN),
        CLIENT_KEY: client,
        CAPABILITIES_KEY: as_raw(capabilities),
    }
    if level is not None:
        stamp[LEVEL_KEY] = as_raw(LEVELS[level])
    return {**_own(meta or {}), **stamp}


def _own(meta: Fields) -> Fields:
    """What belongs to the message, and not to the hop that it came by."""
    return {key: value for key, value in meta.items() if not key.startswith(RESERVED) or key == TASK_KEY}


def severity(level: Raw | None) -> int:
    """How severe a log message is. One without a level that we know is nobody's to suppress."""
    text = _text(level)
    return LEVELS.index(text) if text in LEVELS else len(LEVELS)


def _text(raw: Raw | None) -> str | None:
    try:
        return None if raw is None else read_text(raw)
    except (MsgspecError, UnicodeDecodeError):
        return None


def _object(raw: Raw | None) -> Fields | None:
    try:
        return None if raw is None else open_fields(bytes(raw))
    except (MsgspecError, UnicodeDecodeError):
        return None
