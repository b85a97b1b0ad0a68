"""A transport without a server: it answers from a list and remembers what was sent."""

import asyncio
from collections.abc import Iterable, Mapping

from msgspec import UNSET
from msgspec.json import decode

from plait.upstream.base import Immediate, Receiver
from plait.wire.address import as_raw
from plait.wire.envelope import failure, open_envelope, result


class MockTransport(Immediate):
    """Give it the results of the requests to come, in order; an UpstreamRefused-like error is a mapping
    with an `error` key: `MockTransport([{"tools": []}, {"error": {"code": -1, "message": "no"}}])`.
    """

    def __init__(self, replies: Iterable[Mapping[str, object]] = ()) -> None:
        self._replies = list(replies)
        self.requests: list[dict[str, object]] = []
        """Every request that was sent, decoded."""
        self.notifications: list[dict[str, object]] = []
        """Every notification that was sent, decoded."""

    @property
    def sent(self) -> list[str]:
        """The methods of everything that was sent, in order."""
        return [str(message["method"]) for message in self._sent]

    async def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._sent: list[dict[str, object]] = []

    def write(self, message: bytes) -> None:
        decoded: dict[str, object] = decode(message)
        if "method" not in decoded:
            return
        self._sent.append(decoded)
        if "id" not in decoded:
            self.notifications.append(decoded)
            return
        self.requests.append(decoded)
        self._reply(open_envelope(message).id)

    def _reply(self, id: object) -> None:
        assert self._receiver is not None
        assert id is not UNSET
        if not self._replies:
            self._receiver.closed("the mock has no more replies")
            return
        reply = self._replies.pop(0)
        raw = bytes(id)  # type: ignore[call-overload]
        line = failure(raw, as_raw(reply["error"])) if "error" in reply else result(raw, as_raw(reply))
        asyncio.get_running_loop().call_soon(self._receiver.received, line)

    async def aclose(self) -> None:
        self.abort("closed")
