"""The seams of the server side: what can be asked of a server, and what carries the bytes."""

import asyncio
from typing import Protocol

from plait.errors import UpstreamError
from plait.session.exchange import Exchange, Reply
from plait.wire.envelope import Fields


class Server(Protocol):
    """Whatever answers requests."""

    async def request(self, method: str, params: Fields | None, exchange: Exchange | None = None) -> Reply:
        """Ask the server. `exchange` is the client's request this belongs to, if it does to one.

        Raises UpstreamError where there is no reply of the server's.
        """


class Upstream(Server, Protocol):
    """A server behind us, however we reach it."""

    def supports(self, capability: str, detail: str | None = None) -> bool:
        """Has the server declared this, and this detail of it?"""

    def notify(self, method: str, params: Fields | None = None) -> None:
        """Tell the server something. Nobody waits; a server that is not there misses it."""


class Link(Upstream, Protocol):
    """An open connection to a server, after the handshake."""

    instructions: str
    warning: str | None
    """What was odd about the handshake, if anything."""

    def working_for(self) -> list[Exchange]:
        """The clients' requests that the server is busy with."""

    async def aclose(self) -> None: ...


class Receiver(Protocol):
    """Whoever a transport hands what arrives to."""

    def received(self, line: bytes, within: bytes | None = None) -> None:
        """A message. `within` is the id of our request on whose own stream it came, where there is one."""

    def oversized(self, head: bytes, limit: int) -> None:
        """A message passed the limit. This is its beginning; the rest is thrown away."""

    def failed(self, id: bytes, problem: UpstreamError) -> None:
        """This request of ours will have no reply; the connection lives on. Too late, it does nothing."""

    def awaits(self, id: bytes) -> bool:
        """Does anybody still wait for the reply to this request?"""

    def closed(self, reason: str) -> None:
        """Nothing more will arrive. Said once."""

    def alone(self) -> bool:
        """Is at most one request on its way? Then nothing else is about to be written."""


class Transport(Protocol):
    """Carries messages to one server and back. Opened once, closed once."""

    async def open(self, receiver: Receiver) -> None: ...

    def write(self, message: bytes) -> None:
        """Send one message. Writing to a server that is gone does nothing: `closed` tells."""

    @property
    def stuck(self) -> str | None:
        """Why a server that does not answer will not answer later either; None if it may."""

    @property
    def lagging(self) -> bool:
        """Has the server not yet taken what was written?"""

    def drained(self) -> asyncio.Future[None]:
        """Done when the server no longer lags, or is gone."""

    def abort(self, reason: str) -> None:
        """End a server that cannot be talked to any more; `closed` follows."""

    async def aclose(self) -> None: ...


class Immediate:
    """What transports without a pipe have in common: whatever is written is taken at once."""

    lagging = False
    stuck: str | None = None
    _receiver: Receiver | None = None

    def drained(self) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def abort(self, reason: str) -> None:
        if self._receiver is not None:
            self._receiver.closed(reason)
