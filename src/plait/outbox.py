"""What is written in one turn of the loop leaves in one piece.

A transport writes to its pipe at once, message by message, and each write wakes the reader on the
other side for one message. Joined, a burst of calls costs one system call here and one wake-up there.
"""

import asyncio
from collections.abc import Callable


class Outbox:
    """Lines on their way to one transport.

    `alone` says whether no other message can be expected in this turn: then waiting for company would
    only be a wait.
    """

    def __init__(self, transport: asyncio.WriteTransport, alone: Callable[[], bool]) -> None:
        self._transport = transport
        self._alone = alone
        self._loop = asyncio.get_running_loop()
        self._lines: list[bytes] = []
        self._size = 0

    def write(self, line: bytes) -> None:
        if not self._lines:
            if self._alone():
                if not self._transport.is_closing():
                    self._transport.write(line)
                return
            self._loop.call_soon(self.flush)
        self._lines.append(line)
        self._size += len(line)

    def flush(self) -> None:
        lines, self._lines, self._size = self._lines, [], 0
        if lines and not self._transport.is_closing():
            self._transport.write(lines[0] if len(lines) == 1 else b"".join(lines))

    def backlog(self) -> int:
        """Bytes that the reader has not taken yet."""
        return self._size + self._transport.get_write_buffer_size()
