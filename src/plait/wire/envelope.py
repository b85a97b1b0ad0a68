"""The JSON-RPC envelope. Payloads stay `Raw`: we read the address, not the letter.

A line is decoded one level deep (`params` two), so an unread payload is grammar-checked by
msgspec but never built, and goes on byte for byte. What msgspec does not check in a skipped value
is its UTF-8, so that is done here, once per message. An id is kept as the bytes the peer wrote:
it is echoed verbatim, and `7`, `"7"` and `7.0` can never be mistaken for one another.

Duplicate keys: of the envelope and of `params` the last one counts, and what we send on is our own
encoding of it, so nobody behind us can read another one than we did.
"""

import re
from typing import Literal

from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType, ValidationError
from msgspec.json import Decoder, Encoder

from plait.errors import RemoteProtocolError
from plait.wire.spec import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR

Fields = dict[str, Raw]
"""An object opened one level: its values are unread."""


class Envelope(Struct, gc=False):
    """Any JSON-RPC message; which fields are set says which kind it is."""

    jsonrpc: Literal["2.0"]
    id: Raw | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Fields | UnsetType | None = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Torn(Struct, gc=False):
    """A message that is JSON but not JSON-RPC: whatever of it can still be told apart."""

    jsonrpc: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET


class ErrorBody(Struct, omit_defaults=True):
    code: int
    message: str
    data: Raw | UnsetType = UNSET


encode = Encoder().encode
encode_sorted = Encoder(order="sorted").encode
"""The same bytes for the same fields, in whatever order they came."""
_decode = Decoder(Envelope).decode
_decode_torn = Decoder(Torn).decode
_check_grammar = Decoder(Raw).decode
open_fields = Decoder(Fields).decode
"""Open one object one level. Raises MsgspecError if it is none."""

EMPTY = Raw(b"{}")
BOM = b"\xef\xbb\xbf"

# "Requests MUST include a string or integer ID. [...] the ID MUST NOT be null" (2025-11-25, basic).
# Bounded, since we keep ids: 64-bit integers and strings of 256 bytes.
legal_id = re.compile(rb'-?[0-9]{1,19}|"(?:[^"\\]|\\.){0,256}"').fullmatch


def open_envelope(line: bytes) -> Envelope:
    """Decode one message. What is wrong with it is the peer's fault and says which id to answer."""
    try:
        if not line.isascii():
            line.decode()
        return _decode(line)
    except (MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        return _look_again(line, problem)


def _look_again(line: bytes, problem: Exception) -> Envelope:
    """Repair what real peers get wrong and what harms nobody; explain the rest."""
    repaired = repair(line)
    if repaired != line:
        return open_envelope(repaired)
    if not isinstance(problem, ValidationError):
        raise RemoteProtocolError(f"not JSON: {_reason(problem)}", PARSE_ERROR) from None
    try:
        # A wrong type can be reported before the rest of the line has been read.
        _check_grammar(line)
    except (MsgspecError, RecursionError) as exc:
        raise RemoteProtocolError(f"not JSON: {_reason(exc)}", PARSE_ERROR) from None
    raise _explain(line)


def _explain(line: bytes) -> RemoteProtocolError:
    try:
        torn = _decode_torn(line)
    except MsgspecError:
        return RemoteProtocolError("a message is one JSON object", INVALID_REQUEST)
    id = torn.id if torn.id is not UNSET and legal_id(torn.id) else None
    named = torn.method is not UNSET and bytes(torn.method)[:1] == b'"'
    silent = named and torn.id is UNSET
    if torn.jsonrpc is UNSET or bytes(torn.jsonrpc) != b'"2.0"':
        return RemoteProtocolError('"jsonrpc" must be "2.0"', INVALID_REQUEST, id, unanswerable=silent)
    if torn.method is not UNSET and not named:
        return RemoteProtocolError('"method" must be a string', INVALID_REQUEST, id)
    return RemoteProtocolError('"params" must be an object', INVALID_PARAMS, id, unanswerable=silent)


def _reason(problem: Exception) -> str:
    if isinstance(problem, RecursionError):
        return "nested too deeply"
    if isinstance(problem, UnicodeDecodeError):
        return f"not UTF-8 (byte {problem.start})"
    return str(problem).removeprefix("JSON is malformed: ")


_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair: two halves of one character
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # a half without its other half
    rb"|\\."  # any other escape, an escaped backslash among them
)


def repair(line: bytes) -> bytes:
    """Mend a leading byte-order mark and lone surrogates; leave everything else as it is.

    Node writes half an emoji as `\\ud83d` when it cuts a string, and every strict parser rejects
    the whole message for it. The half stands for nothing, so it becomes U+FFFD.
    """
    line = line.removeprefix(BOM)
    if b"\\ud" in line or b"\\uD" in line:
        line = _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], line)
    return line


def request(id: bytes, method: str, params: Fields | None) -> bytes:
    if params is None:
        return b'{"jsonrpc":"2.0","id":%b,"method":%b}' % (id, encode(method))
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (id, encode(method), encode(params))


def notification(method: str, params: Fields | None = None) -> bytes:
    if params is None:
        return b'{"jsonrpc":"2.0","method":%b}' % encode(method)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (encode(method), encode(params))


def result(id: bytes, payload: Raw) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, payload)


def failure(id: bytes | None, error: Raw) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (b"null" if id is None else id, error)


def error_body(code: int, message: str, data: object = UNSET) -> Raw:
    return Raw(encode(ErrorBody(code, message, UNSET if data is UNSET else Raw(encode(data)))))
