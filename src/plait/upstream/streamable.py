"""Streamable HTTP as the handshake revisions have it: every message a POST, answered by JSON or a stream."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder

from plait.errors import SessionLost, UpstreamBroken, UpstreamError, UpstreamUnavailable
from plait.upstream.base import Receiver
from plait.upstream.bodies import beginning, content_type, error_in, whole
from plait.upstream.endpoint import Endpoint
from plait.upstream.listening import LASTING, Deliver, Listening, is_stream

if TYPE_CHECKING:
    from plait.outbound.response import Response

FAREWELL = 2.0
"""Seconds for the end of a session: we are leaving anyway."""
ATTEMPTS = 4
"""How often in a row a stream is looked for at a server that cannot be reached."""
_JSON = "application/json"
_OLDER = frozenset((400, 404, 405))


class OlderServer(UpstreamError):
    """The server refuses `initialize` as servers of the revision 2024-11-05 do."""

    def __init__(self, refusal: UpstreamError, error: Raw | None) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal
        self.error = error
        """What it says in MCP's words, if it does: it may be a server of the modern era only."""


class _Welcome(Struct, rename={"revision": "protocolVersion"}):
    revision: str = ""


class _Reply(Struct):
    """As much of a reply as decides what we do over HTTP."""

    id: Raw = Raw(b"")
    result: _Welcome | None = None


_read_reply = Decoder(_Reply).decode


class Streamable:
    """One conversation. `lost` is called when the server has forgotten it."""

    def __init__(self, endpoint: Endpoint, receiver: Receiver, limit: int, lost: Callable[[], None]) -> None:
        self._endpoint = endpoint
        self._receiver = receiver
        self._limit = limit
        self._lost = lost

    async def ask(self, id: bytes, method: str, message: bytes) -> None:
        """Send a request and hand its reply on. Raises UpstreamError if there will be none."""
        greeting = method == "initialize"
        deliver = self._welcomed if greeting else self._receiver.received
        listening = Listening(self._receiver, self._limit, id, deliver)
        async with self._endpoint.post(message) as response:
            if greeting and response.status == 200:
                self._endpoint.adopt(response)
            if not is_stream(response):
                await self._take_answer(response, id, deliver, greeting=greeting)
                return
            reason = await listening.hear(response)
        await self._find_again(id, listening, reason)

    async def tell(self, message: bytes) -> None:
        """Send what needs no reply."""
        async with self._endpoint.post(message) as response:
            if response.status >= 300:
                raise await self._endpoint.refusal(response)
            if response.status == 202:
                await beginning(response)  # to its end, so that the connection can be used again

    async def stand(self) -> None:
        """Hear what the server says of its own accord, where it offers that, until it forgets us."""
        listening = Listening(self._receiver, self._limit)
        position = listening.position
        loop = asyncio.get_running_loop()
        offered = False
        while True:
            opened = loop.time()
            with contextlib.suppress(UpstreamError):  # nobody waits for this stream: it is tried again
                async with self._endpoint.listen(position.last_id) as response:
                    if is_stream(response):
                        offered = True
                        await listening.hear(response)
                    elif self._is_no_use(response, offered=offered):
                        return
                    elif response.status == 400:
                        position.last_id = ""  # it no longer knows where we were
            if loop.time() - opened > LASTING:
                position.used()
            await asyncio.sleep(position.pause())

    async def aclose(self) -> None:
        """ "Clients that no longer need a particular session [...] SHOULD send an HTTP DELETE"."""
        if self._endpoint.session is not None:
            with contextlib.suppress(UpstreamError, TimeoutError):
                async with asyncio.timeout(FAREWELL):
                    await self._endpoint.end_session()

    # ---- replies

    def _welcomed(self, line: bytes, within: bytes | None) -> None:
        """The reply to `initialize` names the revision that later requests must name."""
        welcome = _opened(line)
        if welcome is not None and welcome.result is not None:
            self._endpoint.agreed(welcome.result.revision)
        self._receiver.received(line, within)

    async def _take_answer(
        self, response: "Response", id: bytes, deliver: Deliver, *, greeting: bool
    ) -> None:
        if response.status == 200 and content_type(response) == _JSON:
            deliver(await whole(response, self._limit), id)
            if self._receiver.awaits(id):
                raise UpstreamBroken("its answer holds no reply to this request")
            return
        body = await beginning(response)
        problem = await self._endpoint.refusal(response, body)
        if type(problem) in (UpstreamBroken, UpstreamUnavailable) and _answers(body, id):
            deliver(body, id)  # an error of its own, in MCP's words
            return
        if greeting and response.status in _OLDER:
            raise OlderServer(problem, error_in(body))
        raise problem

    async def _find_again(self, id: bytes, listening: Listening, reason: str) -> None:
        """The stream is over. Without the reply, it is opened again behind the last event that we heard.

        "Resumption is always via HTTP GET with `Last-Event-ID`" (2025-11-25). The request itself is never
        sent again.
        """
        failures = 0
        while self._receiver.awaits(id):
            if not listening.position.last_id:
                raise UpstreamBroken(f"{reason}, without the reply and without a way to ask for it again")
            await asyncio.sleep(listening.position.pause())
            try:
                async with self._endpoint.listen(listening.position.last_id) as response:
                    if not is_stream(response):
                        raise await self._endpoint.refusal(response)
                    failures = 0
                    reason = await listening.hear(response)
            except SessionLost as problem:
                self._lost()
                # Not a SessionLost any more: the server has had this request.
                raise UpstreamUnavailable(f"it forgot the session during the call: {problem}") from None
            except UpstreamUnavailable as problem:
                failures += 1
                if failures == ATTEMPTS or type(problem) is not UpstreamUnavailable:
                    raise

    # ---- the standing stream

    def _is_no_use(self, response: "Response", *, offered: bool) -> bool:
        """ "The server MUST either return `Content-Type: text/event-stream` [...] or else return HTTP 405".

        Some say 404 or something else of that kind, which means the same as long as no stream was offered.
        """
        if not offered:
            return response.status < 500 and response.status != 429
        if response.status == 404 and self._endpoint.session is not None:
            self._lost()
            return True
        return False


def _opened(line: bytes) -> _Reply | None:
    try:
        return _read_reply(line)
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _answers(body: bytes, id: bytes) -> bool:
    reply = _opened(body)
    return reply is not None and bytes(reply.id) == id
