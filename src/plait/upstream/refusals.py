"""What it means for a request of ours when a server answers in HTTP, but not in MCP."""

import re
from typing import TYPE_CHECKING

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder

from plait.errors import (
    NeedsAuth,
    SessionLost,
    UpstreamBroken,
    UpstreamBusy,
    UpstreamError,
    UpstreamUnavailable,
)
from plait.outbound.faults import AnswerBroken, OutboundError, TooLarge
from plait.upstream.bodies import content_type
from plait.wire.text import printable

if TYPE_CHECKING:
    from plait.outbound.response import Response

_LONGEST_REASON = 200
_ABSENT = frozenset((502, 503, 504))
_DELAY = re.compile(r"[0-9]{1,6}")


class _Error(Struct):
    message: str = ""


class _Body(Struct):
    """A JSON-RPC error, or what frameworks send in its place."""

    error: _Error | str = ""
    message: str = ""
    detail: str = ""


_read_body = Decoder(_Body).decode


def translated(problem: OutboundError) -> UpstreamError:
    """Our own client could not bring an answer."""
    kind = UpstreamBroken if isinstance(problem, AnswerBroken | TooLarge) else UpstreamUnavailable
    return kind(str(problem))


def refusal(response: "Response", body: bytes, *, in_session: bool) -> UpstreamError:
    """What an answer of this status means. No header's value is repeated, but for a time to wait."""
    status = response.status
    said = _reason(body)
    what = f"it answered with HTTP {status}" + (f": {said}" if said else "")
    challenge = response.headers.get("WWW-Authenticate", "")
    if status == 401 or (status == 403 and challenge):
        return NeedsAuth(f"{what}; {_SIGN_IN}", challenge)
    if in_session and (status == 404 or (status == 400 and "session" in said.lower())):
        # "The server MAY terminate the session at any time, after which it MUST respond to requests
        # containing that session ID with HTTP 404". Servers made after the SDKs' examples say 400.
        return SessionLost(what)
    if status == 429:
        return UpstreamBusy(what + _when(response))
    if status in _ABSENT:
        return UpstreamUnavailable(what + _when(response))
    if status < 300:
        return UpstreamBroken(f"it answered with HTTP {status} and {_content(response)}, and no message")
    return UpstreamBroken(what)


_SIGN_IN = (
    "it wants a sign-in; put a token into the server's entry in the configuration, as "
    '"headers": {"Authorization": "Bearer ${TOKEN}"}, or mend the one that is there'
)


def _content(response: "Response") -> str:
    given = content_type(response)
    return f"the content type {printable(given[:80])}" if given else "no content type"


def _when(response: "Response") -> str:
    delay = response.headers.get("Retry-After", "")
    return f"; try again in {delay} s" if _DELAY.fullmatch(delay) else ""


def _reason(body: bytes) -> str:
    """What the server says about it, where it says it in JSON."""
    try:
        read = _read_body(body)
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    error = read.error.message if isinstance(read.error, _Error) else read.error
    return printable(error or read.message or read.detail)[:_LONGEST_REASON]
