"""The transport of one life of a scripted server."""

import asyncio
import inspect
import itertools
from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec.json import decode

from plait.providers.context import Report
from plait.tasks import TaskSet
from plait.testing.script import Held, Message, Refusal
from plait.upstream.base import Immediate, Receiver
from plait.wire.envelope import encode
from plait.wire.spec import INTERNAL_ERROR

Reported = Callable[[Message], Report | None]
"""From the params of a request to a way to report its progress, where the client wants some."""


class Answering(Protocol):
    requests: list[tuple[str, Message]]
    notifications: list[tuple[str, Message]]

    def answer(self, method: str, params: Message, report: Reported) -> object: ...


class Wire(Immediate):
    """What is said here arrives at the next turn of the loop, never in between."""

    def __init__(self, server: Answering) -> None:
        self._server = server
        self._tasks = TaskSet()
        self._working: dict[object, asyncio.Task[None]] = {}
        self._ids = itertools.count(1)
        self._questions: dict[object, asyncio.Future[Message]] = {}
        self.replies: dict[object, Message] = {}
        """The answers to the server's own questions, by their ids."""
        self.closed = False

    async def open(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def write(self, message: bytes) -> None:
        if self.closed:
            return
        decoded: Message = decode(message)
        params = decoded.get("params", {})
        assert isinstance(params, dict)
        if "method" not in decoded:
            self._answered(decoded)
        elif "id" not in decoded:
            self._told(str(decoded["method"]), params)
        else:
            self._server.requests.append((str(decoded["method"]), params))
            self._reply(decoded["id"], self._answer(str(decoded["method"]), params))

    def _told(self, method: str, params: Message) -> None:
        self._server.notifications.append((method, params))
        if method == "notifications/cancelled":
            working = self._working.pop(params.get("requestId"), None)
            if working is not None:
                working.cancel()

    # ---- answering

    def _answer(self, method: str, params: Message) -> object:
        try:
            return self._server.answer(method, params, self._report)
        except Exception as problem:
            return _failed(problem)

    def _reply(self, id: object, answer: object) -> None:
        if inspect.isawaitable(answer):
            self._working[id] = self._tasks.start(self._later(id, answer))
        elif isinstance(answer, Held):
            answer.answer = lambda result: self._reply(id, result)
        elif isinstance(answer, Refusal):
            self.say({"jsonrpc": "2.0", "id": id, "error": answer})
        else:
            self.say({"jsonrpc": "2.0", "id": id, "result": answer})

    async def _later(self, id: object, answer: Awaitable[object]) -> None:
        try:
            result = await answer
        except Exception as problem:
            result = _failed(problem)
        self._working.pop(id, None)
        self._reply(id, result)

    def _report(self, params: Message) -> Report | None:
        meta = params.get("_meta")
        if not isinstance(meta, dict) or "progressToken" not in meta:
            return None

        def report(value: float, total: float | None, message: str | None) -> None:
            told = {"progress": value, "total": total, "message": message}
            known = {key: each for key, each in told.items() if each is not None}
            progress = {"progressToken": meta["progressToken"], **known}
            self.say({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})

        return report

    # ---- asking

    def expect(self) -> tuple[str, asyncio.Future[Message]]:
        """An id for a question of the server's, and what its answer will come to."""
        id = f"question-{next(self._ids)}"
        self._questions[id] = asyncio.get_running_loop().create_future()
        return id, self._questions[id]

    def _answered(self, message: Message) -> None:
        self.replies[message["id"]] = message
        question = self._questions.pop(message["id"], None)
        if question is not None and not question.done():
            question.set_result(message)

    # ---- its end

    def say(self, message: object) -> None:
        """Anything, as a message of the server's."""
        asyncio.get_running_loop().call_soon(self._deliver, encode(message))

    def _deliver(self, line: bytes) -> None:
        if self._receiver is not None and not self.closed:
            self._receiver.received(line)

    def abort(self, reason: str) -> None:
        if not self.closed:
            self.closed = True
            for question in self._questions.values():
                question.cancel()
            super().abort(reason)

    async def aclose(self) -> None:
        self.abort("closed")
        await self._tasks.aclose()


def _failed(problem: Exception) -> Refusal:
    """A mistake in the script: whoever called sees what it was."""
    return Refusal(INTERNAL_ERROR, f"the script failed: {type(problem).__name__}: {problem}")
