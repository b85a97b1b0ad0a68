"""What a command writes, read while it runs: the start and the end are kept, the rest is counted."""

import asyncio
from collections.abc import Callable


class Captured(asyncio.Protocol):
    """One output stream. It is always read to its end, so that no command waits for us."""

    def __init__(self, keep: int, flood: int, on_flood: Callable[[], None]) -> None:
        self._half = keep // 2
        self._flood = flood
        self._on_flood = on_flood
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def cut(self) -> int:
        """How many bytes in the middle were dropped."""
        return self._total - len(self._head) - min(len(self._tail), self._half)

    @property
    def text(self) -> str:
        """What was kept, and where something is missing."""
        if not self.cut:
            return (self._head + self._tail).decode(errors="replace")
        head = self._head.decode(errors="ignore")  # a character that the cut went through is gone
        tail = self._tail[-self._half :].decode(errors="ignore")
        return f"{head}\n[… {self.cut} bytes cut …]\n{tail}"

    def data_received(self, data: bytes) -> None:
        self._total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * self._half:  # not at every chunk: each time costs a copy
            del self._tail[: -self._half]
        if self._total > self._flood:
            self._on_flood()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)
