"""The modern HTTP binding's headers: what each repeats of the body, and how a value is written in one.

"Any server that processes the body MUST reject" a request whose headers and body disagree
(2026-07-28, basic/transports): else whoever routes by the headers and whoever acts on the body could be
told two different things.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping

from msgspec import MsgspecError, Raw

from plait.wire.address import read_text
from plait.wire.envelope import Fields
from plait.wire.modern import HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION, VERSION_KEY
from plait.wire.spec import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR

VERSION_HEADER = "MCP-Protocol-Version"
METHOD_HEADER = "Mcp-Method"
NAME_HEADER = "Mcp-Name"
PARAMETER_PREFIX = "Mcp-Param-"

NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The field of `params` that `Mcp-Name` repeats."""

_STATUS = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
_PLAIN = re.compile(r"[\x20-\x7e]*").fullmatch
_WRAPPED = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL).fullmatch

Pairs = Iterable[tuple[str, str]]
"""Headers as they came, one pair for each line: a name may come twice."""


class Misheaded(Exception):
    """The headers of a request and its body do not fit together; the message says how (-32020)."""


def status_of(code: int | None) -> int:
    """The HTTP status for a JSON-RPC error code, or for a result (None).

    "404 + -32601 for an unknown method": the body tells it from a path that is not there. Errors without
    a status of their own are answers like any other.
    """
    return 200 if code is None else _STATUS.get(code, 200)


def write_value(text: str) -> str:
    """A text as it stands in a header: plain where that is safe, otherwise in base64 between marks.

    What looks like the marks itself is wrapped too, so that reading is always the reverse of writing.
    """
    if _PLAIN(text) and text == text.strip(" ") and not _WRAPPED(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def read_value(text: str) -> str:
    """The reverse. Base64 that we would not have written ourselves is refused: one value, one spelling."""
    found = _WRAPPED(text)
    if found is None:
        if not _PLAIN(text):
            raise Misheaded("a header value has characters that only base64 may carry")
        return text.strip(" ")
    try:
        decoded = base64.b64decode(found[1].encode("ascii"), validate=True)
        if base64.b64encode(decoded).decode() != found[1]:
            raise Misheaded("a header value is not canonical base64")
        return decoded.decode()
    except (binascii.Error, UnicodeError):
        raise Misheaded("a header value is not base64 of UTF-8") from None


def gather(pairs: Pairs) -> dict[str, str]:
    """The headers that repeat the body, by their names in lower case; none of them may come twice."""
    found: dict[str, str] = {}
    single = {VERSION_HEADER.lower(), METHOD_HEADER.lower(), NAME_HEADER.lower()}
    for name, value in pairs:
        key = name.lower()
        if key not in single and not key.startswith(PARAMETER_PREFIX.lower()):
            continue
        if key in found:
            raise Misheaded(f"the header {name} comes twice")
        found[key] = value
    return found


def headers_of(method: str, params: Fields, meta: Fields) -> dict[str, str]:
    """The headers that a request of ours has, made from what it says (`Mcp-Param-*` are the schema's)."""
    headers = {VERSION_HEADER: _text(meta.get(VERSION_KEY)) or "", METHOD_HEADER: method}
    name = _text(params.get(NAMED_BY.get(method, "")))
    if name is not None:
        headers[NAME_HEADER] = write_value(name)
    return headers


def check(headers: Mapping[str, str], method: str, params: Fields, meta: Fields) -> None:
    """Raise Misheaded unless the headers (as `gather` gives them) say what the body says."""
    _same(VERSION_HEADER, headers, _text(meta.get(VERSION_KEY)))
    _same(METHOD_HEADER, headers, method)
    if method in NAMED_BY:
        _same(NAME_HEADER, headers, _text(params.get(NAMED_BY[method])))
    elif NAME_HEADER.lower() in headers:
        raise Misheaded(f"{method} has no {NAME_HEADER} header")


def _same(name: str, headers: Mapping[str, str], said: str | None) -> None:
    written = headers.get(name.lower())
    if written is None:
        if said is not None:
            raise Misheaded(f"the header {name} is missing")
        return
    if said is None:
        raise Misheaded(f"the header {name} has no value in the body")
    if (read_value(written) if name == NAME_HEADER else written.strip(" ")) != said:
        raise Misheaded(f"the header {name} does not say what the body says")


def _text(raw: Raw | None) -> str | None:
    try:
        return None if raw is None else read_text(raw)
    except (MsgspecError, UnicodeDecodeError):
        return None
