"""Errors across the eras: which codes the other era knows, and what the rest become."""

from msgspec import MsgspecError, Raw
from msgspec.json import Decoder

from plait.session.exchange import Reply
from plait.session.negotiation import fields_of
from plait.wire.address import as_raw, read_text
from plait.wire.content import error_result
from plait.wire.envelope import EMPTY, Fields, encode, open_fields
from plait.wire.modern import (
    HEADER_MISMATCH,
    MISSING_CAPABILITY,
    UNSUPPORTED_VERSION,
    URL_ELICITATION_REQUIRED,
)
from plait.wire.spec import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND

OF_ONE_HOP = (HEADER_MISMATCH, UNSUPPORTED_VERSION)
"""What these complain of is between two neighbours: passed on they would accuse the wrong one."""

_OF_ANOTHER_ERA = (*OF_ONE_HOP, MISSING_CAPABILITY, URL_ELICITATION_REQUIRED, 0, -1, -32800)
"""0, -1 and -32800 are what SDKs of the handshake era say for a crash, a refusal and a cancellation."""
_WITHOUT_MEANING = range(-32019, -31999)
"""-32000 … -32019: "no portable meaning" (2026-07-28, basic): one SDK's timeout is another's lost session."""

_read_code = Decoder(int).decode


def code_of(error: Raw) -> int:
    try:
        return _read_code(open_fields(error)["code"])
    except (MsgspecError, UnicodeDecodeError, KeyError):
        return INTERNAL_ERROR


def for_modern(error: Raw, capabilities: Fields) -> Raw:
    """An error as a modern client with these capabilities gets it, whoever made it."""
    code = code_of(error)
    if code == RESOURCE_NOT_FOUND:
        # "-32002 [...] MUST NOT be emitted": a resource that is not there is -32602 now.
        return _recoded(error, INVALID_PARAMS)
    if code == MISSING_CAPABILITY and lacks(capabilities, fields_of(_required(error))):
        return error
    if code in _OF_ANOTHER_ERA or code in _WITHOUT_MEANING:
        return _internal(error, code)
    return error


def for_handshake(method: str, error: Raw) -> Reply:
    """A modern server's error as a handshake client gets it."""
    code = code_of(error)
    if code == MISSING_CAPABILITY and method == "tools/call":
        return Reply(result=error_result(f"{_message(error)} [{bytes(_required(error)).decode()}]"))
    if code in (MISSING_CAPABILITY, *OF_ONE_HOP):
        return Reply(error=_internal(error, code))
    return Reply(error=error)


def lacks(capabilities: Fields, required: Fields) -> bool:
    """Is any of the required capabilities, or a detail of one, not among the declared ones?"""
    for name, details in required.items():
        if name not in capabilities:
            return True
        declared = fields_of(capabilities[name])
        if name == "elicitation":
            # "An empty object is equivalent to declaring support for form mode only" (2025-11-25).
            declared = declared or {"form": EMPTY}
        if any(detail not in declared for detail in fields_of(details)):
            return True
    return False


def _required(error: Raw) -> Raw:
    return fields_of(open_fields(error).get("data")).get("requiredCapabilities", EMPTY)


def _message(error: Raw) -> str:
    try:
        return read_text(open_fields(error)["message"])
    except (KeyError, MsgspecError, UnicodeDecodeError):
        return "the server needs a capability of the client's"


def _recoded(error: Raw, code: int) -> Raw:
    return Raw(encode({**open_fields(error), "code": as_raw(code)}))


def _internal(error: Raw, code: int) -> Raw:
    """Our fault to the client, with what the server said kept for those who look for the cause."""
    fields = open_fields(error)
    kept: dict[str, object] = {"upstream": code}
    if "data" in fields:
        kept["data"] = fields["data"]
    return Raw(encode({**fields, "code": as_raw(INTERNAL_ERROR), "data": as_raw(kept)}))
