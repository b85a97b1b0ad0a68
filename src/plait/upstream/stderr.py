"""What a server last said on its stderr, bounded."""

from collections import deque

from plait.wire.text import printable

KEPT = 64 * 1024
LONGEST = 1000
PIECE = 4096
"""Smaller pieces are put together: a server that writes byte by byte must not cost more than its bytes."""


class StderrLog:
    """Keeps the newest lines, at most 64 KiB of them, safe to print.

    They are made when somebody looks. Until then bytes are held, and dropped, as they came: a server
    that floods its stderr would otherwise take the time of all the others.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._pieces: deque[bytes] = deque([b""])
        self._size = 0
        self._gone = 0
        self._torn = False

    def feed(self, data: bytes) -> None:
        if len(self._pieces[-1]) < PIECE:
            self._pieces[-1] += data
        else:
            self._pieces.append(data)
        self._size += len(data)
        # Twice as much as is shown, since blank and overlong lines are not shown in full.
        while self._size > 2 * self._kept:
            self._drop(self._size - 2 * self._kept)

    def _drop(self, excess: int) -> None:
        oldest = self._pieces.popleft()
        lost, rest = (oldest[:excess], oldest[excess:]) if len(oldest) > excess else (oldest, b"")
        self._gone += lost.count(b"\n")
        self._torn = not lost.endswith(b"\n")
        self._size -= len(lost)
        if rest or not self._pieces:
            self._pieces.appendleft(rest)

    def _read(self) -> tuple[list[str], int]:
        """The lines to show, newest last, and how many of those at hand are too many."""
        *whole, tail = b"".join(self._pieces).split(b"\n")
        torn = self._torn and bool(whole)
        texts = [text for line in whole[torn:] if (text := _shown(line[:LONGEST]))]
        size, first = 0, len(texts)
        while first and size + len(texts[first - 1]) <= self._kept:
            first -= 1
            size += len(texts[first])
        unfinished = _shown(tail[-LONGEST:])
        return [*texts[first:], unfinished] if unfinished else texts[first:], first + torn

    @property
    def lines(self) -> list[str]:
        return self._read()[0]

    @property
    def dropped(self) -> int:
        """How many lines were said that are no longer kept."""
        return self._gone + self._read()[1]

    @property
    def last(self) -> str:
        """The last thing it said, short enough for an error message."""
        lines = self.lines
        return lines[-1][:200] if lines else ""


def _shown(line: bytes) -> str:
    return printable(line.decode(errors="replace").rstrip())
