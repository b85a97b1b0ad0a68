"""One URL of a server, and what every request to it carries: credentials, session, revision."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from plait.config.masking import MASK
from plait.errors import UpstreamBroken, UpstreamError
from plait.outbound.client import HttpClient
from plait.outbound.faults import OutboundError
from plait.outbound.hosts import InvalidUrl
from plait.outbound.parsing import ParsedUrl, parse_url
from plait.outbound.requests import Limits
from plait.upstream.bodies import beginning
from plait.upstream.refusals import refusal, translated
from plait.wire.headers import PARAMETER_PREFIX
from plait.wire.headers import VERSION_HEADER as REVISION

if TYPE_CHECKING:
    from plait.outbound.response import Response

SESSION = "Mcp-Session-Id"

# Nothing here limits a body or an answer's time: a message has its limit wherever it is read, an event
# stream has none as a whole, and every request has the deadline of its call.
_LIMITS = Limits(idle=None, total=None, wire_bytes=None, body_bytes=None, same_origin=True)

_OURS = frozenset(
    (
        "accept",
        "accept-encoding",
        "content-type",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
    )
)
# "The session ID MUST only contain visible ASCII characters (ranging from 0x21 to 0x7E)" (2025-11-25).
_SESSION_ID = re.compile(r"[\x21-\x7e]{1,4096}")
_SECRET = 6
"""What is shorter is no secret, and may be part of any word."""
_DATE = re.compile(r"[0-9A-Za-z.-]{1,32}")


class Endpoint:
    """Opens requests. Whatever fails on the way is told as an UpstreamError."""

    def __init__(self, client: HttpClient, url: str, headers: Mapping[str, str]) -> None:
        self._client = client
        self.url = url
        self._where = _read(url)
        self._headers = {name: value for name, value in headers.items() if not _is_ours(name.lower())}
        # Servers repeat what they refuse: a secret must not come back in the text of an error.
        self._secrets = [value.split()[-1] for value in headers.values() if len(value) >= _SECRET]
        self.session: str | None = None
        self._revision: str | None = None

    def __repr__(self) -> str:
        return f"<Endpoint with {len(self._headers)} headers, session {self.session is not None}>"

    def at(self, url: str) -> "Endpoint":
        """Another URL of the same server, with the same credentials."""
        return Endpoint(self._client, url, self._headers)

    def adopt(self, response: "Response") -> None:
        """Remember the session that the answer to `initialize` opens, if it does."""
        session = response.headers.get(SESSION)
        if session is not None and _SESSION_ID.fullmatch(session) is None:
            raise UpstreamBroken("its session id has characters that no session id has")
        self.session = session

    def agreed(self, revision: str) -> None:
        """The revision to name from now on; one that is no date is not named."""
        self._revision = revision if _DATE.fullmatch(revision) else None

    async def refusal(self, response: "Response", body: bytes | None = None) -> UpstreamError:
        """What an answer means that is no message, or whose message is none of ours."""
        given = await beginning(response) if body is None else body
        problem = refusal(response, given, in_session=self.session is not None)
        text = str(problem)
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        problem.args = (text,)
        return problem

    @asynccontextmanager
    async def post(self, message: bytes, more: Mapping[str, str] | None = None) -> "AsyncIterator[Response]":
        """`more`: headers that this message has of its own."""
        # "The client MUST include an Accept header, listing both application/json and text/event-stream".
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        headers |= more or {}
        async with self._open("POST", headers, message) as response:
            yield response

    @asynccontextmanager
    async def listen(self, last_id: str = "") -> "AsyncIterator[Response]":
        """A stream of events; of those after this one, where an id is given."""
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        async with self._open("GET", headers) as response:
            yield response

    async def end_session(self) -> None:
        """Whatever the server answers (it "MAY respond to this request with HTTP 405"), we leave."""
        async with self._open("DELETE", {}):
            self.session = None

    @asynccontextmanager
    async def _open(
        self, method: str, headers: dict[str, str], body: bytes | None = None
    ) -> "AsyncIterator[Response]":
        headers |= self._headers
        if self.session is not None:
            headers[SESSION] = self.session
        if self._revision is not None:
            headers[REVISION] = self._revision
        try:
            async with self._client.open(
                method, self._where, headers=headers, body=body, limits=_LIMITS
            ) as response:
                yield response
        except OutboundError as problem:
            raise translated(problem) from None


def _is_ours(name: str) -> bool:
    """What the protocol itself says in headers is nobody's to configure."""
    return name in _OURS or name.startswith(PARAMETER_PREFIX.lower())


def _read(url: str) -> str | ParsedUrl:
    """Read once what every request needs; one that cannot be read is left for the request to refuse."""
    try:
        return parse_url(url)
    except InvalidUrl:
        return url
