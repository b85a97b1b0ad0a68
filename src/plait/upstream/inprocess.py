"""A server object of somebody's package, run in this process: FastMCP's, or the official SDK's.

Both speak in streams of parsed messages. Here ours are parsed for them and theirs written out for us;
their libraries are imported only now, by whoever has made such an object already.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from plait.config.model import ServerSettings
from plait.errors import UpstreamUnavailable
from plait.tasks import ended, to_the_end
from plait.upstream.base import Immediate, Link, Receiver
from plait.upstream.client import Listener, McpClient
from plait.upstream.greeting import greet
from plait.upstream.lifespan import PATIENCE, SharedLifespan
from plait.upstream.opening import Behalf

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

_log = logging.getLogger("plait")


@runtime_checkable
class _HasLifespan(Protocol):
    def _lifespan_manager(self) -> contextlib.AbstractAsyncContextManager[object]: ...


def lowlevel_of(server: object) -> "Server[object] | None":
    """The SDK's low-level server inside a FastMCP or MCPServer object, or the object itself if it is one."""
    try:
        from mcp.server.lowlevel import Server  # noqa: PLC0415  an extra: only who has such a server has it
    except ImportError:
        return None
    for candidate in (server, *(getattr(server, name, None) for name in ("_mcp_server", "_lowlevel_server"))):
        if isinstance(candidate, Server):
            return candidate
    return None


class InProcessTransport(Immediate):
    """Carries messages to a server object and back, within its lifespan."""

    def __init__(self, server: object, lifespan: SharedLifespan | None = None) -> None:
        self._server = server
        self._lifespan = lifespan
        self._outgoing: asyncio.Queue[bytes] = asyncio.Queue()
        self._life: asyncio.Task[None] | None = None
        self._closing = False

    async def open(self, receiver: Receiver) -> None:
        if lowlevel_of(self._server) is None:
            raise UpstreamUnavailable(f"{type(self._server).__name__} is no MCP server object")
        self._receiver = receiver
        self._life = asyncio.get_running_loop().create_task(self._live(receiver))

    async def _live(self, receiver: Receiver) -> None:
        reason = "it ended"
        try:
            async with contextlib.nullcontext() if self._lifespan is None else self._lifespan.used():
                await self._run(receiver)
        except asyncio.CancelledError:
            reason = "closed"
            raise
        except Exception as problem:
            reason = f"it failed: {type(problem).__name__}: {problem}"
        finally:
            receiver.closed(reason)

    async def _run(self, receiver: Receiver) -> None:
        from mcp.shared.memory import create_client_server_memory_streams  # noqa: PLC0415

        lowlevel = lowlevel_of(self._server)
        assert lowlevel is not None
        async with create_client_server_memory_streams() as (ours, theirs), asyncio.TaskGroup() as group:
            sending = group.create_task(self._send(ours[1]))
            hearing = group.create_task(self._hear(ours[0], receiver))
            await lowlevel.run(theirs[0], theirs[1], lowlevel.create_initialization_options())
            sending.cancel()
            hearing.cancel()

    async def _send(self, stream: object) -> None:
        from mcp.shared.message import SessionMessage  # noqa: PLC0415
        from mcp.types import jsonrpc_message_adapter  # noqa: PLC0415

        send = stream.send  # type: ignore[attr-defined]  # one of the SDK's stream protocols
        while True:
            message = await self._outgoing.get()
            await send(SessionMessage(jsonrpc_message_adapter.validate_json(message, by_name=False)))

    async def _hear(self, stream: object, receiver: Receiver) -> None:
        async for heard in stream:  # type: ignore[attr-defined]
            receiver.received(heard.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    def write(self, message: bytes) -> None:
        self._outgoing.put_nowait(message)

    async def aclose(self) -> None:
        """Its cleaning up is waited for, also by somebody who is being cancelled, but not for ever."""
        life = self._life
        if life is None:
            return
        if not self._closing:
            self._closing = True  # once: a second cancellation would tear its cleaning up
            self.abort("closed")
            life.cancel()
        try:
            await to_the_end(ended(life, PATIENCE, f"the cleaning up of {type(self._server).__name__}"))
        except TimeoutError as problem:
            _log.warning("%s; it is left behind", problem)


class InProcessOpener:
    """Greets the server when the client is known, as any other."""

    instructions = ""

    def __init__(self, server: object, name: str, settings: ServerSettings) -> None:
        self._server = server
        self._name = name
        self._settings = settings
        # FastMCP keeps its lifespan apart from its low-level server; the SDK's own runs it itself.
        has_one = server if isinstance(server, _HasLifespan) else None
        self._lifespan = None if has_one is None else SharedLifespan(has_one._lifespan_manager)

    async def open(self, listener: Listener, behalf: Awaitable[Behalf]) -> Link:
        known = await behalf
        transport = InProcessTransport(self._server, self._lifespan)
        client = McpClient(transport, name=self._name, timeout=self._settings.timeout, listener=listener)
        await transport.open(client)
        try:
            return await greet(
                client,
                known.capabilities,
                known.revision,
                era=self._settings.era,
                timeout=self._settings.start_timeout,
            )
        except BaseException:
            await transport.aclose()
            raise
