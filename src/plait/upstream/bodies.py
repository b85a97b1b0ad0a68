"""The body of an HTTP answer: whole, within its limits, or only its beginning."""

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType
from msgspec.json import Decoder

from plait.errors import UpstreamBroken
from plait.outbound.faults import OutboundError
from plait.wire.envelope import ErrorBody

if TYPE_CHECKING:
    from plait.outbound.response import Response

IDLE = 30.0
"""Seconds without a byte in the middle of a body, which nobody needs for anything."""
_GLANCE = 5.0
_MOST_SEEN = 64 * 1024


class _Failure(Struct):
    error: Raw | UnsetType = UNSET


_read_failure = Decoder(_Failure).decode
_check_error = Decoder(ErrorBody).decode


def content_type(response: "Response") -> str:
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()


async def whole(response: "Response", limit: int) -> bytes:
    """The body, unpacked. Raises UpstreamBroken, and keeps nothing, if it is longer or stops coming."""
    body = bytearray()
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(IDLE) as pace, aclosing(response.pieces()) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > limit:
                    raise UpstreamBroken(f"its answer is longer than {limit} bytes")
                pace.reschedule(loop.time() + IDLE)
    except TimeoutError:
        raise UpstreamBroken(f"its answer stopped coming for {IDLE:g} s") from None
    return bytes(body)


async def beginning(response: "Response") -> bytes:
    """As much of a body as explains an error, without waiting for the rest."""
    seen = bytearray()
    try:
        async with asyncio.timeout(_GLANCE), aclosing(response.pieces()) as pieces:
            async for piece in pieces:
                seen += piece
                if len(seen) > _MOST_SEEN:
                    break
    except (TimeoutError, OutboundError):
        pass  # the status has said enough
    return bytes(seen[:_MOST_SEEN])


def error_in(body: bytes) -> Raw | None:
    """The error of a JSON-RPC response, whatever its id; None if the body is no such thing."""
    try:
        error = _read_failure(body).error
        if isinstance(error, UnsetType):
            return None
        _check_error(error)
        return error
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return None
