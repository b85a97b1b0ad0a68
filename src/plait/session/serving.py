"""We serve a client: the rules of our side of that conversation.

    CONNECTED --initialize--> READY

Before READY a request is refused with -32002, except `ping`. Requests between the answer to
`initialize` and `notifications/initialized` are served: real clients pipeline.

A modern request (`era_of`) needs none of that: it brings all that is to be known of its client with it,
and is served in whatever state, by the rules of `eras`. Both kinds may come on one connection.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import MsgspecError, Raw, UnsetType
from msgspec.json import Decoder

from plait.errors import RemoteProtocolError
from plait.session.eras.serving import ModernServing
from plait.session.exchange import (
    Abandon,
    Caller,
    Count,
    Dispatch,
    Exchange,
    Hear,
    Reply,
    Send,
    ServingEffect,
    Settle,
    refuse,
)
from plait.session.negotiation import agree, era_of, read_greeting
from plait.session.pending import Pending, read_reply
from plait.wire.address import read_address
from plait.wire.envelope import (
    EMPTY,
    Envelope,
    Fields,
    error_body,
    failure,
    legal_id,
    notification,
    open_envelope,
    open_fields,
    result,
)
from plait.wire.modern import LISTEN
from plait.wire.salvage import salvage_any_id
from plait.wire.spec import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_BATCH,
    NOT_INITIALIZED,
    WITH_BATCHES,
    Era,
)

Waiter = TypeVar("Waiter")
Welcome = Callable[[str], Raw]
"""Given the revision agreed on, the result of `initialize`, or of `server/discover` in a modern one."""

_RUNNING = error_body(INVALID_REQUEST, "a request with this id is still running")
_open_batch = Decoder(list[Raw]).decode
_is_token = Decoder(str | int).decode


class State(enum.Enum):
    CONNECTED = "connected"
    READY = "ready"


class Batch:
    """An array of requests whose answers go back together, as an array."""

    def __init__(self) -> None:
        self.open = 0
        self.answers: list[bytes] = []

    def settle(self, answer: bytes | None) -> bytes | None:
        """The whole answer, once the last one is in. A cancelled request has none."""
        self.open -= 1
        if answer is not None:
            self.answers.append(answer)
        if self.open or not self.answers:
            return None
        return b"[%b]" % b",".join(self.answers)


class ServingSession(Generic[Waiter]):
    """Feed it lines; do what it answers. It never waits and never writes."""

    def __init__(self, welcome: Welcome, caller: Caller, server: Raw | None = None) -> None:
        """`server` is what we call ourselves on every result to a modern client."""
        self.modern = ModernServing(welcome, caller, server)
        self.state = State.CONNECTED
        self.revision = ""
        self.capabilities: Fields = {}
        self.client_info: Fields = {}
        self._welcome = welcome
        self._caller = caller
        self._open: dict[bytes, Batch | Exchange | None] = {}
        """What is being served: with its batch, if it is of one, or with itself, if it is modern."""
        self._pending: Pending[Waiter] = Pending()

    # ---- what the client says

    def receive(self, line: bytes, message: Envelope | None = None) -> list[ServingEffect[Waiter]]:
        """Advance by one line from the client; `message` is that line, where it has been opened already."""
        try:
            if message is None:
                message = open_envelope(line)
        except RemoteProtocolError as problem:
            if line.lstrip()[:1] == b"[" and self.revision == WITH_BATCHES:
                return self._receive_batch(line, problem)
            return [_failed(problem)]
        return self._receive_one(message, None)

    def oversized(self, head: bytes, limit: int) -> list[ServingEffect[Waiter]]:
        """The client sent a line longer than the limit; its beginning may tell the id."""
        message = f"message longer than {limit} bytes"
        return [Send(failure(salvage_any_id(head), error_body(INVALID_REQUEST, message)))]

    def _receive_one(self, message: Envelope, batch: Batch | None) -> list[ServingEffect[Waiter]]:
        method, id = message.method, message.id
        if isinstance(method, UnsetType):
            return [self._receive_reply(message)]
        params = message.params or {}
        if isinstance(id, UnsetType):
            return [self._receive_notification(method, params)]
        if not legal_id(id):
            problem = "the id of a request is a string or an integer"
            return [Send(failure(None, error_body(INVALID_REQUEST, problem)))]
        return [self._receive_request(bytes(id), method, params, batch)]

    def _receive_request(
        self, id: bytes, method: str, params: Fields, batch: Batch | None
    ) -> ServingEffect[Waiter]:
        try:
            meta = _open_meta(params) if "_meta" in params else None
            if era_of(method, meta) is Era.MODERN:
                return self._receive_modern(id, method, params, meta, batch)
            refusal = self._refusal(id, method, batch)
            if refusal is not None:
                return Send(failure(id, refusal))
            if method == "ping":
                return Send(result(id, EMPTY))
            if method == "initialize":
                return self._initialize(id, params)
            exchange = Exchange(id, method, params, read_address(method, params), self._caller, meta)
        except RemoteProtocolError as problem:
            return Send(failure(id, error_body(problem.code, str(problem))))
        self._open[id] = batch
        if batch is not None:
            batch.open += 1
        return Dispatch(exchange)

    def _refusal(self, id: bytes, method: str, batch: Batch | None) -> Raw | None:
        """Why this request cannot be served, whatever it asks; None if it can."""
        if method == "initialize":
            if batch is not None:
                # "The `initialize` request MUST NOT be part of a JSON-RPC batch" (2025-03-26).
                return error_body(INVALID_REQUEST, "initialize cannot be part of a batch")
            if self.state is State.READY:
                return error_body(INVALID_REQUEST, "already initialized")
        elif self.state is not State.READY and method != "ping":
            return error_body(NOT_INITIALIZED, "not initialized")
        return _RUNNING if id in self._open else None

    def _receive_modern(
        self, id: bytes, method: str, params: Fields, meta: Fields | None, batch: Batch | None
    ) -> Send | Dispatch:
        refusal = _RUNNING if id in self._open else None
        if batch is not None:
            refusal = error_body(INVALID_REQUEST, "a modern request cannot be part of a batch")
        effect = self.modern.receive(id, method, params, meta, refusal)
        if isinstance(effect, Dispatch):
            self._open[id] = effect.exchange
        return effect

    def _initialize(self, id: bytes, params: Fields) -> Send:
        greeting = read_greeting(params)
        self.state = State.READY
        self.revision = agree(greeting.revision)
        self.capabilities = greeting.capabilities
        self.client_info = greeting.info
        return Send(result(id, self._welcome(self.revision)))

    def _receive_notification(self, method: str, params: Fields) -> ServingEffect[Waiter]:
        if method == "notifications/cancelled":
            return self._cancelled(params)
        if method == "notifications/progress":
            return self._pending.progress(params)
        return Hear(method, params)

    def _cancelled(self, params: Fields) -> Abandon | Count:
        id = bytes(params.get("requestId", b""))
        if id not in self._open:
            # "The request may already have completed [...] receivers MAY ignore" (cancellation).
            return Count("cancellation of an unknown request")
        return Abandon(id)

    def _receive_reply(self, message: Envelope) -> ServingEffect[Waiter]:
        id = message.id
        waiter = self._pending.take(bytes(id)) if isinstance(id, Raw) else None
        if waiter is None:
            if isinstance(message.result, UnsetType) and isinstance(message.error, UnsetType):
                problem = "a message has a method, a result or an error"
                return _failed(RemoteProtocolError(problem, id=_answerable(id)))
            return Count("reply to nobody")
        reply = read_reply(message)
        if isinstance(reply, str):
            reply = refuse(INVALID_REQUEST, f"the client answered with {reply}")
        return Settle(waiter, reply)

    def _receive_batch(self, line: bytes, problem: RemoteProtocolError) -> list[ServingEffect[Waiter]]:
        try:
            parts: Sequence[Raw] = _open_batch(line)
        except (MsgspecError, RecursionError):
            return [_failed(problem)]
        if not 0 < len(parts) <= MAX_BATCH:
            message = "an empty batch" if not parts else f"a batch of more than {MAX_BATCH} messages"
            return [_failed(RemoteProtocolError(message))]
        batch = Batch()
        effects: list[ServingEffect[Waiter]] = []
        for part in parts:
            try:
                effects += self._receive_one(open_envelope(bytes(part)), batch)
            except RemoteProtocolError as exc:
                effects.append(_failed(exc))
        return _gather(batch, effects)

    # ---- what we say

    def is_open(self, id: bytes) -> bool:
        """Has this request of the client's still to be answered?"""
        return id in self._open

    def answer(self, id: bytes, reply: Reply) -> bytes | None:
        """The bytes that settle a dispatched exchange; None if there is nothing to send (yet)."""
        if id not in self._open:
            return None
        batch = self._open.pop(id)
        if isinstance(batch, Exchange):
            return self.modern.answer(batch, reply)
        data = failure(id, reply.error) if reply.error is not None else result(id, reply.result or EMPTY)
        return data if batch is None else batch.settle(data)

    def listening(self) -> list[bytes]:
        """The ids of the requests that have no answer but their end."""
        return [id for id, turn in self._open.items() if isinstance(turn, Exchange) and turn.method == LISTEN]

    def forget(self, id: bytes) -> bytes | None:
        """The exchange was abandoned: nobody answers it. The rest of its batch may be due now."""
        batch = self._open.pop(id, None)
        return batch.settle(None) if isinstance(batch, Batch) else None

    def ask(self, method: str, params: Fields | None, waiter: Waiter) -> tuple[bytes, bytes]:
        """The id and the bytes of a request to the client; its answer settles `waiter`."""
        meta = _open_meta(params) if params and "_meta" in params else None
        return self._pending.add(method, params, waiter, meta if meta and "progressToken" in meta else None)

    def withdraw(self, id: bytes) -> bytes | None:
        """We no longer want the answer to a request of ours: the bytes that say so."""
        if self._pending.take(id) is None:
            return None
        return notification("notifications/cancelled", {"requestId": Raw(id)})

    def drain(self) -> list[Waiter]:
        """Everybody who still waits for an answer of this client's: it is gone."""
        return list(self._pending.drain())


