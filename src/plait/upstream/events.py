"""Read an event stream (`text/event-stream`): from chunks, cut anywhere, to whole events.

The rules are those of the WHATWG's HTML standard, "Server-sent events": lines end in CR, LF or CRLF, an
event ends at a blank line, and what a stream does not finish never happened.
"""

from msgspec import Struct

from plait.wire.envelope import BOM
from plait.wire.framing import KEPT, Oversized

_LONGEST_ID = 4096
_LONGEST_RETRY = 9
"""Digits: more than eleven days are no wait, but a mistake."""


class Event(Struct, gc=False):
    """One event that came whole."""

    kind: bytes
    data: bytes


class EventReader:
    """Feed it chunks; it hands back events, in time linear in what was fed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line = bytearray()
        """What has come of a line whose end has not."""
        self._data: list[bytes] = []
        self._size = 0
        self._kind = b""
        self._id = ""
        self._after_cr = False
        self._first = True
        self.last_id = ""
        """The id of the last event that came whole, or of an earlier one if it had none."""
        self.retry: float | None = None
        """Seconds that the server wants us to wait before we connect again."""
        self.skipped = 0
        """How much of the oversized event under way has been thrown away; 0 if none is."""

    def feed(self, chunk: bytes) -> list[Event | Oversized]:
        """The events this chunk completed, and those that it made too long."""
        found: list[Event | Oversized] = []
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        for line in chunk.splitlines(keepends=True):
            if line[-1] in b"\r\n":
                self._end_line(line.rstrip(b"\r\n"), found)
            else:
                self._begin_line(line, found)
        self._after_cr = self._after_cr or chunk.endswith(b"\r")
        return found

    def _begin_line(self, start: bytes, found: list[Event | Oversized]) -> None:
        if self.skipped:
            self.skipped += len(start)
            self._line[:] = b"-"  # all that matters of it: the line is not blank
            return
        self._line += start
        if self._size + len(self._line) > self._limit:
            self._skip(bytes(self._line), found)
            self._line[:] = b"-"

    def _end_line(self, rest: bytes, found: list[Event | Oversized]) -> None:
        line = bytes(self._line) + rest if self._line else rest
        self._line.clear()
        size = len(line)
        if self._first:
            self._first = False
            line = line.removeprefix(BOM)
        if not line:
            self._end_event(found)
        elif self.skipped:
            self.skipped += size
        elif self._size + size > self._limit:
            self._skip(line, found)
        else:
            self._read_field(line)

    def _read_field(self, line: bytes) -> None:
        """A line that starts with a colon is a comment: its field has no name."""
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
                self._size += len(value) + 1
            case b"event":
                self._kind = value
            case b"id":
                self._read_id(value)
            case b"retry":
                if value.isdigit() and len(value) <= _LONGEST_RETRY:
                    self.retry = int(value) / 1000

    def _read_id(self, value: bytes) -> None:
        """An id goes back in a header: one that no header can hold is as good as none."""
        text = value.decode(errors="replace")
        if len(value) <= _LONGEST_ID and text.isprintable():
            self._id = text

    def _end_event(self, found: list[Event | Oversized]) -> None:
        if self._data:
            found.append(Event(self._kind or b"message", b"\n".join(self._data)))
        self.last_id = self._id
        self.skipped = 0
        self._forget()

    def _skip(self, line: bytes, found: list[Event | Oversized]) -> None:
        """This line makes the event too long, whether its end has come or not."""
        head = self._data[0] if self._data else line.removeprefix(b"data:")
        found.append(Oversized(head[:KEPT]))
        self.skipped = self._size + len(line)
        self._forget()

    def _forget(self) -> None:
        self._data.clear()
        self._size = 0
        self._kind = b""
