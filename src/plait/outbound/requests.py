"""A request as it goes out, what it may cost, and what becomes of it when it is redirected. Pure."""

import re
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from plait.outbound.faults import AnswerBroken, RequestInvalid, UrlRefused
from plait.outbound.hosts import InvalidUrl
from plait.outbound.parsing import ParsedUrl, join_url, parse_url
from plait.outbound.urls import Refusal
from plait.version import VERSION

_METHOD = re.compile(r"[A-Z][A-Z-]{0,31}")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\U0010ffff]*")
_MOST_HEADER_BYTES = 32 * 1024

_TUNNELS = frozenset({"CONNECT", "TRACE"})
_OURS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that say how the message is framed, or to whom it goes: only the client knows."""
_HARMLESS = frozenset({"accept", "accept-encoding", "accept-language", "user-agent"})
"""Headers that follow a redirect to another origin. Any other one may be a credential."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Limits(Struct, frozen=True, kw_only=True):
    """What one request may cost, with all its redirects. Times are seconds; None: as long as it takes."""

    connect: float = 10.0
    """For one connection: look-up, TCP and TLS."""
    idle: float | None = 30.0
    """Without a byte from the other side."""
    total: float | None = 60.0
    """From the start until the caller is done with the answer."""
    wire_bytes: int | None = 10 * 1024 * 1024
    """Of the body, as it comes."""
    body_bytes: int | None = 10 * 1024 * 1024
    """Of the body, unpacked."""
    head_bytes: int = 64 * 1024
    hops: int = 5
    """Redirects to follow. 0: a redirect is an answer like any other."""
    same_origin: bool = False
    """For whoever talks to one server: redirects stay within the origin, and a POST stays a POST."""


class Request(Struct, frozen=True):
    """One request, ready to be judged and sent."""

    method: str
    url: ParsedUrl
    headers: Mapping[str, str]
    body: bytes | None = None


def make_request(
    method: str, url: str | ParsedUrl, headers: Mapping[str, str] | None, body: bytes | None
) -> Request:
    """Read what a caller asks for. Raises UrlRefused for the URL, RequestInvalid for the rest."""
    if _METHOD.fullmatch(method) is None or method in _TUNNELS:
        raise RequestInvalid("the method is none that we send; try GET, HEAD or POST")
    try:
        parsed = parse_url(url) if isinstance(url, str) else url
    except InvalidUrl as problem:
        raise UrlRefused(Refusal("invalid", f"invalid URL: {problem}")) from None
    return Request(method, parsed, _read_headers(headers or {}), body)


def redirected(request: Request, status: int, location: str, *, same_origin: bool = False) -> Request:
    """The request that follows a redirect. Raises UrlRefused or AnswerBroken if none may."""
    try:
        url = join_url(request.url, location)
    except InvalidUrl as problem:
        raise UrlRefused(Refusal("invalid", f"invalid URL in a redirect: {problem}")) from None
    if not same_origin:
        request = _with_method(request, status)
    elif status == 303 and request.body is not None:
        raise AnswerBroken(f"{request.url.host.name} redirects a {request.method} with 303, to be a GET")
    if url.origin == request.url.origin:
        return replace(request, url=url)
    if request.body is not None or same_origin:
        raise AnswerBroken(
            f"{request.url.host.name} redirects a {request.method} to another origin, {url.host.name}; "
            "nothing is sent there; ask for the new URL itself if you trust it"
        )
    harmless = {name: value for name, value in request.headers.items() if name.lower() in _HARMLESS}
    return replace(request, url=url, headers=harmless)


def _with_method(request: Request, status: int) -> Request:
    """As browsers do: only 307 and 308 keep a POST a POST (RFC 9110 §15.4)."""
    if (
        status in (307, 308)
        or request.method in ("GET", "HEAD")
        or (status != 303 and request.method != "POST")
    ):
        return request
    described = {name: value for name, value in request.headers.items() if name.lower() != "content-type"}
    return replace(request, method="GET", headers=described, body=None)


def _read_headers(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if _NAME.fullmatch(name) is None:
            raise RequestInvalid("a header's name has characters that no header has")
        if name.lower() in _OURS or name.lower().startswith("proxy-"):
            raise RequestInvalid(f"the header {name} is set by the client itself; leave it out")
        if _VALUE.fullmatch(value) is None or not _encodable(value):
            raise RequestInvalid(f"the value of the header {name} has a control character")
    if sum(len(name) + len(value) for name, value in headers.items()) > _MOST_HEADER_BYTES:
        raise RequestInvalid(f"the headers are longer than {_MOST_HEADER_BYTES} bytes")
    kept = {name: value for name, value in headers.items() if name.lower() != "accept-encoding"}
    if not any(name.lower() == "user-agent" for name in kept):
        kept["User-Agent"] = f"plait/{VERSION}"
    return {**kept, "Accept-Encoding": "gzip, deflate"}


def _encodable(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
