"""We serve a modern client: every request on its own, with all that is to be known of who sent it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw

from plait.session.eras.caller import ModernCaller
from plait.session.eras.errors import for_modern
from plait.session.eras.results import completed
from plait.session.eras.stamp import read_stamp, unstamped
from plait.session.exchange import Caller, Dispatch, Exchange, Reply, Send
from plait.wire.address import read_address
from plait.wire.envelope import EMPTY, Fields, error_body, failure, result
from plait.wire.modern import DISCOVER, GONE
from plait.wire.spec import METHOD_NOT_FOUND


class ModernServing:
    """The modern half of a serving session. It remembers nothing but that somebody came."""

    def __init__(self, welcome: Callable[[str], Raw], connection: Caller, server: Raw | None) -> None:
        """`server` is what we call ourselves on every result."""
        self.visitor: ModernCaller | None = None
        """Whoever sent the first modern request, if one came."""
        self._welcome = welcome
        self._connection = connection
        self._server = server

    def receive(
        self, id: bytes, method: str, params: Fields, meta: Fields | None, refusal: Raw | None
    ) -> Send | Dispatch:
        """The order of the checks is the specification's: stamp, revision, method, params.

        `refusal` is why nothing can be served under this id, if that is so. Raises RemoteProtocolError.
        """
        stamp = read_stamp(method, meta)
        if isinstance(stamp, Raw):
            return Send(failure(id, stamp))
        if refusal is not None:
            return Send(failure(id, refusal))
        caller = ModernCaller(self._connection, id, stamp)
        self.visitor = self.visitor or caller
        if method in GONE:
            unknown = error_body(METHOD_NOT_FOUND, f"Method not found in {stamp.revision}: {method}")
            return Send(failure(id, unknown))
        if method == DISCOVER:
            return Send(result(id, completed(method, id, self._welcome(stamp.revision), self._server)))
        params, meta = unstamped(params, meta or {})
        return Dispatch(Exchange(id, method, params, read_address(method, params), caller, meta))

    def answer(self, exchange: Exchange, reply: Reply) -> bytes:
        id = exchange.id
        if reply.error is not None:
            return failure(id, for_modern(reply.error, exchange.caller.capabilities))
        payload = reply.result or EMPTY
        return result(id, completed(exchange.method, id, payload, self._server, asks=reply.asks))
