"""We call a server: the rules of our side of that conversation.

Every request we send comes to exactly one end: the server's reply, a failure where that reply is
broken (its id is salvaged, so the call fails at once and not at its deadline), or `drain` when the
server is gone.
"""

import re
from typing import Generic, TypeVar

from msgspec import MsgspecError, Raw, UnsetType
from msgspec.json import Decoder

from plait.errors import RemoteProtocolError
from plait.session.exchange import Abandon, CallingEffect, Consult, Count, Fail, Hear, Reply, Send, Settle
from plait.session.pending import Pending, read_reply
from plait.wire.address import as_raw
from plait.wire.envelope import (
    EMPTY,
    Envelope,
    Fields,
    error_body,
    failure,
    legal_id,
    notification,
    open_envelope,
    result,
)
from plait.wire.salvage import salvage_ids
from plait.wire.spec import INVALID_REQUEST, MAX_BATCH, WITH_BATCHES

Waiter = TypeVar("Waiter")
_open_batch = Decoder(list[Raw]).decode
_MISTYPED = re.compile(rb'"([0-9]{1,19})"|([0-9]{1,19})\.0+').fullmatch


class CallingSession(Generic[Waiter]):
    """Ask it for bytes to send; feed it the lines that come back."""

    def __init__(self) -> None:
        self.revision = ""
        self._pending: Pending[Waiter] = Pending()

    # ---- what we say

    def request(
        self, method: str, params: Fields | None, waiter: Waiter, meta: Fields | None = None
    ) -> tuple[bytes, bytes]:
        """The id and the bytes of a new request; `waiter` is settled once, with the reply.

        `meta` is the caller's `_meta`, opened, where it holds a progress token.
        """
        return self._pending.add(method, params, waiter, meta)

    def cancel(self, id: bytes, reason: str) -> bytes | None:
        """Nobody waits for this reply any more: the bytes that tell the server."""
        if self._pending.take(id) is None:
            return None
        return notification("notifications/cancelled", {"requestId": Raw(id), "reason": as_raw(reason)})

    def answer(self, id: bytes, reply: Reply) -> bytes:
        """The bytes that answer a question of the server's."""
        return failure(id, reply.error) if reply.error is not None else result(id, reply.result or EMPTY)

    def waiter(self, id: bytes) -> Waiter | None:
        """Whoever waits for the reply to this request, and goes on waiting."""
        return self._pending.get(id)

    def forget(self, id: bytes) -> Waiter | None:
        """Whoever waits for a reply that will not come; a later one finds nobody."""
        return self._pending.take(id)

    def drain(self) -> list[Waiter]:
        """Everybody who still waits: the server is gone."""
        return list(self._pending.drain())

    def waiting(self) -> list[Waiter]:
        """Everybody who waits for a reply."""
        return list(self._pending)

    def __len__(self) -> int:
        return len(self._pending)

    # ---- what the server says

    def receive(self, line: bytes) -> list[CallingEffect[Waiter]]:
        """Advance by one line from the server."""
        try:
            message = open_envelope(line)
        except RemoteProtocolError as problem:
            return self._receive_broken(line, problem)
        return [self._receive_one(message)]

    def oversized(self, head: bytes, limit: int) -> list[CallingEffect[Waiter]]:
        """The server sent a line longer than the limit; its beginning may tell whose reply it was."""
        return self._fail(salvage_ids(head), f"a message longer than {limit} bytes", "oversized line")

    def _receive_one(self, message: Envelope) -> CallingEffect[Waiter]:
        method, id = message.method, message.id
        if isinstance(method, UnsetType):
            return self._receive_reply(message)
        params = message.params or {}
        if isinstance(id, UnsetType):
            return self._receive_notification(method, params)
        if not legal_id(id):
            problem = "the id of a request is a string or an integer"
            return Send(failure(None, error_body(INVALID_REQUEST, problem)))
        if method == "ping":
            return Send(result(bytes(id), EMPTY))
        return Consult(bytes(id), method, params)

    def _receive_notification(self, method: str, params: Fields) -> CallingEffect[Waiter]:
        if method == "notifications/progress":
            return self._pending.progress(params)
        if method == "notifications/cancelled":
            return Abandon(bytes(params.get("requestId", b"")))
        return Hear(method, params)

    def _receive_reply(self, message: Envelope) -> CallingEffect[Waiter]:
        id = message.id
        if not isinstance(id, Raw):
            return Count("reply without an id")
        waiter = self._pending.take(bytes(id))
        if waiter is None:
            return self._receive_mistyped(bytes(id))
        reply = read_reply(message)
        return Fail(waiter, reply) if isinstance(reply, str) else Settle(waiter, reply)

    def _receive_mistyped(self, id: bytes) -> CallingEffect[Waiter]:
        """Ids are typed: `"7"` and `7.0` do not answer 7. Yet nobody else can be meant: 7 fails at once."""
        meant = _MISTYPED(id)
        waiter = self._pending.take(meant[1] or meant[2]) if meant else None
        if waiter is None:
            return Count("reply to nobody", id.decode(errors="replace")[:40])
        return Fail(waiter, "an id of the wrong type: a string or a fraction instead of our integer")

    def _receive_broken(self, line: bytes, problem: RemoteProtocolError) -> list[CallingEffect[Waiter]]:
        if line.lstrip()[:1] == b"[" and self.revision == WITH_BATCHES:
            return self._receive_batch(line, problem)
        if not line.isascii():
            # A server that cut a string in the middle of a character: the character is lost anyway.
            mended = line.decode(errors="replace").encode()
            if mended != line:
                return [Count("invalid UTF-8"), *self.receive(mended)]
        return self._fail(salvage_ids(line), f"a message that is broken: {problem}", "broken line")

    def _receive_batch(self, line: bytes, problem: RemoteProtocolError) -> list[CallingEffect[Waiter]]:
        try:
            parts = _open_batch(line)
        except (MsgspecError, RecursionError):
            return self._fail(salvage_ids(line), f"a message that is broken: {problem}", "broken line")
        if len(parts) > MAX_BATCH or any(bytes(part)[:1] == b"[" for part in parts):
            # Each part costs us more than it costs the server: a long line of `{}` would take seconds.
            what = f"a batch that is nested or has more than {MAX_BATCH} messages"
            return self._fail(salvage_ids(line), what, "unusable batch")
        return [effect for part in parts for effect in self.receive(bytes(part))]

    def _fail(self, ids: list[bytes], what: str, counted: str) -> list[CallingEffect[Waiter]]:
        """Settle the calls that a broken message was the reply to, and count it."""
        waiters = [waiter for id in ids if (waiter := self._pending.take(id)) is not None]
        effects: list[CallingEffect[Waiter]] = [Count(counted, what)]
        effects += [Fail(waiter, what) for waiter in waiters]
        return effects
