"""One connected client: drives its session, runs its exchanges, owns its tasks."""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from msgspec import Raw

from plait.pipeline.grants import grant_of
from plait.session.exchange import (
    Abandon,
    Advance,
    Caller,
    Count,
    Dispatch,
    Exchange,
    Handler,
    Hear,
    OnProgress,
    Reply,
    Send,
    ServingEffect,
    Settle,
    refuse,
)
from plait.session.serving import ServingSession, State, Welcome
from plait.wire.envelope import EMPTY, Envelope, Fields, notification
from plait.wire.spec import INTERNAL_ERROR, MAX_FROM_CLIENTS
from plait.wire.text import printable

_log = logging.getLogger("plait.client")

MAX_BACKLOG = 4 * 1024 * 1024
"""Past this many bytes that the client has not read, notifications to it are dropped, and counted."""
LAST_WAIT = 10.0
"""Seconds for what runs for a client that is gone; it was cancelled, which a tool may take badly."""


class Writer(Protocol):
    """The way to the client."""

    def write(self, message: bytes, within: bytes | None = None) -> None:
        """`within`: the id of the client's request that the message belongs to, or is the answer to."""

    def backlog(self) -> int:
        """How many bytes wait for the client to read them."""


class Question:
    """Something a server asked and this client has to answer."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.on_progress = on_progress


class Connection:
    """The same for every transport: lines in through `receive`, messages out through `writer`."""

    def __init__(
        self,
        handler: Handler,
        welcome: Welcome,
        writer: Writer,
        *,
        joined: Callable[["Connection"], None],
        told: Callable[["Connection", str, Fields], None],
        visited: Callable[[Caller], None] = lambda caller: None,
        server: Raw | None = None,
        limit: int = MAX_FROM_CLIENTS,
        identity: str = "anonymous",
    ) -> None:
        """`joined`: a client has shaken hands; `visited`: one without a handshake sent its first request;
        `told`: a notification of the client's. `server` is what we call ourselves on modern results."""
        self.identity = str(identity)
        self.grant = grant_of(identity)
        """What its token is good for; see pipeline/grants.py."""
        self.session: ServingSession[Question] = ServingSession(welcome, self, server)
        self.level: int | None = None
        """From which log messages on it wants them: an index into LEVELS, by `logging/setLevel`."""
        self.limit = limit
        self.dropped = 0
        self.handler = handler
        self._writer = writer
        self._joined = joined
        self._told = told
        self._visited: Callable[[Caller], None] | None = visited
        self._running: dict[bytes, asyncio.Task[None]] = {}
        self._deaf = self._over = False
        self.ended: Callable[[], None] = lambda: None
        """Called when it is over, be it that we have ended it: whoever carries it tells its client."""
        self._loop = asyncio.get_running_loop()

    def __repr__(self) -> str:
        return f"<Connection {self.identity}: {self.session.revision or 'no handshake yet'}>"

    # ---- what the client says

    def receive(
        self,
        line: bytes,
        message: Envelope | None = None,
        answer: Callable[[bytes], None] | None = None,
    ) -> list[bytes]:
        """Do what a line says; the ids of the requests in it that run now.

        `message` is the line, where it has been opened already. What can be answered at once goes to
        `answer`, where there is one.
        """
        if self._over:
            return []
        greeted = self.session.state
        started: list[bytes] = []
        for effect in self.session.receive(line, message):
            if type(effect) is Dispatch:
                self._dispatch(effect.exchange)
                started.append(effect.exchange.id)
            elif answer is not None and type(effect) is Send:
                answer(effect.data)
            else:
                self._do(effect)
        if greeted is State.CONNECTED and self.session.state is State.READY:
            self._joined(self)
        if self._visited is not None and self.session.modern.visitor is not None:
            visited, self._visited = self._visited, None
            visited(self.session.modern.visitor)
        return started

    def oversized(self, head: bytes) -> None:
        for effect in self.session.oversized(head, self.limit):
            self._do(effect)

    def _do(self, effect: ServingEffect[Question]) -> None:
        match effect:
            case Send(data=data):
                self._say(data)
            case Dispatch(exchange=exchange):
                self._dispatch(exchange)
            case Abandon(id=id):
                self._abandon(id)
            case Settle(waiter=question, reply=reply):
                if not question.reply.done():
                    question.reply.set_result(reply)
            case Advance(waiter=question, params=params):
                if question.on_progress is not None:
                    question.on_progress(params)
            case Hear(method=method, params=params):
                self._told(self, method, params)
            case Count(what=what, detail=detail):
                _log.debug("dropped: %s %s", what, printable(detail))

    def _dispatch(self, exchange: Exchange) -> None:
        # Not a TaskSet: this is done for every request, and `_run` itself knows when it ends.
        self._running[exchange.id] = self._loop.create_task(self._run(exchange))

    def _abandon(self, id: bytes) -> None:
        """No answer from now on, and the server is told that nobody waits."""
        data = self.session.forget(id)
        if data is not None:
            self._say(data, id)
        task = self._running.get(id)
        if task is not None:
            task.cancel()

    async def _run(self, exchange: Exchange) -> None:
        try:
            reply = await self.handler(exchange)
        except Exception:
            _log.exception("a bug in plait: %s", exchange.method)
            reply = refuse(INTERNAL_ERROR, f"{exchange.method} failed inside plait; its log says why")
        finally:
            self._running.pop(exchange.id, None)
        data = self.session.answer(exchange.id, reply)
        if data is None or self._deaf:
            return
        try:
            self._writer.write(data, exchange.id)  # not by `_say`: this is done for every request
        except Exception:
            self._lost()

    @property
    def running(self) -> int:
        """How many requests of this client's are being worked on."""
        return len(self._running)

    def alone(self) -> bool:
        """Does at most one request run? Then nothing else is about to be written."""
        return len(self._running) <= 1

    # ---- what we say to it (it is the Caller of its exchanges)

    @property
    def revision(self) -> str:
        return self.session.revision

    @property
    def capabilities(self) -> Fields:
        return self.session.capabilities

    @property
    def client_info(self) -> Fields:
        """What the client calls itself."""
        return self.session.client_info

    def notify(self, method: str, params: Fields | None, within: bytes | None = None) -> bool:
        if self._writer.backlog() > MAX_BACKLOG:
            self.dropped += 1
            if self.dropped == 1:
                _log.warning("the client does not read: notifications to it are dropped")
            return False
        self._say(notification(method, params), within)
        return True

    async def ask(
        self,
        method: str,
        params: Fields | None,
        on_progress: OnProgress | None = None,
        within: bytes | None = None,
    ) -> Reply:
        question = Question(on_progress)
        id, data = self.session.ask(method, params, question)
        self._say(data, within)
        try:
            return await question.reply
        except asyncio.CancelledError:
            withdrawal = self.session.withdraw(id)
            if withdrawal is not None:
                self._say(withdrawal, within)
            raise

    def _say(self, message: bytes, within: bytes | None = None) -> None:
        """Whoever cannot be written to gets nothing more. That is no trouble of the server that said it,
        nor of the other clients that are told the same."""
        if self._deaf:
            return
        try:
            self._writer.write(message, within)
        except Exception:
            self._lost()

    def _lost(self) -> None:
        self._deaf = True
        _log.exception("writing to %r failed; it gets nothing more", self)

    # ---- its end

    async def finish(self, seconds: float) -> None:
        """Nothing more will be read: let what is running come to its answers, for so long."""
        for id in self.session.listening():
            self._end(id)
        if self._running:
            await asyncio.wait(tuple(self._running.values()), timeout=seconds)

    def _end(self, id: bytes) -> None:
        """A stream of notifications has no end of its own: "the server sends the result" (subscriptions)."""
        data = self.session.answer(id, Reply(result=EMPTY))
        if data is not None:
            self._say(data, id)
        task = self._running.get(id)
        if task is not None:
            task.cancel()

    def give_up(self, reason: str) -> None:
        """Whoever still waits for an answer gets this one."""
        for id in self._running:
            data = self.session.answer(id, refuse(INTERNAL_ERROR, reason))
            if data is not None:
                self._say(data, id)

    async def aclose(self) -> None:
        """The client is gone: whatever runs for it is cancelled, at the servers too."""
        self._over = True
        for question in self.session.drain():
            if not question.reply.done():
                question.reply.set_result(refuse(INTERNAL_ERROR, "the client is gone"))
        running = tuple(self._running.values())
        for task in running:
            task.cancel()
        try:
            if running and (await asyncio.wait(running, timeout=LAST_WAIT))[1]:
                _log.warning("a request of %r will not be cancelled; it is left behind", self)
        finally:
            self.ended()
