"""The modern era over HTTP: every POST is a request of its own, and says itself who sent it.

There is no session, and nothing is remembered of a client. A request has a connection that exists only
for it; "closing the response stream is the cancellation" (2026-07-28, basic/transports), so when its
client leaves, the connection goes, and with it what runs for it at the servers.
"""

import asyncio
from collections import Counter
from collections.abc import Callable

from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType
from msgspec.json import Decoder

from plait.downstream.asgi import JSON, Answer, Request, refusal
from plait.downstream.connection import Connection
from plait.downstream.events import EventStream, Form, departure, pour_until
from plait.downstream.heads import Given, check_arguments, check_notification, read_head, read_request
from plait.downstream.http_limits import HttpLimits
from plait.downstream.sessions import Gateway
from plait.errors import RemoteProtocolError
from plait.pipeline.grants import ANONYMOUS, Identity
from plait.routing.catalog import Route
from plait.session.eras.caller import ModernCaller
from plait.session.eras.stamp import Stamp
from plait.session.exchange import Exchange
from plait.wire.address import read_address
from plait.wire.envelope import Envelope, error_body, failure, legal_id
from plait.wire.headers import status_of
from plait.wire.spec import INVALID_REQUEST

_FORM = Form(ids=False)
"""No event has an id: "a broken stream loses the request", and nobody asks for the rest of it."""


class Visit:
    """One request while it is answered: the Writer of its connection, whose messages go on one stream."""

    connection: Connection

    def __init__(self, id: bytes, identity: Identity) -> None:
        self.id = id
        self.identity = identity
        self.stream = EventStream(0, (id,))

    def write(self, message: bytes, within: bytes | None = None) -> None:
        self.stream.put(message)
        if self.stream.reader is not None:
            self.stream.forget(self.stream.held)  # what was taken, nobody can ask for again
        if not self.connection.session.is_open(self.id):
            self.stream.end()  # that was the answer

    def backlog(self) -> int:
        return self.stream.unread


class Stateless:
    """Everybody who is being answered now."""

    def __init__(self, gateway: Gateway, limits: HttpLimits) -> None:
        self._gateway = gateway
        self._limits = limits
        self._visits: set[Visit] = set()
        self._running: Counter[str] = Counter()
        self.closing = False
        """No new ones from now on."""

    def __len__(self) -> int:
        return len(self._visits)

    async def post(
        self, request: Request, identity: Identity, body: bytes, message: Envelope
    ) -> Answer | None:
        """Any message of the modern era."""
        given = read_head(request.pairs())
        id = message.id
        if isinstance(message.method, UnsetType):
            problem = (
                "a modern client sends requests and notifications: what a server asks for, it asks again"
            )
            return _refused(None, error_body(INVALID_REQUEST, problem))
        if isinstance(id, UnsetType):
            wrong = given if isinstance(given, Raw) else check_notification(given, message.method)
            # "Notification accepted: 202, no body". There is none that would change anything here.
            return Answer(202) if wrong is None else _refused(None, wrong)
        if not legal_id(id):
            return _refused(
                None, error_body(INVALID_REQUEST, "the id of a request is a string or an integer")
            )
        if isinstance(given, Raw):
            return _refused(bytes(id), given)
        stamp = read_request(given, message.method, message.params or {})
        if isinstance(stamp, Raw):
            return _refused(bytes(id), stamp)
        visit = self._admit(bytes(id), identity)
        if isinstance(visit, Answer):
            return visit
        try:
            wrong = await self._misfit(visit, message, given, stamp)
            return (
                await self._serve(request, visit, body, message)
                if wrong is None
                else _refused(visit.id, wrong)
            )
        finally:
            await self._end(visit)

    async def _misfit(self, visit: Visit, message: Envelope, given: Given, stamp: Stamp) -> Raw | None:
        """Do the headers repeat the arguments that the tool wants repeated? Only a tool that this caller
        may see has a schema here."""
        if message.method != "tools/call":
            return None
        params = message.params or {}
        caller = ModernCaller(visit.connection, visit.id, stamp)
        try:
            asked = Exchange(visit.id, message.method, params, read_address(message.method, params), caller)
        except RemoteProtocolError:
            return None  # the session says the same, and why
        resolver = self._gateway.resolver
        if not resolver.resolve_at_once(asked):
            await resolver.resolve(asked)
        found = asked.destination
        return check_arguments(
            given, found.schema if isinstance(found, Route) else None, params.get("arguments")
        )

    async def _serve(self, request: Request, visit: Visit, body: bytes, message: Envelope) -> Answer | None:
        if visit.stream.ended:  # while we looked for its tool
            return refusal(503, "plait is shutting down", ((b"retry-after", b"5"),))
        answers: list[bytes] = []
        if not visit.connection.receive(body, message, answers.append):
            return _answer(answers[0])
        stream = visit.stream
        async with departure(request, stream) as gone:
            # Which status it is, is decided as late as possible: it cannot be taken back.
            while not (stream.events or stream.ended or gone.done()):
                if not await stream.changed(self._limits.ping):
                    break
            if gone.done():
                return None
            if stream.ended and len(stream.events) == 1:
                return _answer(stream.events[0].data)
            await pour_until(gone, stream, request, _FORM, ping=self._limits.ping)
        return None

    # ---- who is here

    def _admit(self, id: bytes, identity: Identity) -> Visit | Answer:
        if self.closing:
            return refusal(503, "plait is shutting down", ((b"retry-after", b"5"),))
        if len(self._visits) >= self._limits.sessions:
            return refusal(503, "too many requests are running; try again later", ((b"retry-after", b"5"),))
        if identity != ANONYMOUS and self._running[identity] >= self._limits.running:
            return refusal(429, f"{self._running[identity]} requests of {identity} are still running")
        visit = Visit(id, identity)
        visit.connection = self._gateway.connect(visit, identity)
        self._visits.add(visit)
        self._running[identity] += 1
        return visit

    async def _end(self, visit: Visit) -> None:
        self._visits.discard(visit)
        self._running[visit.identity] -= 1
        if not self._running[visit.identity]:
            del self._running[visit.identity]
        await self._gateway.disconnect(visit.connection)

    # ---- its end

    async def finish(self, seconds: float) -> None:
        """Streams of those who listen are ended; the rest comes to its answers, for so long."""
        async with asyncio.TaskGroup() as group:
            for visit in self._visits:
                group.create_task(visit.connection.finish(seconds))

    async def expel(self, knows: Callable[[Identity], bool]) -> None:
        """End the requests of those who are not known any more."""
        for visit in [each for each in self._visits if not knows(each.identity)]:
            await self._cut(visit, "the token of this request is not valid any more")

    async def aclose(self, reason: str) -> None:
        self.closing = True
        await self.finish(0)
        for visit in tuple(self._visits):
            await self._cut(visit, reason)

    async def _cut(self, visit: Visit, reason: str) -> None:
        visit.connection.give_up(reason)
        visit.stream.end()
        await self._gateway.disconnect(visit.connection)


class _Error(Struct):
    code: int


class _Outcome(Struct):
    error: _Error | UnsetType = UNSET


_read_outcome = Decoder(_Outcome).decode


def _answer(data: bytes) -> Answer:
    """An answer under the status that its error has, if it is one."""
    try:
        error = _read_outcome(data).error
    except MsgspecError:
        error = UNSET  # a server's code may be any number; it means nothing here
    return Answer(200 if isinstance(error, UnsetType) else status_of(error.code), data, (JSON,))


def _refused(id: bytes | None, error: Raw) -> Answer:
    return _answer(failure(id, error))
