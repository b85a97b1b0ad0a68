"""Event streams: messages in order, each under an id, for whoever reads them now or asks for them again.

A stream is a log. What its reader has not taken yet is its queue; what has been taken is kept for a
while, so that a client whose connection broke can go on after the last event that it saw. The stream of a
request outlives the connection that it began on: "Disconnection MAY occur at any time [...] Therefore,
disconnection SHOULD NOT be interpreted as the client cancelling its request" (2025-11-25, transports).
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator

from msgspec import Struct

from plait.downstream.asgi import EVENTS, Request
from plait.wire.framing import as_line

RETRY = 1000
"""Milliseconds after which a client may come back for more."""
PING = b": ping\n\n"


class Event(Struct, gc=False):
    """One message, and its place in its stream."""

    number: int
    data: bytes


class EventStream:
    """Written to at any time; read by one at a time."""

    def __init__(self, number: int, ids: tuple[bytes, ...] = ()) -> None:
        self.number = number
        """Its own number in its session: part of every event's id."""
        self.ids = ids
        """Of the requests that it answers."""
        self.ended = False
        self.events: deque[Event] = deque()
        self.held = 0
        """Bytes of all events that are here."""
        self.taken = 0
        """The number of the last event that a reader took."""
        self.unread = 0
        """Bytes that wait for a reader."""
        self.reader: object = None
        self._last = 0
        self._waiting: asyncio.Future[bool] | None = None

    # ---- writing

    def put(self, message: bytes) -> None:
        self._last += 1
        self.events.append(Event(self._last, message))
        self.held += len(message)
        self.unread += len(message)
        self.wake()

    def end(self) -> None:
        """Nothing more will come."""
        self.ended = True
        self.wake()

    def wake(self, changed: bool = True) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(changed)

    # ---- reading

    def attach(self, after: int | None = None) -> object:
        """Become its reader; whoever was that is no longer. `after`: the last event that was seen."""
        self.reader = reader = object()
        if after is not None:
            self.taken = min(after, self._last)
            self.unread = sum(len(event.data) for event in self._fresh())
        self.wake()
        return reader

    def detach(self, reader: object) -> None:
        if self.reader is reader:
            self.reader = None

    def take(self) -> list[Event]:
        """What has not been taken yet."""
        fresh = self._fresh()
        self.taken, self.unread = self._last, 0
        return fresh

    def _fresh(self) -> list[Event]:
        count = min(self._last - self.taken, len(self.events))
        return [self.events[place] for place in range(-count, 0)]

    async def changed(self, seconds: float) -> bool:
        """Wait until there is something new to look at; False: there was nothing for so long."""
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        timer = loop.call_later(seconds, self.wake, False)
        try:
            return await self._waiting
        finally:
            timer.cancel()

    # ---- forgetting

    def forget(self, size: int) -> int:
        """Let go of at least so many bytes, the oldest first; how many it were.

        What a reader has still to take is never let go of.
        """
        freed = 0
        while freed < size and self.events and (self.reader is None or self.events[0].number <= self.taken):
            event = self.events.popleft()
            freed += len(event.data)
            if event.number > self.taken:
                self.unread -= len(event.data)
        self.held -= freed
        return freed


class Form(Struct, frozen=True):
    """How a stream is written for one client."""

    ids: bool = True
    first: bytes = b""
    """What is sent before any message."""

    def __call__(self, stream: EventStream, events: list[Event]) -> bytes:
        return b"".join([self._one(stream.number, event) for event in events])

    def _one(self, number: int, event: Event) -> bytes:
        id = b"id: %d-%d\n" % (number, event.number) if self.ids else b""
        return b"event: message\n%bdata: %b\n" % (id, as_line(event.data))


def priming(stream: EventStream) -> bytes:
    """ "The server SHOULD immediately send an SSE event consisting of an event ID and an empty data field
    in order to prime the client to reconnect" (2025-11-25); older clients would take it for a message."""
    return b"id: %d-%d\nretry: %d\ndata: \n\n" % (stream.number, stream.taken, RETRY)


def read_event_id(text: str) -> tuple[int, int] | None:
    """The numbers of the stream and of the event; None: it is none of ours."""
    stream, dash, event = text.partition("-")
    if not dash or not (stream.isdecimal() and event.isdecimal() and len(text) < 40):
        return None
    return int(stream), int(event)


async def pour(
    stream: EventStream, request: Request, form: Form, *, ping: float, after: int | None = None
) -> None:
    """Send what is in the stream and what comes, until it ends, the client leaves or another one reads it."""
    async with departure(request, stream) as gone:
        await pour_until(gone, stream, request, form, ping=ping, after=after)


@contextlib.asynccontextmanager
async def departure(request: Request, stream: EventStream) -> AsyncIterator[asyncio.Task[None]]:
    """Done when the client is gone, which also wakes whoever reads the stream."""
    gone = asyncio.get_running_loop().create_task(request.until_gone())
    gone.add_done_callback(lambda _: stream.wake())
    try:
        yield gone
    finally:
        gone.cancel()
        await asyncio.wait((gone,))


async def pour_until(
    gone: asyncio.Task[None],
    stream: EventStream,
    request: Request,
    form: Form,
    *,
    ping: float,
    after: int | None = None,
) -> None:
    """As `pour`, where somebody already watches whether the client leaves."""
    me = stream.attach(after)
    try:
        await request.begin(200, EVENTS)
        await request.write(form.first)
        while stream.reader is me and not gone.done():
            events = stream.take()
            if events:
                await request.write(form(stream, events))
            elif stream.ended:
                break
            elif not await stream.changed(ping):
                await request.write(PING)
        await request.finish()
    finally:
        stream.detach(me)
