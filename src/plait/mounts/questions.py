"""What a server asks back while it works: put to a client, and taken back when it no longer matters."""

import asyncio
from collections.abc import Awaitable, Callable

from plait.session.exchange import OnProgress, Reply
from plait.session.negotiation import fields_of
from plait.tasks import TaskSet
from plait.upstream.client import Answer
from plait.wire.envelope import Fields

Put = Callable[[str, Fields, OnProgress], Awaitable[Reply]]
Notify = Callable[[str, Fields], None]


class Questions:
    """The open questions of one server."""

    def __init__(self, tasks: TaskSet, notify: Notify) -> None:
        self._tasks = tasks
        self._notify = notify
        self._open: dict[bytes, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, id: bytes, method: str, params: Fields, put: Put, answer: Answer) -> None:
        self._open[id] = self._tasks.start(self._ask(id, method, params, put, answer))

    async def _ask(self, id: bytes, method: str, params: Fields, put: Put, answer: Answer) -> None:
        token = fields_of(params.get("_meta")).get("progressToken")

        def on_progress(progress: Fields) -> None:
            if token is not None:
                self._notify("notifications/progress", {**progress, "progressToken": token})

        try:
            answer(await put(method, params, on_progress))
        finally:
            self._open.pop(id, None)

    def retract(self, id: bytes) -> None:
        question = self._open.get(id)
        if question is not None:
            question.cancel()

    def retract_all(self) -> None:
        for question in tuple(self._open.values()):
            question.cancel()
