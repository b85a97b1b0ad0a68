"""Requests we sent and still wait for, by the id we gave them."""

import itertools
from collections.abc import Iterator
from typing import Generic, TypeVar

from msgspec import MsgspecError, Raw
from msgspec.json import Decoder

from plait.session.exchange import Advance, Count, Reply
from plait.wire.envelope import Envelope, ErrorBody, Fields, encode, request

Waiter = TypeVar("Waiter")
_read_error = Decoder(ErrorBody).decode
_read_number = Decoder(int | float).decode


class Pending(Generic[Waiter]):
    """Ids are ours, counted from 1: a peer can neither choose nor collide them."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._waiting: dict[bytes, Waiter] = {}
        self._progress: dict[bytes, float] = {}

    def add(
        self, method: str, params: Fields | None, waiter: Waiter, meta: Fields | None
    ) -> tuple[bytes, bytes]:
        """The id of a new request, and its bytes.

        `meta` is `_meta` opened, where the original asker gave a progress token: it gets a token of
        our own, which is the id, so that two askers' tokens never meet.
        """
        id = b"%d" % next(self._ids)
        self._waiting[id] = waiter
        if meta is not None:
            self._progress[id] = float("-inf")
            params = {**(params or {}), "_meta": _with_token(meta, id)}
        return id, request(id, method, params)

    def take(self, id: bytes) -> Waiter | None:
        """Whoever waits for this id; from now on nobody does.

        "The sender of the cancellation notification SHOULD ignore any response to the request that
        arrives afterward" (2025-11-25, basic/utilities/cancellation): a late reply finds nobody.
        """
        if self._progress:
            self._progress.pop(id, None)
        return self._waiting.pop(id, None)

    def get(self, id: bytes) -> Waiter | None:
        """Whoever waits for this id."""
        return self._waiting.get(id)

    def progress(self, params: Fields) -> Advance[Waiter] | Count:
        """The effect of a `notifications/progress`.

        "The progress value MUST increase with each notification" (basic/utilities/progress): what
        does not increase is dropped, so that nobody behind us has to trust the peer on it.
        """
        try:
            id, value = bytes(params["progressToken"]), _read_number(params["progress"])
        except (KeyError, MsgspecError):
            return Count("malformed progress")
        last = self._progress.get(id)
        if last is None:
            return Count("progress for nobody", id.decode(errors="replace")[:40])
        if value <= last:
            return Count("progress that does not increase")
        self._progress[id] = value
        return Advance(self._waiting[id], params)

    def drain(self) -> Iterator[Waiter]:
        """Everybody who waits, for the last time."""
        waiting, self._waiting = self._waiting, {}
        self._progress.clear()
        return iter(waiting.values())

    def __iter__(self) -> Iterator[Waiter]:
        return iter(self._waiting.values())

    def __len__(self) -> int:
        return len(self._waiting)


def _with_token(meta: Fields, id: bytes) -> Raw:
    return Raw(encode({**meta, "progressToken": Raw(id)}))


def read_reply(message: Envelope) -> Reply | str:
    """The reply in a response, or what is wrong with it.

    "Either a `result` or an `error` MUST be set. A response MUST NOT set both" (basic).
    """
    result, error = message.result, message.error
    if isinstance(error, Raw):
        if isinstance(result, Raw):
            return "both a result and an error"
        try:
            _read_error(error)
        except (MsgspecError, UnicodeDecodeError):
            return "an error without a code and a message"
        return Reply(error=error)
    if not isinstance(result, Raw):
        return "neither a result nor an error"
    if bytes(memoryview(result)[:1]) != b"{":
        return "a result that is no object"
    return Reply(result=result)
