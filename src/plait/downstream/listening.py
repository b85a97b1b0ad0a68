"""Sockets for the application: uvicorn's HTTP, and the limits that it does not have.

uvicorn waits for ever for the end of a request's head and for a client that does not read, and takes a head
of any length. Its server waits for event streams when it stops. So only its protocol is used here.
"""

import asyncio
import socket
import time
from asyncio import TimerHandle
from collections.abc import Callable
from email.utils import formatdate
from functools import partial

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from plait.downstream.http import HttpApp
from plait.downstream.http_limits import HttpLimits

BACKLOG = 1024
GRACE = 1.0
"""Seconds for the application to say first that a body takes too long."""


class PatientProtocol(HttpToolsProtocol):
    """One connection, as long as its client keeps to the limits."""

    def __init__(
        self, config: Config, state: ServerState, limits: HttpLimits, lost: Callable[[], None]
    ) -> None:
        super().__init__(config, state, {})
        self._limits = limits
        self._lost = lost
        self._head = 0
        self._second = 0
        self._head_timer: TimerHandle | None = None
        self._stall_timer: TimerHandle | None = None
        self._body_timer: TimerHandle | None = None

    # ---- its life

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            self._turn_away(503, "too many connections; try again later")
            return
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._lost()

    def _cancel(self) -> None:
        for timer in (self._head_timer, self._body_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        if not self.transport.is_closing():
            super().data_received(data)

    # ---- requests that are long, or take long

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = 0
        self._expect_head()

    def on_url(self, url: bytes) -> None:
        self._grow(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._grow(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
        self._tell_the_time(int(time.time()))
        super().on_headers_complete()
        # The application waits no longer for a body that it reads; this is for one that it does not want.
        self._body_timer = self.loop.call_later(self._limits.body_time + GRACE, self._turn_away, 408, "")

    def _tell_the_time(self, second: int) -> None:
        """For all connections; written once a second, since it costs as much as a header's check."""
        if second != self._second:
            self._second = second
            self.server_state.default_headers = [(b"date", _date(second))]

    def on_message_complete(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
        super().on_message_complete()

    def _grow(self, size: int) -> None:
        self._head += size
        if self._head > self._limits.head_bytes:
            raise ValueError("the head is too long")  # the parser stops, and we are asked for a 400

    def send_400_response(self, msg: str) -> None:
        if self._head > self._limits.head_bytes:
            self._turn_away(431, f"the head of a request has at most {self._limits.head_bytes} bytes")
        else:
            self._turn_away(400, msg)

    def _expect_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
        self._head_timer = self.loop.call_later(self._limits.head_time, self._late)

    def _late(self) -> None:
        self._turn_away(408, f"the head of a request was not there within {self._limits.head_time:g} s")

    def _turn_away(self, status: int, words: str) -> None:
        """Say why, unless we are in the middle of saying something else, and close."""
        if self.transport.is_closing():
            return
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        if cycle is not None and not cycle.response_complete:
            if cycle.response_started:
                self.transport.abort()
                return
            cycle.disconnected = True  # what the application says to it from now on, nobody hears
            cycle.message_event.set()
        head = b"content-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(words)
        self.transport.write(STATUS_LINE[status] + head + words.encode())
        self.transport.close()

    # ---- clients that do not read

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall_timer = self.loop.call_later(self._limits.stalled, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stall_timer is not None:
            self._stall_timer.cancel()


def _date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode()


class Listener:
    """Takes connections from one socket, and sees each of them end."""

    def __init__(self, app: HttpApp, limits: HttpLimits) -> None:
        self._limits = limits
        self._state = ServerState()
        self._config = Config(
            app,
            interface="asgi3",
            http=HttpToolsProtocol,
            ws="none",
            lifespan="off",
            log_config=None,  # nobody's headers are ever logged
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=int(limits.keep_alive),
        )
        self._config.load()
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Event()

    @property
    def connections(self) -> int:
        return len(self._state.connections)

    async def open(self, listening: socket.socket) -> None:
        protocol = partial(PatientProtocol, self._config, self._state, self._limits, self._changed.set)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(protocol, sock=listening, backlog=BACKLOG)

    def stop(self) -> None:
        """No new connections; those that do nothing are closed, the others when they are done."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._state.connections):
            connection.shutdown()

    async def aclose(self, seconds: float) -> None:
        """See every connection end, and cut those that take longer than this."""
        self.stop()
        try:
            async with asyncio.timeout(seconds):
                while self._state.connections:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            for connection in tuple(self._state.connections):
                connection.transport.abort()
        tasks = tuple(self._state.tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made
