"""A stream of events from a server: handed on as it comes, and found again where it broke off."""

import asyncio
import random
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from plait.outbound.faults import OutboundError
from plait.upstream.base import Receiver
from plait.upstream.bodies import content_type
from plait.upstream.events import Event, EventReader

if TYPE_CHECKING:
    from plait.outbound.response import Response

Deliver = Callable[[bytes, bytes | None], None]
"""Takes a message, and the id of our request on whose stream it came."""
Notice = Callable[[bytes, bytes], None]
"""Takes an event that is no message: its kind, and its data."""

ENDLESS = 16
"""An event of this many times the limit has no end: the stream is left."""
GRACE = 0.5
"""Seconds that a server may take to end a stream after its reply: the connection can be used again."""
FIRST_DELAY = 1.0
"""Seconds before a stream is opened again, where the server names no other time."""
LONGEST_DELAY = 30.0
LASTING = 5.0
"""Seconds after which a stream that ends has not failed, even if nothing was said on it."""


def is_stream(response: "Response") -> bool:
    return response.status == 200 and content_type(response) == "text/event-stream"


class Position:
    """How far a stream has been heard, over all the connections that it was heard on."""

    def __init__(self) -> None:
        self.last_id = ""
        self._retry: float | None = None
        self._vain = 0
        """How often in a row it was opened for nothing."""

    def heard(self, reader: EventReader) -> None:
        self.last_id = reader.last_id or self.last_id
        self._retry = reader.retry if reader.retry is not None else self._retry

    def used(self) -> None:
        """The stream was worth opening."""
        self._vain = 0

    def pause(self) -> float:
        """Seconds to wait before it is opened again: as the server says, and longer each time in vain.

        "the client MUST respect the `retry` field, waiting the given number of milliseconds" (2025-11-25).
        """
        asked = FIRST_DELAY if self._retry is None else self._retry
        patience = min(LONGEST_DELAY, FIRST_DELAY * 2.0**self._vain) if self._vain else 0.0
        self._vain = min(self._vain + 1, 10)
        return max(asked, random.uniform(patience / 2, patience))


class Listening:
    """Hands on what comes on one stream, which may be that of a request of ours."""

    def __init__(
        self,
        receiver: Receiver,
        limit: int,
        within: bytes | None = None,
        deliver: Deliver | None = None,
        noticed: Notice | None = None,
    ) -> None:
        self._receiver = receiver
        self._deliver = deliver or receiver.received
        self._noticed = noticed
        self._limit = limit
        self._within = within
        self.position = Position()

    async def hear(self, response: "Response") -> str:
        """Until the stream is over; why it is. A stream that broke off is over like any other."""
        reader = EventReader(self._limit)
        try:
            async with asyncio.timeout(None) as patience, aclosing(response.pieces()) as pieces:
                async for piece in pieces:
                    self._take(reader, piece)
                    if reader.skipped > ENDLESS * self._limit:
                        return "it sent an event without end"
                    if patience.when() is None and self._is_answered():
                        patience.reschedule(asyncio.get_running_loop().time() + GRACE)
        except OutboundError as problem:
            return str(problem)
        except TimeoutError:
            pass  # it has answered, and that was all
        return "it ended the stream"

    def _take(self, reader: EventReader, piece: bytes) -> None:
        events = reader.feed(piece)
        self.position.heard(reader)
        for event in events:
            self.position.used()
            if not isinstance(event, Event):
                self._receiver.oversized(event.head, self._limit)
            elif event.kind == b"message" and event.data:
                # An event without data only brings its id: with it a stream can be found again.
                self._deliver(event.data, self._within)
            elif self._noticed is not None:
                self._noticed(event.kind, event.data)

    def _is_answered(self) -> bool:
        return self._within is not None and not self._receiver.awaits(self._within)
