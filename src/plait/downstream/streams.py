"""A client on any pair of asynchronous streams: a socket, a pair of pipes, a buffer in memory."""

from typing import Protocol

from plait.downstream.connection import Connection
from plait.wire.framing import LineFramer, Oversized, as_line

CHUNK = 64 * 1024


class Reader(Protocol):
    """As asyncio.StreamReader."""

    async def read(self, size: int, /) -> bytes:
        """The next bytes, or none at the end."""


class Writer(Protocol):
    """As asyncio.StreamWriter."""

    def write(self, data: bytes, /) -> object: ...
    async def drain(self) -> object: ...


class StreamClient:
    """Reads until the end of input; every request that was read is answered."""

    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer

    def write(self, message: bytes, within: bytes | None = None) -> None:
        self._writer.write(as_line(message))

    def backlog(self) -> int:
        """Not to be seen from here: `drain` makes us wait instead."""
        return 0

    async def serve(self, connection: Connection) -> None:
        framer = LineFramer(connection.limit)
        while chunk := await self._reader.read(CHUNK):
            self._feed(framer, chunk, connection)
            await self._writer.drain()
        self._feed(framer, b"\n", connection)

    def _feed(self, framer: LineFramer, chunk: bytes, connection: Connection) -> None:
        for line in framer.feed(chunk):
            if isinstance(line, Oversized):
                connection.oversized(line.head)
            else:
                connection.receive(line)
