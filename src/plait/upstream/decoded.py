"""A reply as Python values, for programs that want to look at it."""

from msgspec import Struct
from msgspec.json import decode

from plait.errors import UpstreamRefused
from plait.session.exchange import Reply
from plait.wire.envelope import EMPTY


class _Error(Struct):
    code: int
    message: str
    data: object = None


def unwrap(reply: Reply) -> object:
    """The decoded result, or the server's error raised."""
    if reply.error is not None:
        error = decode(reply.error, type=_Error)
        raise UpstreamRefused(error.code, error.message, error.data)
    return decode(reply.result or EMPTY)
