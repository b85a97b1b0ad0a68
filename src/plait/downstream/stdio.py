"""A client on our stdin and stdout, or on any other pair of descriptors."""

import asyncio
import os
import socket
import stat
from collections.abc import Callable
from typing import cast

from plait.downstream.connection import Connection
from plait.outbox import Outbox
from plait.wire.framing import LineFramer, Oversized, as_line

CHUNK = 64 * 1024
HIGH_WATER = 1024 * 1024


class StdioClient:
    """The two descriptors of one client; they are ours from here on, and closed with it.

    The output is protocol only: whoever serves it must not print.
    """

    def __init__(self, input_fd: int, output_fd: int) -> None:
        self._input_fd = input_fd
        self._output_fd = output_fd
        self._output: asyncio.WriteTransport | None = None
        self._outbox: Outbox | None = None
        self._alone: Callable[[], bool] = lambda: True
        self._reader: asyncio.ReadTransport | None = None
        self._both: _Both | None = None
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = loop.create_future()
        """The client has said all it will say: end of our input."""
        self.gone: asyncio.Future[None] = loop.create_future()
        """The client does not listen any more: our output is closed."""

    async def open_output(self) -> None:
        """asyncio's pipes refuse regular files, and epoll some devices: those are written to directly."""
        if _one_socket(self._input_fd, self._output_fd):
            await self._open_socket()
            return
        if not _waitable(self._output_fd):
            return
        loop = asyncio.get_running_loop()
        file = os.fdopen(self._output_fd, "wb", 0)
        output, _ = await loop.connect_write_pipe(lambda: _Output(self), file)
        self._use(output)

    def _use(self, output: asyncio.WriteTransport) -> None:
        output.set_write_buffer_limits(high=HIGH_WATER)
        self._output, self._outbox = output, Outbox(output, lambda: self._alone())

    async def _open_socket(self) -> None:
        """Both descriptors are one socket, as inetd and socat have it: one transport for both ways."""
        os.close(self._input_fd)
        loop = asyncio.get_running_loop()
        both = socket.socket(fileno=self._output_fd)
        self._reader, self._both = await loop.create_connection(lambda: _Both(self), sock=both)
        self._reader.pause_reading()
        self._use(self._reader)

    async def serve(self, connection: Connection) -> None:
        """Read until the end of input."""
        listener = _Input(self, connection)
        self._alone = connection.alone
        if self._both is not None and self._reader is not None:
            self._both.attach(listener)
            self._reader.resume_reading()
            await asyncio.wait((self.ended, self.gone), return_when=asyncio.FIRST_COMPLETED)
            return
        if not _waitable(self._input_fd):
            await self._read_file(listener)
            return
        file = os.fdopen(self._input_fd, "rb", 0)
        self._reader, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: listener, file)
        await asyncio.wait((self.ended, self.gone), return_when=asyncio.FIRST_COMPLETED)

    async def _read_file(self, listener: "_Input") -> None:
        loop = asyncio.get_running_loop()
        while chunk := await loop.run_in_executor(None, os.read, self._input_fd, CHUNK):
            listener.data_received(chunk)
        listener.connection_lost(None)

    # ---- writing

    def write(self, message: bytes, within: bytes | None = None) -> None:
        line = as_line(message)
        if self._outbox is None:
            _write_all(self._output_fd, line)
        else:
            self._outbox.write(line)

    def backlog(self) -> int:
        return 0 if self._outbox is None else self._outbox.backlog()

    def pause(self) -> None:
        """The client does not read: do not read from it either."""
        if self._reader is not None and not self._reader.is_closing():
            self._reader.pause_reading()

    def resume(self) -> None:
        if self._reader is not None and not self._reader.is_closing():
            self._reader.resume_reading()

    async def aclose(self, seconds: float = 2.0) -> None:
        """Flush what the client still takes, and close."""
        if self._reader is not None:
            self._reader.close()
        else:
            os.close(self._input_fd)
        if self._output is None or self._outbox is None:
            os.close(self._output_fd)
            return
        self._outbox.flush()
        self._output.close()
        await asyncio.wait((self.gone,), timeout=seconds)
        if not self.gone.done():
            self._output.abort()


class _Input(asyncio.Protocol):
    def __init__(self, client: StdioClient, connection: Connection) -> None:
        self._client = client
        self._connection = connection
        self._framer = LineFramer(connection.limit)

    def data_received(self, data: bytes) -> None:
        for line in self._framer.feed(data):
            if type(line) is Oversized:
                self._connection.oversized(line.head)
            else:
                self._connection.receive(cast(bytes, line))

    def connection_lost(self, exc: Exception | None) -> None:
        # A last line without its newline is a message all the same: `printf` forgets it often.
        self.data_received(b"\n")
        if not self._client.ended.done():
            self._client.ended.set_result(None)


class _Output(asyncio.Protocol):
    def __init__(self, client: StdioClient) -> None:
        self._client = client

    def pause_writing(self) -> None:
        self._client.pause()

    def resume_writing(self) -> None:
        self._client.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._client.gone.done():
            self._client.gone.set_result(None)


class _Both(_Output):
    """One socket for both ways. The end of input leaves the output open: answers are still to come."""

    def __init__(self, client: StdioClient) -> None:
        super().__init__(client)
        self._listener: _Input | None = None
        self._early = b""
        self._ended = False

    def attach(self, listener: _Input) -> None:
        """What came before anybody listened is not lost."""
        self._listener = listener
        listener.data_received(self._early)
        if self._ended:
            listener.connection_lost(None)

    def data_received(self, data: bytes) -> None:
        if self._listener is not None:
            self._listener.data_received(data)
        else:
            self._early += data

    def eof_received(self) -> bool:
        self._ended = True
        if self._listener is not None:
            self._listener.connection_lost(None)
        return True


def _one_socket(one: int, other: int) -> bool:
    first, second = os.fstat(one), os.fstat(other)
    return stat.S_ISSOCK(first.st_mode) and (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)


def _waitable(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or (stat.S_ISCHR(mode) and os.isatty(fd))


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
