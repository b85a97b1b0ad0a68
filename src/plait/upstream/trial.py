"""A server that is being greeted: it may end at the first question, and be opened anew as if nothing was."""

from plait.session.exchange import Exchange
from plait.upstream.client import Answer, Listener
from plait.wire.envelope import Fields


class Trial(Listener):
    """Passes on all that the server says, but tells of its end only once the greeting is over."""

    def __init__(self, inner: Listener) -> None:
        self._inner = inner
        self._over = False
        self._end: str | None = None

    def passed(self) -> None:
        """It is greeted, and mounted: from now on its end is everybody's business."""
        self._over = True
        if self._end is not None:
            self._inner.ended(self._end)

    def heard(self, method: str, params: Fields) -> None:
        self._inner.heard(method, params)

    def consulted(
        self, id: bytes, method: str, params: Fields, answer: Answer, exchange: Exchange | None
    ) -> None:
        self._inner.consulted(id, method, params, answer, exchange)

    def retracted(self, id: bytes) -> None:
        self._inner.retracted(id)

    def counted(self, what: str, detail: str) -> None:
        self._inner.counted(what, detail)

    def ended(self, reason: str) -> None:
        self._end = reason
        if self._over:
            self._inner.ended(reason)
