"""The half of the client that knows aiohttp: connections that go to judged addresses and nowhere else.

Only `client` imports this module, when the first request is made: aiohttp costs a tenth of a second.
"""

import socket
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from ssl import SSLContext
from typing import TYPE_CHECKING

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorError,
    ClientError,
    ClientPayloadError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    ServerDisconnectedError,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.http import HttpProcessingError
from yarl import URL

from plait.outbound.addresses import Address
from plait.outbound.faults import AnswerBroken, OutboundError, TooSlow, Unreachable, UrlRefused
from plait.outbound.parsing import ParsedUrl
from plait.outbound.requests import Request
from plait.outbound.urls import Refusal

if TYPE_CHECKING:
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

Lookup = Callable[[str], Awaitable[tuple[Address, ...] | Refusal]]
JudgeAddress = Callable[[str, Address], Refusal | None]

KEEP_ALIVE = 4.0
"""Seconds that an unused connection is kept. Node and uvicorn close theirs after five: a POST that meets
the closing is lost, and cannot be sent again, since nobody knows whether it was read."""

FAULTS = (ClientError, HttpProcessingError, TimeoutError, OSError, ValueError)
"""All that aiohttp raises when the other side or the network fails."""


class JudgingResolver(AbstractResolver):
    """Gives aiohttp the addresses that were judged a moment ago: there is no second look-up to lie to."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        addresses = await self._lookup(host)
        if isinstance(addresses, Refusal):
            raise UrlRefused(addresses)
        return [_result(host, port, address) for address in addresses]

    async def close(self) -> None: ...


def _result(host: str, port: int, address: Address) -> ResolveResult:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    return ResolveResult(
        hostname=host,
        host=str(address),
        port=port,
        family=family,
        proto=socket.IPPROTO_TCP,
        flags=socket.AI_NUMERICHOST,
    )


class JudgingConnector(TCPConnector):
    """Asks the socket itself whom it is connected to, before a byte of a request is written.

    Connections that are used again are asked again.
    """

    def __init__(self, lookup: Lookup, judge: JudgeAddress, tls: SSLContext | None) -> None:
        super().__init__(
            resolver=JudgingResolver(lookup),
            use_dns_cache=False,  # each new connection is judged by an answer of its own
            ssl=True if tls is None else tls,
            # Whoever calls says how many at once; event streams, which stay open, must not use them up.
            limit=0,
            keepalive_timeout=KEEP_ALIVE,
        )
        self._judge = judge

    async def connect(
        self, req: ClientRequest, traces: "list[Trace]", timeout: ClientTimeout
    ) -> "Connection":
        connection = await super().connect(req, traces, timeout)
        transport = connection.transport
        peer = None if transport is None else transport.get_extra_info("peername")
        try:
            self._judge_peer(req.url.raw_host or "", peer)
        except OutboundError:
            connection.close()
            raise
        return connection

    def _judge_peer(self, host: str, peer: object) -> None:
        if not isinstance(peer, tuple):
            raise Unreachable(f"{host} closed the connection at once")
        refusal = self._judge(host, ip_address(str(peer[0]).partition("%")[0]))
        if refusal is not None:
            raise UrlRefused(refusal)


def open_session(lookup: Lookup, judge: JudgeAddress, tls: SSLContext | None) -> ClientSession:
    """A session without memory (cookies), without opinions from the environment (proxies, netrc)."""
    return ClientSession(
        connector=JudgingConnector(lookup, judge, tls),
        cookie_jar=DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        skip_auto_headers=("Content-Type",),
    )


async def send(
    session: ClientSession, request: Request, *, connect: float, idle: float | None
) -> ClientResponse:
    """Send one request and wait for the head of its answer. Redirects are answers like any other."""
    try:
        return await session.request(
            request.method,
            as_seen_by_aiohttp(request.url),
            headers=request.headers,
            data=request.body,
            allow_redirects=False,
            timeout=ClientTimeout(total=None, connect=connect, sock_connect=connect, sock_read=idle),
        )
    except FAULTS as problem:
        raise translate(problem, request.url.host.name) from None


def as_seen_by_aiohttp(url: ParsedUrl) -> URL:
    """The same URL in aiohttp's own type. Should the two ever read it differently, nothing is sent."""
    seen = URL(url.text, encoded=True)
    if (seen.scheme, seen.raw_host, seen.port) != url.origin or seen.raw_user is not None:
        raise UrlRefused(Refusal("invalid", "invalid URL: it can be read in two ways"))
    return seen


def translate(problem: Exception, host: str) -> OutboundError:
    """Our words for what aiohttp met. Its own messages may quote the whole URL."""
    match problem:
        case OutboundError():
            return problem
        case TimeoutError():
            return TooSlow(f"{host} took too long: no connection, or nothing came for a while")
        case ClientConnectorCertificateError():
            return Unreachable(
                f"{host} has a certificate that we do not trust: {_certificate_fault(problem)}"
            )
        case ClientConnectorError():
            return Unreachable(f"{host} cannot be reached: {problem.os_error.strerror or 'no connection'}")
        case ServerDisconnectedError() | ClientPayloadError():
            return AnswerBroken(f"{host} closed the connection before its answer was complete")
        case ClientError() | HttpProcessingError() | ValueError():
            return AnswerBroken(f"{host} answered with something that is no HTTP, or too long a head")
    return Unreachable(f"the connection to {host} broke")


def _certificate_fault(problem: ClientConnectorCertificateError) -> str:
    return str(getattr(problem.certificate_error, "verify_message", "")) or "it is not valid"
