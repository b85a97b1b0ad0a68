"""A server over HTTP: Streamable HTTP of either era, or HTTP+SSE where that is all it speaks.

Which era it is, every message says itself: what has a stamp goes out as the modern revision wants it, the
rest as part of a session.

Each request runs in a task of its own, which ends with its reply, its failure or its cancellation. What
needs no reply goes out one after the other, so that nothing overtakes what was said before it.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from plait.config.masking import mask_url
from plait.errors import SessionLost, UpstreamError
from plait.outbound.client import HttpClient
from plait.outbound.urls import UrlPolicy
from plait.session.negotiation import fields_of
from plait.tasks import TaskSet
from plait.upstream.base import Receiver
from plait.upstream.endpoint import Endpoint
from plait.upstream.sse import EventSource
from plait.upstream.stateless import Stateless
from plait.upstream.streamable import OlderServer, Streamable
from plait.wire.envelope import failure
from plait.wire.spec import MAX_FROM_SERVERS, MODERN_MARK

FORGOTTEN = "the server forgot the session"
TELLING = 30.0
"""Seconds for a message that needs no reply: nobody's deadline looks after it."""
UNTOLD = 1000
"""How many of those may wait for a server that takes none; further ones are dropped."""

_INITIALIZED = "notifications/initialized"
_CANCELLED = "notifications/cancelled"

_MARK = MODERN_MARK.encode()

_log = logging.getLogger("plait")


class _Params(Struct, rename={"request": "requestId", "meta": "_meta"}):
    request: Raw = Raw(b"")
    meta: Raw = Raw(b"")


class _Message(Struct):
    """As much of a message of ours as says how it is sent."""

    id: Raw | UnsetType = UNSET
    method: str = ""
    params: _Params | None = None

    @property
    def stamped(self) -> bool:
        if self.params is None or _MARK not in bytes(self.params.meta):
            return False
        return MODERN_MARK in fields_of(self.params.meta)


class _Asked(NamedTuple):
    """A request of ours on its way."""

    task: asyncio.Task[None]
    stateless: bool


_read = Decoder(_Message).decode


