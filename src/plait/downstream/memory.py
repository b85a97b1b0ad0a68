"""A client in this process: the two halves of MCP, handed to each other without a pipe."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from plait.downstream.connection import Connection, Writer
from plait.downstream.extras import needing
from plait.errors import LocalProtocolError
from plait.upstream.base import Immediate, Receiver

if TYPE_CHECKING:
    from plait.downstream.sdk import Incoming, Outgoing


class MemoryTransport(Immediate):
    """Carries the messages of one client to a connection of ours, and back.

    The client is an McpClient, which opens it, or the official SDK's `mcp.Client`, which enters it.
    """

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
        self._connection.ended = lambda: self.abort("closed")

    async def __aenter__(self) -> "tuple[Incoming, Outgoing]":
        """As `mcp.Client` wants a transport: the stream it reads from, and the one it writes to."""
        with needing("mcp"):
            from plait.downstream.sdk import Incoming, Outgoing  # noqa: PLC0415  only its clients have it
        if self._connection is not None:
            raise LocalProtocolError("a transport is for one client; ask for another one")
        incoming = Incoming()
        self._connection = self._connect(incoming)
        self._connection.ended = incoming.close
        return incoming, Outgoing(self._connection.receive)

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def write(self, message: bytes) -> None:
        if self._connection is not None:
            self._connection.receive(message)

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._disconnect(connection)


class _Back:
    """The way from the connection to the client: at the next turn of the loop, never in between."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()

    def write(self, message: bytes, within: bytes | None = None) -> None:
        self._loop.call_soon(self._receiver.received, message)

    def backlog(self) -> int:
        return 0
