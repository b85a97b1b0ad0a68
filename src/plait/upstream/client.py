"""The client half of MCP: requests out, replies, progress and questions back.

`McpClient` is what mounts use and what a program of yours may use: give it a transport, open it,
call `send_raw`, `list_tools`, `call_tool`. It owns the deadline of every call it makes, since
progress, which extends a deadline, arrives here.
"""

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import Self

from msgspec.json import decode

from plait.errors import UpstreamBroken, UpstreamError, UpstreamTimeout, UpstreamUnavailable
from plait.session.calling import CallingSession
from plait.session.exchange import (
    Abandon,
    Advance,
    CallingEffect,
    Consult,
    Count,
    Exchange,
    Fail,
    Hear,
    OnProgress,
    Reply,
    Send,
    Settle,
    refuse,
)
from plait.upstream.base import Transport
from plait.upstream.decoded import unwrap
from plait.upstream.lists import fetch
from plait.wire.address import as_raw
from plait.wire.envelope import Fields, notification
from plait.wire.modern import DISCOVER
from plait.wire.spec import METHOD_NOT_FOUND, Kind

CALL_DEADLINE = 60.0

Answer = Callable[[Reply], None]
"""Takes the one answer to a question of the server's."""


class Call:
    """A request of ours on its way: who waits, and until when."""

    __slots__ = ("deadline", "exchange", "future", "id", "method", "on_progress", "seconds")

    def __init__(
        self,
        method: str,
        exchange: Exchange | None,
        on_progress: OnProgress | None,
        future: asyncio.Future[Reply],
    ) -> None:
        self.id = b""
        self.on_progress = on_progress
        self.method = method
        self.exchange = exchange
        self.future = future
        self.seconds = 0.0
        self.deadline = 0.0

    def settle(self, reply: Reply) -> None:
        if not self.future.done():
            self.future.set_result(reply)

    def fail(self, error: UpstreamError) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class Listener:
    """What is done with what the server says unasked. This one refuses its questions and drops the rest."""

    def heard(self, method: str, params: Fields) -> None:
        """A notification other than progress and cancellation."""

    def consulted(
        self, id: bytes, method: str, params: Fields, answer: Answer, exchange: Exchange | None
    ) -> None:
        """A request of the server's. Call `answer` once.

        `exchange` is the client's request that it belongs to; None where the transport cannot tell.
        """
        answer(refuse(METHOD_NOT_FOUND, f"nobody here answers {method}"))

    def retracted(self, id: bytes) -> None:
        """The server no longer wants the answer to its request."""

    def counted(self, what: str, detail: str) -> None:
        """Something the server sent was dropped."""

    def ended(self, reason: str) -> None:
        """The connection is over."""


