"""A client in this process: the two halves of MCP, handed to each other without a pipe."""

import asyncio
from collections.abc import Awaitable, Callable

from plait.downstream.connection import Connection, Writer
from plait.upstream.base import Immediate, Receiver


class MemoryTransport(Immediate):
    """Carries the messages of an McpClient to a connection of ours, and back."""

    def __init__(
        self,
        connect: Callable[[Writer], Connection],
        disconnect: Callable[[Connection], Awaitable[None]],
    ) -> None:
        self._connect = connect
        self._disconnect = disconnect
        self._connection: Connection | None = None

    async def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._connection = self._connect(_Back(receiver))

    def write(self, message: bytes) -> None:
        if self._connection is not None:
            self._connection.receive(message)

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._disconnect(connection)
            self.abort("closed")


class _Back:
    """The way from the connection to the client: at the next turn of the loop, never in between."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()

    def write(self, message: bytes) -> None:
        self._loop.call_soon(self._receiver.received, message)

    def backlog(self) -> int:
        return 0
