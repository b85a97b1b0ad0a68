"""web_fetch: one HTTP request to the open internet, within the operator's policy and within limits."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Struct
from msgspec.structs import replace

from plait.errors import ExecutionFailed, PermissionDenied
from plait.outbound.client import HttpClient
from plait.outbound.faults import OutboundError, TooLarge, UrlRefused
from plait.outbound.requests import Limits
from plait.outbound.text import decode_text, is_text, says_text

if TYPE_CHECKING:
    from plait.outbound.response import Response

DEFAULT_LIMIT_BYTES = 10 * 1024 * 1024
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

_TOLD = ("etag", "last-modified", "link", "location", "retry-after", "www-authenticate")
"""Headers of an answer that a model can act on. A HEAD request tells all of them."""
_MUCH = 256 * 1024
"""Bytes whose decoding would hold up everybody else's calls."""


class Fetched(Struct, frozen=True, omit_defaults=True):
    """What a page or an endpoint answered."""

    url: str
    """After redirects."""
    status: int
    content_type: str
    headers: dict[str, str]
    body: str = ""
    truncated: bool = False
    limit_bytes: int | None = None
    """Set, with `truncated`, if the body was longer."""
    warning: str | None = None


class WebTools:
    """The tools that reach out. The client, with its policy, belongs to whoever made it."""

    def __init__(
        self,
        client: HttpClient,
        *,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        limits: Limits | None = None,
    ) -> None:
        self._client = client
        self._limit_bytes = limit_bytes
        self._limits = replace(limits or Limits(), wire_bytes=limit_bytes, body_bytes=limit_bytes)

    async def web_fetch(
        self,
        url: Annotated[str, "An http or https URL, percent-encoded, without a user name."],
        method: Annotated[Method, "The HTTP method."] = "GET",
        headers: Annotated[dict[str, str] | None, "Headers to send along."] = None,
    ) -> Fetched:
        """Fetch a URL and return its status and its body as text. Only public addresses are reached."""
        try:
            async with self._client.open(method, url, headers=headers, limits=self._limits) as response:
                answer = _head(response, everything=method in ("HEAD", "OPTIONS"))
                if says_text(answer.content_type) is False:
                    return _binary(
                        answer, f"{response.headers.get('Content-Length', 'an unknown number of')} bytes"
                    )
                body, cut = await _collect(response)
        except UrlRefused as problem:
            raise _refused(problem) from None
        except OutboundError as problem:
            raise ExecutionFailed(str(problem)) from None
        return await self._with_body(answer, body, cut)

    async def _with_body(self, answer: Fetched, body: bytes, cut: str | None) -> Fetched:
        if cut is not None:
            answer = replace(
                answer, truncated=True, limit_bytes=self._limit_bytes, warning=f"truncated: {cut}"
            )
        if not is_text(answer.content_type, body):
            return _binary(answer, f"{'more than ' if cut else ''}{len(body)} bytes")
        decode = partial(decode_text, answer.content_type, body, cut=cut is not None)
        text = await asyncio.to_thread(decode) if len(body) > _MUCH else decode()
        return replace(answer, body=text)


async def _collect(response: "Response") -> tuple[bytes, str | None]:
    """The body, and, if it did not fit, why it ends where it does."""
    body = bytearray()
    try:
        async with aclosing(response.pieces()) as pieces:
            async for piece in pieces:
                body += piece
    except TooLarge as problem:
        return bytes(body), str(problem)
    return bytes(body), None


def _head(response: "Response", *, everything: bool) -> Fetched:
    return Fetched(
        url=response.url,
        status=response.status,
        content_type=_as_text(response.headers.get("Content-Type", "")),
        headers=_told(response.headers, everything=everything),
    )


def _binary(answer: Fetched, size: str) -> Fetched:
    kind = answer.content_type or "no content type"
    return replace(answer, warning=f"binary content ({kind}, {size}) is not shown")


def _told(headers: Mapping[str, str], *, everything: bool) -> dict[str, str]:
    """Cookies are left out: they are credentials, and we keep none."""
    names = dict.fromkeys(name.lower() for name in headers)
    wanted = (name for name in names if (everything and name != "set-cookie") or name in _TOLD)
    return {_as_text(name): _as_text(headers[name]) for name in wanted}


def _as_text(value: str) -> str:
    """Bytes of a header that are no UTF-8 come as lone surrogates, which no JSON can hold."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _refused(problem: UrlRefused) -> ExecutionFailed | PermissionDenied:
    """A URL that means nothing is a mistake to mend; one that leads to a forbidden place is not."""
    if problem.refusal.rule in ("invalid", "unresolved"):
        return ExecutionFailed(problem.refusal.reason)
    return PermissionDenied("web_fetch", problem.refusal.reason)