class McpClient:
    """One conversation with one server."""

    def __init__(
        self,
        transport: Transport,
        *,
        name: str = "server",
        timeout: float = CALL_DEADLINE,
        listener: Listener | None = None,
    ) -> None:
        self._transport = transport
        self.listener = listener or Listener()
        self._session: CallingSession[Call] = CallingSession()
        self._loop = asyncio.get_running_loop()
        self.name = name
        self.timeout = timeout
        self._timer: asyncio.TimerHandle | None = None
        self.end: str | None = None
        """Why the connection is over; None while it lives."""

    async def __aenter__(self) -> Self:
        await self._transport.open(self)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._transport.aclose()

    def __repr__(self) -> str:
        return f"<McpClient {self.name}: {self.end or f'{len(self._session)} in flight'}>"

    # ---- what we say

    async def request(
        self,
        method: str,
        params: Fields | None,
        exchange: Exchange | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Reply:
        """Ask, and wait for the one reply. Raises UpstreamError where there is none.

        Progress goes to `on_progress`, or under its own token to the client whose exchange this is.
        """
        if self.end is not None:
            raise UpstreamUnavailable(f"server '{self.name}' is not there: {self.end}")
        call = Call(method, exchange, on_progress, self._loop.create_future())
        meta: Fields | None = {} if on_progress is not None else None
        if exchange is not None and exchange.meta is not None and "progressToken" in exchange.meta:
            meta = exchange.meta
        call.id, data = self._session.request(method, params, call, meta)
        self._arm(call, self.timeout if timeout is None else timeout)
        try:
            if self._transport.lagging:
                await asyncio.wait(
                    (self._transport.drained(), call.future), return_when=asyncio.FIRST_COMPLETED
                )
            if not call.future.done():
                self._transport.write(data)
            return await call.future
        except asyncio.CancelledError:
            self.withdraw(call, "the client cancelled the request")
            if call.future.done() and not call.future.cancelled():
                call.future.exception()  # nobody else will look at it, and asyncio would complain
            raise

    def begin(self, method: str, params: Fields) -> Call:
        """Ask for something that has no end of its own: no deadline, and its id is known at once.

        Whoever begins it looks at its future, and calls `withdraw` when nobody does any more.
        """
        call = Call(method, None, None, self._loop.create_future())
        call.deadline = math.inf
        if self.end is not None:
            call.fail(UpstreamUnavailable(f"server '{self.name}' is not there: {self.end}"))
            return call
        call.id, data = self._session.request(method, params, call, None)
        self._transport.write(data)
        return call

    def notify(self, method: str, params: Fields | None = None) -> None:
        self._transport.write(notification(method, params))

    def agreed(self, revision: str) -> None:
        """The revision of this conversation: it decides whether the server may send batches."""
        self._session.revision = revision

    def working_for(self) -> list[Exchange]:
        """The clients' requests that the server is busy with."""
        return [call.exchange for call in self._session.waiting() if call.exchange is not None]

    async def send_raw(self, method: str, params: Mapping[str, object] | None = None) -> object:
        """The decoded result of a request. Raises UpstreamRefused for the server's own error."""
        return unwrap(await self.request(method, _fields(params)))

    async def send_notification(self, method: str, params: Mapping[str, object] | None = None) -> None:
        """Fire and forget: no id, no response."""
        self.notify(method, _fields(params))

    async def list_tools(self) -> list[dict[str, object]]:
        """The server's tools, of every page."""
        return [decode(item, type=dict[str, object]) for item in await fetch(self, Kind.TOOLS)]

    async def call_tool(self, name: str, arguments: Mapping[str, object] | None = None) -> object:
        """The decoded result of a tool call, as the server gave it."""
        return await self.send_raw("tools/call", {"name": name, "arguments": dict(arguments or {})})

    # ---- what the server says (the transport calls these)

    def received(self, line: bytes, within: bytes | None = None) -> None:
        for effect in self._session.receive(line):
            if type(effect) is Settle:
                effect.waiter.settle(effect.reply)
            else:
                self._do(effect, within)

    def oversized(self, head: bytes, limit: int) -> None:
        for effect in self._session.oversized(head, limit):
            self._do(effect)

    def failed(self, id: bytes, problem: UpstreamError) -> None:
        call = self._session.forget(id)
        if call is not None:
            # The transport knows what happened, and we to whom.
            problem.args = (f"server '{self.name}', {call.method}: {problem}",)
            call.fail(problem)

    def awaits(self, id: bytes) -> bool:
        return self._session.waiter(id) is not None

    def closed(self, reason: str) -> None:
        if self.end is not None:
            return
        self.end = reason
        if self._timer is not None:
            self._timer.cancel()
        for call in self._session.drain():
            call.fail(UpstreamUnavailable(f"server '{self.name}' stopped during {call.method}: {reason}"))
        self.listener.ended(reason)

    def alone(self) -> bool:
        return len(self._session) <= 1

    def _do(self, effect: CallingEffect[Call], within: bytes | None = None) -> None:
        match effect:
            case Send(data=data):
                self._transport.write(data)
            case Settle(waiter=call, reply=reply):
                call.settle(reply)
            case Fail(waiter=call, what=what):
                call.fail(UpstreamBroken(f"server '{self.name}' answered {call.method} with {what}"))
            case Advance(waiter=call, params=params):
                self._advance(call, params)
            case Hear(method=method, params=params):
                self.listener.heard(method, params)
            case Consult(id=id, method=method, params=params):
                asked = self._session.waiter(within) if within is not None else None
                exchange = asked.exchange if asked is not None else None
                self.listener.consulted(id, method, params, lambda reply: self._answer(id, reply), exchange)
            case Abandon(id=id):
                self.listener.retracted(id)
            case Count(what=what, detail=detail):
                self.listener.counted(what, detail)

    def _answer(self, id: bytes, reply: Reply) -> None:
        self._transport.write(self._session.answer(id, reply))

    def _advance(self, call: Call, params: Fields) -> None:
        """Progress: the deadline starts anew, and whoever asked for it gets it under their own token."""
        self._arm(call, call.seconds)
        exchange = call.exchange
        if call.on_progress is not None:
            call.on_progress(params)
        elif exchange is not None and exchange.meta is not None:
            token = exchange.meta["progressToken"]
            exchange.caller.notify("notifications/progress", {**params, "progressToken": token}, exchange.id)

    # ---- deadlines

    def _arm(self, call: Call, seconds: float) -> None:
        """One timer looks after all calls, set to the first deadline: hardly any call comes to its own."""
        call.seconds, call.deadline = seconds, self._loop.time() + seconds
        if self._timer is None or self._timer.when() > call.deadline:
            self._look_at(call.deadline)

    def _look_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._look)

    def _look(self) -> None:
        """End the calls that are past their deadline, and look again at the next one's."""
        self._timer = None
        now = self._loop.time()
        for call in self._session.waiting():
            if call.deadline <= now:
                self._expire(call)
        deadlines = [call.deadline for call in self._session.waiting() if call.deadline < math.inf]
        if deadlines and self._timer is None:
            self._look_at(min(deadlines))

    def _expire(self, call: Call) -> None:
        self.withdraw(call, "deadline")
        call.fail(
            UpstreamTimeout(f"server '{self.name}' did not answer {call.method} within {call.seconds:g} s")
        )
        stuck = self._transport.stuck
        if stuck is not None:
            # Such a server answers nobody any more: end it, so that it is started anew. It counts as
            # ended now: a call that comes while it dies must wait for the next start, not fail with it.
            self._transport.abort(stuck)
            self.closed(stuck)

    def withdraw(self, call: Call, reason: str) -> None:
        """Nobody waits for the reply any more; if there was none yet, the server is told."""
        # "The `initialize` request MUST NOT be cancelled by clients" (basic/utilities/cancellation).
        data = self._session.cancel(call.id, reason)
        if data is not None and self.end is None and call.method not in ("initialize", DISCOVER):
            self._transport.write(data)


def _fields(params: Mapping[str, object] | None) -> Fields | None:
    return None if params is None else {name: as_raw(value) for name, value in params.items()}
