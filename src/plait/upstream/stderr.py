"""What a server last said on its stderr, bounded."""

from collections import deque

from plait.wire.text import printable

KEPT = 64 * 1024
LONGEST = 1000


class StderrLog:
    """Keeps the newest lines, at most 64 KiB of them, safe to print."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._lines: deque[str] = deque()
        self._size = 0
        self._tail = b""
        self.dropped = 0
        """How many lines were said that are no longer kept."""

    def feed(self, data: bytes) -> None:
        if len(data) > self._kept:
            self.dropped += data.count(b"\n", 0, -self._kept)
            data = data[-self._kept :]
        *lines, tail = (self._tail + data).split(b"\n")
        for line in lines:
            self._add(line)
        self._tail = tail[-LONGEST:]

    def _add(self, line: bytes) -> None:
        text = printable(line[:LONGEST].decode(errors="replace").rstrip())
        if not text:
            return
        self._lines.append(text)
        self._size += len(text)
        while self._size > self._kept:
            self._size -= len(self._lines.popleft())
            self.dropped += 1

    @property
    def lines(self) -> list[str]:
        tail = printable(self._tail.decode(errors="replace").strip())
        return [*self._lines, tail] if tail else list(self._lines)

    @property
    def last(self) -> str:
        """The last thing it said, short enough for an error message."""
        lines = self.lines
        return lines[-1][:200] if lines else ""
