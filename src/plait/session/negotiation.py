"""Revisions and capabilities: what two peers agree on before they talk."""

from msgspec import MsgspecError, Raw, Struct

from plait.wire.address import as_raw, read_text
from plait.wire.envelope import EMPTY, Fields, open_fields
from plait.wire.modern import BORN
from plait.wire.spec import CLIENT_FEATURE, LATEST_HANDSHAKE, MODERN_MARK, REVISIONS, Era


class Greeting(Struct, gc=False):
    """What the two sides say in `initialize`. Everything may be missing (S1-030)."""

    revision: str
    capabilities: Fields
    info: Fields
    """Name and version of whoever greets, unread."""
    instructions: str


def read_greeting(fields: Fields) -> Greeting:
    """Never raises: a peer that says hello oddly is still a peer."""
    return Greeting(
        _text(fields.get("protocolVersion")),
        fields_of(fields.get("capabilities")),
        fields_of(fields.get("clientInfo") or fields.get("serverInfo")),
        _text(fields.get("instructions")),
    )


def _text(raw: Raw | None) -> str:
    try:
        return "" if raw is None else read_text(raw)
    except (MsgspecError, UnicodeDecodeError):
        return ""


def fields_of(raw: Raw | None) -> Fields:
    """An object opened one level, or nothing where there is none. Copied: it outlives its message."""
    if raw is None:
        return {}
    try:
        return open_fields(bytes(raw))
    except (MsgspecError, UnicodeDecodeError):
        return {}


def agree(requested: str) -> str:
    """The revision we answer `initialize` with.

    "If the server supports the requested protocol version, it MUST respond with the same version.
    Otherwise, the server MUST respond with another protocol version it supports. This SHOULD be the
    latest version supported by the server" (2025-11-25, basic/lifecycle).
    """
    return requested if REVISIONS.get(requested) is Era.HANDSHAKE else LATEST_HANDSHAKE


def era_of(method: str, meta: Fields | None) -> Era:
    """By whose rules is this request to be judged? Each message says it for itself.

    This is where the two eras part: a request whose `_meta` names its protocol version, or that only
    the modern era has, is modern; everything else belongs to the handshake.
    """
    if (meta is not None and MODERN_MARK in meta) or method in BORN:
        return Era.MODERN
    return Era.HANDSHAKE


def relayable(capabilities: Fields) -> Fields:
    """What we may declare to a server: what the client declared, as far as we carry it."""
    return {name: value for name, value in capabilities.items() if name in CLIENT_FEATURE.values()}


def declares(capabilities: Fields, capability: str, detail: str | None = None) -> bool:
    """Is this declared, and this detail of it?"""
    if capability not in capabilities:
        return False
    return detail is None or bytes(fields_of(capabilities[capability]).get(detail, b"")) == b"true"


def may_ask(capabilities: Fields, method: str, params: Fields) -> str | None:
    """Why a server may not ask this of a client with these capabilities; None if it may."""
    feature = CLIENT_FEATURE.get(method)
    if feature is None:
        return f"no client answers {method}"
    if feature not in capabilities:
        return f"the client did not declare {feature}"
    declared = fields_of(capabilities[feature])
    if method == "elicitation/create":
        mode = "url" if bytes(params.get("mode", EMPTY)) == b'"url"' else "form"
        # "An empty object is equivalent to declaring support for form mode only" (2025-11-25).
        if mode not in (declared or {"form": EMPTY}):
            return f"the client did not declare elicitation in {mode} mode"
    if method == "sampling/createMessage" and "tools" in params and "tools" not in declared:
        return "the client did not declare sampling with tools"
    return None


def hello(capabilities: Fields, revision: str, name: str, version: str) -> Fields:
    """The params of our own `initialize`."""
    return {
        "protocolVersion": as_raw(revision),
        "capabilities": as_raw(capabilities),
        "clientInfo": as_raw({"name": name, "version": version}),
    }
