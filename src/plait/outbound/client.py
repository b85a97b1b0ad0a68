"""The one HTTP client of ours: whatever leaves this process over HTTP leaves through it.

    async with client.open("GET", "https://example.org/") as response:
        async for piece in response.pieces(): ...

Every hop of a redirect is judged from the top, and every connection once more when it is made or used
again. Nothing comes from the environment. What a request may cost is written in its Limits.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from plait.errors import LocalProtocolError
from plait.outbound.addresses import Address
from plait.outbound.faults import AnswerBroken, TooSlow, UrlRefused
from plait.outbound.requests import REDIRECTS, Limits, Request, make_request, redirected
from plait.outbound.resolver import Resolver, SystemResolver
from plait.outbound.urls import Refusal, UrlPolicy

if TYPE_CHECKING:
    from ssl import SSLContext

    from aiohttp import ClientSession

    from plait.outbound.parsing import ParsedUrl
    from plait.outbound.response import Response

_SPOKEN = ("http", "https")


class HttpClient:
    """Requests under one policy. Opens nothing until it is used; whoever made it closes it."""

    def __init__(
        self,
        policy: UrlPolicy,
        *,
        resolver: Resolver | None = None,
        limits: Limits | None = None,
        tls: "SSLContext | None" = None,
    ) -> None:
        self._policy = policy
        self._resolver = resolver or SystemResolver()
        self._limits = limits or Limits()
        self._tls = tls
        self._session: ClientSession | None = None
        self._closed = False

    @asynccontextmanager
    async def open(
        self,
        method: str,
        url: "str | ParsedUrl",
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        limits: Limits | None = None,
    ) -> "AsyncIterator[Response]":
        """Send a request and give the answer while it comes in. Raises OutboundError.

        A body is never sent to another origin than the one it was meant for. Whoever sends many requests
        to one URL reads it once; it is judged each time.
        """
        limits = limits or self._limits
        request = make_request(method, url, headers, body)
        deadline = asyncio.timeout(limits.total)
        try:
            async with deadline:
                response = await self._follow(request, limits)
                try:
                    yield response
                finally:
                    response.close()
        except TimeoutError:
            if not deadline.expired():
                raise
            host = request.url.host.name
            raise TooSlow(f"{host} took longer than the {limits.total:g} seconds that it had") from None

    async def aclose(self) -> None:
        """Close every connection."""
        self._closed = True
        if self._session is not None:
            await self._session.close()

    async def _follow(self, request: Request, limits: Limits) -> "Response":
        for _ in range(limits.hops + 1):
            response = await self._send(request, limits)
            location = response.headers.get("Location")
            if limits.hops == 0 or response.status not in REDIRECTS or location is None:
                return response
            response.close()
            request = redirected(request, response.status, location, same_origin=limits.same_origin)
        raise AnswerBroken(f"{request.url.host.name}: more than {limits.hops} redirects, one after the other")

    async def _send(self, request: Request, limits: Limits) -> "Response":
        # aiohttp is loaded with the first request: most gateways never make one.
        from plait.outbound import response, transport  # noqa: PLC0415

        self._judge(request)
        if self._session is None:
            self._session = transport.open_session(self._lookup, self._policy.judge_address, self._tls)
        answer = await transport.send(self._session, request, connect=limits.connect, idle=limits.idle)
        received = response.Response(answer, request.url, limits)
        try:
            received.check_head()
        except BaseException:
            received.close()
            raise
        return received

    def _judge(self, request: Request) -> None:
        """All but the addresses of a name: those are judged when a connection is made."""
        if self._closed:
            raise LocalProtocolError("the HTTP client is closed")
        if request.url.scheme not in _SPOKEN:
            raise UrlRefused(Refusal("scheme", "invalid URL: only http and https can be fetched"))
        verdict = self._policy.judge_parsed(request.url)
        if isinstance(verdict, Refusal):
            raise UrlRefused(verdict)

    async def _lookup(self, host: str) -> tuple[Address, ...] | Refusal:
        return await self._policy.resolve(host, self._resolver)
