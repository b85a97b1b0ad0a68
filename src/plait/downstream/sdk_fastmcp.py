"""FastMCP's client in this process: each of its connections is a client of ours.

Imported only when such a client comes, since FastMCP is imported here.
"""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Unpack

from fastmcp.client.transports.base import ClientTransport, SessionKwargs, TransportOptions
from mcp import ClientSession

from plait.downstream.memory import MemoryTransport


class CompositorTransport(ClientTransport):
    """May be shared: whoever connects gets a connection of its own."""

    def __init__(self, transport: Callable[[], MemoryTransport]) -> None:
        self._transport = transport

    @contextlib.asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session_kwargs: Unpack[SessionKwargs]
    ) -> AsyncIterator[ClientSession]:
        options = transport_options or TransportOptions()
        async with (
            self._transport() as (incoming, outgoing),
            options.session_class(
                read_stream=incoming, write_stream=outgoing, **session_kwargs
            ) as client_session,
        ):
            yield client_session