def _gather(batch: Batch, effects: list[ServingEffect[Waiter]]) -> list[ServingEffect[Waiter]]:
    """What could be answered at once waits for the rest of its batch, if there is any."""
    at_once = [effect.data for effect in effects if isinstance(effect, Send)]
    others: list[ServingEffect[Waiter]] = [effect for effect in effects if not isinstance(effect, Send)]
    batch.answers += at_once
    if batch.open or not at_once:
        return others
    return [*others, Send(b"[%b]" % b",".join(at_once))]


def _open_meta(params: Fields) -> Fields:
    try:
        meta = open_fields(params["_meta"])
        if "progressToken" in meta:
            _is_token(meta["progressToken"])
    except (MsgspecError, UnicodeDecodeError):
        raise RemoteProtocolError(
            "'_meta' must be an object, and its progressToken a string or an integer", INVALID_PARAMS
        ) from None
    return meta


def _answerable(id: Raw | UnsetType) -> Raw | None:
    return id if isinstance(id, Raw) and legal_id(id) else None


def _failed(problem: RemoteProtocolError) -> Send | Count:
    if problem.unanswerable:
        return Count("malformed notification", str(problem))
    id = None if problem.id is None else bytes(problem.id)
    return Send(failure(id, error_body(problem.code, str(problem))))
