"""What a program does with what the gateway says unasked: its questions, its notifications, its progress."""

import inspect
import logging
from asyncio import Task
from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec.json import decode

from plait.errors import ConfigError
from plait.notices import NotificationsBuffer
from plait.session.exchange import Exchange, OnProgress, Reply, refuse
from plait.tasks import TaskSet
from plait.upstream.client import Listener
from plait.wire.address import as_raw
from plait.wire.envelope import Fields
from plait.wire.spec import CHANGED, CLIENT_FEATURE, INTERNAL_ERROR

_log = logging.getLogger("plait.client")

Params = dict[str, object]
Answer = Mapping[str, object] | Reply
"""The result of a question; a Reply, made by `plait.refuse`, says no."""
Asked = Callable[[Params], Answer | Awaitable[Answer]]
Root = str | Mapping[str, object]
"""A URI, or an entry as the protocol has it."""
Roots = Sequence[Root] | Callable[[], Sequence[Root] | Awaitable[Sequence[Root]]]
Told = Callable[[str, Params], object]
Logged = Callable[[Params], object]
Report = Callable[[float, float | None, str | None], object]
"""Progress: how far, of how much, and a word about it."""

_USUAL: Mapping[str, Mapping[str, object]] = {"roots": {"listChanged": True}}
"""What is declared of a feature unless the program says otherwise: `Client.roots_changed` is there."""


class Handlers(Listener):
    """Functions, sync or async, one for each thing. Sync ones run in the loop: they must not block."""

    def __init__(
        self,
        *,
        sampling: Asked | None = None,
        elicitation: Asked | None = None,
        roots: Roots | None = None,
        logging: Logged | None = None,
        listener: Told | None = None,
    ) -> None:
        given: dict[str, Asked | None] = {
            "sampling/createMessage": sampling,
            "elicitation/create": elicitation,
            "roots/list": None if roots is None else _rooted(roots),
        }
        self._answering = {method: asked for method, asked in given.items() if asked is not None}
        self._logging = logging
        self._listener = listener
        self.buffer: NotificationsBuffer | None = None
        """Where changes are noted, if nobody else notes them."""
        self._tasks = TaskSet()
        self._questions: dict[bytes, Task[None]] = {}

    def capabilities(self, details: Mapping[str, object] | None = None) -> Fields:
        """What can be declared: what there is a handler for, with these details of it."""
        features = {CLIENT_FEATURE[method] for method in self._answering}
        details = details or {}
        for feature in set(CLIENT_FEATURE.values()) & set(details) - features:
            raise ConfigError(f"{feature} is declared without a handler for it; give one as {feature}=")
        usual: dict[str, object] = {name: _USUAL.get(name, {}) for name in sorted(features)}
        return {name: as_raw(value) for name, value in {**usual, **details}.items()}

    async def aclose(self) -> None:
        """Whatever is still being answered is given up."""
        await self._tasks.aclose()

    # ---- questions

    def consulted(
        self,
        id: bytes,
        method: str,
        params: Fields,
        answer: Callable[[Reply], None],
        exchange: Exchange | None,
    ) -> None:
        asked = self._answering.get(method)
        if asked is None:
            super().consulted(id, method, params, answer, exchange)
            return
        self._questions[id] = self._tasks.start(self._answer(id, method, asked, params, answer))

    async def _answer(
        self, id: bytes, method: str, asked: Asked, params: Fields, answer: Callable[[Reply], None]
    ) -> None:
        try:
            reply = await _reply(asked, params)
        except Exception as problem:
            # The server learns that it failed, not how: what is in the words may be nobody else's business.
            _log.exception("the handler of %s failed", method)
            kind = type(problem).__name__
            reply = refuse(INTERNAL_ERROR, f"{method}: the client's handler failed ({kind})")
        self._questions.pop(id, None)
        answer(reply)

    def retracted(self, id: bytes) -> None:
        question = self._questions.pop(id, None)
        if question is not None:
            question.cancel()

    # ---- notifications

    def heard(self, method: str, params: Fields) -> None:
        told = _opened(params)
        if self._logging is not None and method == "notifications/message":
            self._tell(self._logging, told)
        if self._listener is not None:
            self._tell(self._listener, method, told)
        if self.buffer is not None:
            _note(self.buffer, method, told)

    def reporting(self, report: Report) -> OnProgress:
        """Progress of one call, for this function."""

        def on_progress(params: Fields) -> None:
            told = _opened(params)
            value, total, words = (told.get(key) for key in ("progress", "total", "message"))
            self._tell(report, value, _number(total), words if isinstance(words, str) else None)

        return on_progress

    def _tell(self, told: Callable[..., object], *what: object) -> None:
        """A function that fails is its author's concern: the conversation goes on."""
        try:
            outcome = told(*what)
        except Exception:
            _log.exception("a handler failed: %r", told)
            return
        if inspect.isawaitable(outcome):
            self._tasks.start(_finished(outcome, told))


async def _finished(outcome: Awaitable[object], told: object) -> None:
    try:
        await outcome
    except Exception:
        _log.exception("a handler failed: %r", told)


async def _reply(asked: Asked, params: Fields) -> Reply:
    given = asked(_opened(params))
    answer = await given if inspect.isawaitable(given) else given
    return answer if isinstance(answer, Reply) else Reply(result=as_raw(dict(answer)))


def _rooted(roots: Roots) -> Asked:
    async def asked(params: Params) -> Answer:
        given = roots() if callable(roots) else roots
        listed = await given if inspect.isawaitable(given) else given
        return {"roots": [{"uri": root} if isinstance(root, str) else root for root in listed]}

    return asked


def _note(buffer: NotificationsBuffer, method: str, told: Params) -> None:
    if method in CHANGED:
        buffer.list_changed("")
    elif method == "notifications/resources/updated":
        buffer.updated("", str(told.get("uri", "")))


def _opened(params: Fields) -> Params:
    return {key: decode(value) for key, value in params.items()}


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) else None
