"""Streamable HTTP as the modern revision has it: each request a POST that repeats in its head what it says.

There is no session, no stream but the answer's, and nothing to ask for again: "closing the response stream
is the cancellation", and a stream that breaks loses its request (2026-07-28, basic/transports).
"""

import logging
from functools import partial
from typing import TYPE_CHECKING

from plait.errors import UpstreamBroken, UpstreamUnavailable
from plait.session.negotiation import fields_of
from plait.upstream.base import Receiver
from plait.upstream.bodies import beginning, content_type, error_in, whole
from plait.upstream.endpoint import Endpoint
from plait.upstream.listening import Deliver, Listening, is_stream
from plait.upstream.mirrors import Mirrors
from plait.wire.envelope import Fields, error_body, failure, open_envelope
from plait.wire.headers import headers_of
from plait.wire.modern import DISCOVER
from plait.wire.spec import METHOD_NOT_FOUND
from plait.wire.text import printable

if TYPE_CHECKING:
    from plait.outbound.response import Response

_JUDGED = frozenset((400, 404, 405))
"""What a server of the handshake era answers to a POST that it does not understand."""

_log = logging.getLogger("plait")


class Stateless:
    """Carries modern requests to one URL."""

    def __init__(self, endpoint: Endpoint, receiver: Receiver, limit: int) -> None:
        self._endpoint = endpoint.at(endpoint.url)  # the same credentials, and never a session
        self._receiver = receiver
        self._limit = limit
        self._mirrors = Mirrors()

    async def ask(self, id: bytes, method: str, message: bytes) -> None:
        """Send a request and hand its reply on. Raises UpstreamError if there will be none."""
        params = open_envelope(message).params or {}
        deliver: Deliver = self._receiver.received
        if method == "tools/list":
            deliver = partial(self._listed, anew="cursor" not in params)
        async with self._endpoint.post(message, self._headers(method, params)) as response:
            if not is_stream(response):
                await self._take_answer(response, id, method, deliver)
                return
            reason = await Listening(self._receiver, self._limit, id, deliver).hear(response)
        if self._receiver.awaits(id):
            raise UpstreamBroken(f"{reason}, without the reply")

    def _headers(self, method: str, params: Fields) -> dict[str, str]:
        headers = headers_of(method, params, fields_of(params.get("_meta")))
        return {**headers, **self._mirrors.headers(params)} if method == "tools/call" else headers

    def _listed(self, line: bytes, within: bytes | None, *, anew: bool) -> None:
        line, dropped = self._mirrors.learn(line, anew=anew)
        for tool in dropped:
            _log.warning("the tool %r is left out: %s", printable(tool.name[:100]), printable(tool.reason))
        self._receiver.received(line, within)

    async def _take_answer(self, response: "Response", id: bytes, method: str, deliver: Deliver) -> None:
        if response.status == 200 and content_type(response) == "application/json":
            deliver(await whole(response, self._limit), id)
            if self._receiver.awaits(id):
                raise UpstreamBroken("its answer holds no reply to this request")
            return
        body = await beginning(response)
        problem = await self._endpoint.refusal(response, body)
        if method == DISCOVER and response.status not in _JUDGED:
            raise problem  # an outage, or a sign-in that is wanted, says nothing about its era
        error = error_in(body)
        if error is not None and type(problem) in (UpstreamBroken, UpstreamUnavailable):
            # The server's own words. Whatever id they have: nothing else was asked here.
            deliver(failure(id, error), id)
        elif method == DISCOVER:
            deliver(failure(id, error_body(METHOD_NOT_FOUND, str(problem))), id)
        else:
            raise problem
