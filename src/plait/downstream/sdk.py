"""The official SDK's client in this process: the two streams it talks through, with no task in between.

Imported only when such a client comes, since the SDK is imported here.
"""

import asyncio
from collections.abc import Callable
from typing import Self

from anyio import EndOfStream
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter


class Incoming:
    """What the client reads; what our connection writes."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[bytes | None] = asyncio.Queue()
        """None is the end."""
        self._size = 0

    def write(self, message: bytes, within: bytes | None = None) -> None:
        self._size += len(message)
        self._messages.put_nowait(message)

    def backlog(self) -> int:
        return self._size

    async def receive(self) -> SessionMessage | Exception:
        """The next message; an exception where it is one that the SDK cannot read, as its streams have it."""
        message = await self._messages.get()
        if message is None:
            raise EndOfStream
        self._size -= len(message)
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(message, by_name=False))
        except ValueError as problem:
            return problem

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    def close(self) -> None:
        """There is nothing more to read."""
        self._messages.put_nowait(None)

    async def aclose(self) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


class Outgoing:
    """What the client writes; our connection takes it at once."""

    def __init__(self, receive: Callable[[bytes], object]) -> None:
        self._receive = receive

    async def send(self, item: SessionMessage, /) -> None:
        self._receive(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    async def aclose(self) -> None:
        """Whoever made the transport closes the connection."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None: ...