class HttpTransport:
    """Connects with the first message. Closing it ends the session at the server."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        kind: Literal["http", "sse"] = "http",
        limit: int = MAX_FROM_SERVERS,
        policy: UrlPolicy | None = None,
        client: HttpClient | None = None,
    ) -> None:
        # The user chose this server: it may be in this house, and never a cloud's metadata service.
        policy = policy or UrlPolicy(allow_private=True)
        self._own_client = None if client is not None else HttpClient(policy)
        used = client or self._own_client
        assert used is not None
        self._endpoint = Endpoint(used, url, headers or {})
        self._kind = kind
        self._limit = limit
        self._shaken = False
        """Has the server been asked to shake hands?"""
        self.stuck: str | None = None
        self.lagging = False
        """Is `initialized` on its way? What is asked before it has arrived, servers refuse."""
        self._caught_up: asyncio.Future[None] | None = None
        self._receiver: Receiver | None = None
        self._carrier: Streamable | EventSource | None = None
        self._stateless: Stateless | None = None
        """For modern requests, but where the user says that it is a server of 2024."""
        self._tasks = TaskSet()
        self._asking: dict[bytes, _Asked] = {}
        self._untold: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue(UNTOLD)
        self._over = False

    def __repr__(self) -> str:
        return f"<HttpTransport {mask_url(self._endpoint.url)}, {len(self._asking)} in flight>"

    # ---- opening and closing

    async def open(self, receiver: Receiver) -> None:
        """Raises UpstreamError if the server is to be reached over HTTP+SSE, and is not there."""
        self._receiver = receiver
        try:
            if self._kind == "sse":
                self._carrier = await self._open_old(receiver)
            else:
                self._stateless = Stateless(self._endpoint, receiver, self._limit)
                self._carrier = Streamable(self._endpoint, receiver, self._limit, self._forgotten)
        except BaseException:
            await self.aclose()
            raise
        self._tasks.start(self._tell_all())

    async def _open_old(self, receiver: Receiver) -> EventSource:
        source = EventSource(self._endpoint, receiver, self._limit, self.abort)
        try:
            await source.open()
        except BaseException:
            await source.aclose()
            raise
        return source

    async def aclose(self) -> None:
        """Give up what is under way, and end the session. Never for long."""
        self.abort("closed")
        try:
            await self._tasks.aclose()
            if self._carrier is not None:
                await self._carrier.aclose()
        finally:
            if self._own_client is not None:
                await self._own_client.aclose()

    def abort(self, reason: str) -> None:
        self._catch_up()
        if not self._over and self._receiver is not None:
            self._over = True
            self._receiver.closed(reason)

    def _forgotten(self) -> None:
        self._endpoint.session = None
        self.abort(FORGOTTEN)

    # ---- writing

    def write(self, message: bytes) -> None:
        if self._over or self._carrier is None:
            return
        read = _read(message)
        if isinstance(read.id, Raw):
            self._write_with_id(bytes(read.id), read, message)
            return
        cancelled = read.params.request if read.method == _CANCELLED and read.params is not None else None
        if cancelled is not None and self._hang_up(bytes(cancelled)):
            return
        if read.method == _INITIALIZED:
            self.lagging = True
            self._caught_up = asyncio.get_running_loop().create_future()
        if self._untold.full():
            _log.debug("%r takes no notifications; one is dropped", self)
        else:
            self._untold.put_nowait((read.method, message))

    def _write_with_id(self, id: bytes, read: _Message, message: bytes) -> None:
        if not read.method:
            # The answer to a question: no notification need come before it. A modern client has no answers.
            if self._shaken:
                self._tasks.start(self._tell(message))
            return
        if read.method == "initialize":
            self._shaken = True
            for earlier in tuple(self._asking):
                self._hang_up(earlier)  # a probe that was not answered: nobody waits for it any more
        stateless = self._stateless if read.stamped else None
        task = self._tasks.start(self._ask(id, read.method, message, stateless))
        self._asking[id] = _Asked(task, stateless is not None)

    def _hang_up(self, id: bytes) -> bool:
        """Nobody waits for this reply any more: its stream is closed. Is that all there is to say?

        "Closing the response stream" cancels a modern request, and no notification does (2026-07-28).
        """
        asked = self._asking.get(id)
        if asked is not None:
            asked.task.cancel()
        return asked is not None and asked.stateless

    def drained(self) -> asyncio.Future[None]:
        assert self._caught_up is not None, "nobody waits who is not behind"
        return self._caught_up

    def _catch_up(self) -> None:
        self.lagging = False
        if self._caught_up is not None and not self._caught_up.done():
            self._caught_up.set_result(None)

    # ---- what the tasks do

    async def _ask(self, id: bytes, method: str, message: bytes, stateless: Stateless | None) -> None:
        assert self._receiver is not None
        assert self._carrier is not None
        try:
            try:
                await (stateless or self._carrier).ask(id, method, message)
            except OlderServer as older:
                await self._fall_back(older, id, method, message)
        except SessionLost as problem:
            self._receiver.failed(id, problem)
            self._forgotten()
        except UpstreamError as problem:
            self._receiver.failed(id, problem)
        finally:
            self._asking.pop(id, None)

    async def _fall_back(self, older: OlderServer, id: bytes, method: str, message: bytes) -> None:
        """Refused with 400, 404 or 405: "Issue a GET request to the server URL, expecting that this will
        open an SSE stream and return an `endpoint` event as the first event" (2025-11-25).
        """
        assert self._receiver is not None
        try:
            self._carrier = await self._open_old(self._receiver)
        except UpstreamError:
            if older.error is None:
                raise older.refusal from None
            self._receiver.received(failure(id, older.error), id)
            return
        await self._carrier.ask(id, method, message)

    async def _tell_all(self) -> None:
        while True:
            method, message = await self._untold.get()
            await self._tell(message)
            if method == _INITIALIZED and not self._over:
                self._catch_up()
                assert self._carrier is not None
                self._tasks.start(self._carrier.stand())

    async def _tell(self, message: bytes) -> None:
        """Nobody hears of a failure: whoever asks next finds out."""
        assert self._carrier is not None
        try:
            async with asyncio.timeout(TELLING):
                await self._carrier.tell(message)
        except SessionLost:
            self._forgotten()
        except (UpstreamError, TimeoutError) as problem:
            _log.debug("%r missed a message of ours: %s", self, problem)
