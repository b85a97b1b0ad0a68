"""One client over HTTP: a connection whose messages go out on many streams, each on the right one."""

from collections.abc import Callable, Sequence

from plait.downstream.connection import Connection
from plait.downstream.events import EventStream, read_event_id
from plait.pipeline.grants import Identity
from plait.wire.envelope import error_body, failure
from plait.wire.spec import INTERNAL_ERROR

CANCELLED = -32800
"""What the Python SDK answers such a request with: no code of JSON-RPC or MCP means anything here."""
MOST_STREAMS = 64
"""Streams of one session that are over and kept for those who ask again."""


class HttpSession:
    """What a client writes over HTTP comes in by many requests, and is one conversation.

    It is the Writer of its connection. What belongs to a request goes on that request's stream, the rest
    on the standing one, where it waits until the client opens it.
    """

    connection: Connection

    def __init__(self, id: str, identity: Identity, door: str, share: Callable[[], int]) -> None:
        self.id = id
        self.identity = identity
        self.door = door
        """The path that it was opened at; at another one it does not exist."""
        self.used = 0.0
        """When a request of it came last, on the loop's clock."""
        self.standing = EventStream(0)
        self._share = share
        self._streams = {0: self.standing}
        self._answering: dict[bytes, EventStream] = {}
        self._number = 0

    def __repr__(self) -> str:
        return f"<HttpSession of {self.identity} at {self.door}>"

    @property
    def busy(self) -> bool:
        """Is somebody reading, or something running?"""
        return bool(self._answering) or any(stream.reader for stream in self._streams.values())

    @property
    def running(self) -> int:
        return len(self._answering)

    # ---- the connection's way out

    def write(self, message: bytes, within: bytes | None = None) -> None:
        stream = self.standing if within is None else self._answering.get(within, self.standing)
        stream.put(message)
        if within is not None and stream.ids and not self.connection.session.is_open(within):
            self._finish(stream)  # what is said within a request that is not open any more is its answer
        self._retain()

    def backlog(self) -> int:
        return sum(stream.unread for stream in self._streams.values() if stream.reader is not None)

    # ---- streams

    def begin(self, ids: Sequence[bytes]) -> EventStream:
        """The stream of requests that have just been started."""
        self._number += 1
        stream = EventStream(self._number, tuple(ids))
        self._answering.update(dict.fromkeys(ids, stream))
        return stream

    def publish(self, stream: EventStream) -> None:
        """Its events have ids that a client sees: from now on it can be asked for again."""
        self._streams[stream.number] = stream

    def resumed(self, event: str) -> tuple[EventStream, int] | None:
        """The stream, and where in it a client goes on that saw this event last."""
        numbers = read_event_id(event)
        stream = self._streams.get(numbers[0]) if numbers is not None else None
        return None if numbers is None or stream is None else (stream, numbers[1])

    def end_cancelled(self) -> None:
        """A request that was cancelled has no answer, but the HTTP request that brought it must end."""
        is_open = self.connection.session.is_open
        for stream in set(self._answering.values()):
            if not any(is_open(id) for id in stream.ids):
                stream.put(_failures(stream, CANCELLED, "Request cancelled"))
                self._finish(stream)

    def close(self, reason: str) -> None:
        """Every stream ends, and whoever still waits for an answer is told why there is none."""
        for stream in set(self._answering.values()):
            stream.put(_failures(stream, INTERNAL_ERROR, reason))
            self._finish(stream)
        for stream in self._streams.values():
            stream.end()

    def _finish(self, stream: EventStream) -> None:
        stream.end()
        for id in stream.ids:
            self._answering.pop(id, None)

    def _retain(self) -> None:
        """Keep no more than this session's share: what was delivered long ago goes first."""
        excess = sum(stream.held for stream in self._streams.values()) - self._share()
        if excess <= 0 and len(self._streams) <= MOST_STREAMS:
            return
        for stream in tuple(self._streams.values()):
            excess -= stream.forget(excess)
            over = stream.ended and stream.reader is None and stream is not self.standing
            if over and (not stream.events or len(self._streams) > MOST_STREAMS):
                del self._streams[stream.number]


def _failures(stream: EventStream, code: int, message: str) -> bytes:
    failures = [failure(id, error_body(code, message)) for id in stream.ids]
    return failures[0] if len(failures) == 1 else b"[%b]" % b",".join(failures)
