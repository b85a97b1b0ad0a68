"""Where one message ends and the next begins: one line is one message, and it has a limit."""

from msgspec import Struct

KEPT = 512
"""How much of an oversized line's beginning is kept: its id is usually there."""

_BLANKS = bytes.maketrans(b"\r\n", b"  ")


class Oversized(Struct, gc=False):
    """A line passed the limit. What follows of it is thrown away, up to its newline."""

    head: bytes


class LineFramer:
    """Collects chunks and hands back whole lines, in time linear in what was fed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self.skipped = 0
        """How much of the oversized line under way has been thrown away; 0 if none is."""

    @property
    def partial(self) -> bool:
        """Has the peer begun a line that it has not ended?"""
        return bool(self._size or self.skipped)

    def feed(self, chunk: bytes) -> list[bytes | Oversized]:
        """The lines this chunk completed, and at most one line that it made too long.

        Blank lines are not messages (S0-23).
        """
        if not self._parts and not self.skipped and chunk.endswith(b"\n") and len(chunk) <= self._limit:
            return [line for line in chunk.split(b"\n") if line and not line.isspace()]
        return self._collect(chunk)

    def _collect(self, chunk: bytes) -> list[bytes | Oversized]:
        lines: list[bytes | Oversized] = []
        first, *rest = chunk.split(b"\n")
        self._add(first, lines)
        for piece in rest:
            self._end(lines)
            self._add(piece, lines)
        return lines

    def _add(self, piece: bytes, lines: list[bytes | Oversized]) -> None:
        if self.skipped:
            self.skipped += len(piece)
            return
        if not piece:
            return
        self._parts.append(piece)
        self._size += len(piece)
        if self._size > self._limit:
            # Not the whole line once more, only for its beginning; no part is empty, so these will do.
            lines.append(Oversized(b"".join(part[:KEPT] for part in self._parts[:KEPT])[:KEPT]))
            self.skipped = self._size
            self._clear()

    def _end(self, lines: list[bytes | Oversized]) -> None:
        line = b"".join(self._parts)
        self.skipped = 0
        self._clear()
        if line and not line.isspace():
            lines.append(line)

    def _clear(self) -> None:
        self._parts.clear()
        self._size = 0


def as_line(message: bytes) -> bytes:
    """The message as it goes on a pipe.

    "Messages are delimited by newlines, and MUST NOT contain embedded newlines" (transports, stdio).
    Pretty-printed payloads have some; in JSON they can only be white space between tokens.
    """
    if b"\n" in message or b"\r" in message:
        message = message.translate(_BLANKS)
    return message + b"\n"
