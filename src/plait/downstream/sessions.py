"""Every session over HTTP: found by its id and by nobody but its owner, counted, and ended when idle."""

import asyncio
import secrets
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Protocol

from plait.downstream.asgi import Answer, refusal
from plait.downstream.connection import Connection, Writer
from plait.downstream.http_limits import HttpLimits
from plait.downstream.http_session import HttpSession
from plait.pipeline.grants import ANONYMOUS, Identity
from plait.routing.resolver import Resolver
from plait.tasks import TaskSet

LEAST_SHARE = 4096
"""Bytes for replay that a session has however many others there are."""


class Gateway(Protocol):
    """What is behind the front: a compositor."""

    resolver: Resolver

    def connect(self, writer: Writer, identity: str = ANONYMOUS) -> Connection: ...
    async def disconnect(self, connection: Connection) -> None: ...


class Sessions:
    """The table. The one that was used longest ago stands first."""

    def __init__(self, gateway: Gateway, limits: HttpLimits) -> None:
        self._gateway = gateway
        self._limits = limits
        self._by_id: OrderedDict[str, HttpSession] = OrderedDict()
        self._owned: Counter[str] = Counter()
        self._endings = TaskSet()
        self._timer: asyncio.TimerHandle | None = None
        self.closing = False
        """No new ones from now on."""

    def __len__(self) -> int:
        return len(self._by_id)

    def open(self, identity: Identity, door: str) -> HttpSession | Answer:
        """A new session, or why there can be none. "The session ID SHOULD be globally unique and
        cryptographically secure" (transports): it has 192 random bits."""
        if self.closing:
            return refusal(503, "plait is shutting down", ((b"retry-after", b"5"),))
        if len(self._by_id) >= self._limits.sessions:
            return refusal(503, "too many sessions; try again later", ((b"retry-after", b"60"),))
        most = self._limits.sessions_each if identity.sessions is None else identity.sessions
        if identity != ANONYMOUS and self._owned[identity] >= most:
            return refusal(429, f"{identity} has {most} sessions already; end one with DELETE")
        session = HttpSession(secrets.token_urlsafe(24), identity, door, self._share)
        session.connection = self._gateway.connect(session, identity)
        self._by_id[session.id] = session
        self._owned[identity] += 1
        session.used = asyncio.get_running_loop().time()
        self._look_later()
        return session

    def find(self, id: str, identity: Identity, door: str) -> HttpSession | None:
        """Of somebody else's session nobody learns that it exists."""
        session = self._by_id.get(id)
        if session is None or session.door != door or not session.identity.same(identity):
            return None
        session.used = asyncio.get_running_loop().time()
        self._by_id.move_to_end(id)
        return session

    async def end(self, session: HttpSession, reason: str = "the session was ended") -> None:
        """Whatever runs for it is cancelled, at the servers too."""
        if self._by_id.pop(session.id, None) is None:
            return
        self._owned[session.identity] -= 1
        if not self._owned[session.identity]:
            del self._owned[session.identity]
        session.close(reason)
        await self._gateway.disconnect(session.connection)

    async def finish(self, seconds: float) -> None:
        """Let what is running come to its answers, for so long."""
        running = [session.connection for session in self._by_id.values() if session.connection.running]
        async with asyncio.TaskGroup() as group:
            for connection in running:
                group.create_task(connection.finish(seconds))

    async def expel(self, knows: Callable[[Identity], bool]) -> None:
        """End the sessions of those who are not known any more, with the streams that they have open."""
        for session in [each for each in self._by_id.values() if not knows(each.identity)]:
            await self.end(session, "the token of this session is not valid any more")

    async def aclose(self, reason: str) -> None:
        self.closing = True
        if self._timer is not None:
            self._timer.cancel()
        for session in tuple(self._by_id.values()):
            await self.end(session, reason)
        await self._endings.aclose()

    def _share(self) -> int:
        """Bytes for replay: what all have together is bounded, however many there are."""
        fair = self._limits.replay_bytes // max(1, len(self._by_id))
        return max(LEAST_SHARE, min(self._limits.replay_each, fair))

    # ---- idle ones

    def _look_later(self) -> None:
        if self._timer is None and self._by_id:
            first = next(iter(self._by_id.values()))
            self._timer = asyncio.get_running_loop().call_at(first.used + self._limits.idle, self._look)

    def _look(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for session in tuple(self._by_id.values()):
            if session.used + self._limits.idle > now:
                break
            if session.busy:
                session.used = now
                self._by_id.move_to_end(session.id)
            else:
                self._endings.start(self.end(session, "the session was idle for too long"))
                session.used = now  # it is on its way out; nobody needs to look at it again soon
                self._by_id.move_to_end(session.id)
        self._look_later()
