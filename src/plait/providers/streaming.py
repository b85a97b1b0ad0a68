"""Tools that stream: an async generator yields events, and its caller gets one result of them (seed 004).

A client of MCP waits for one answer, so the events are buffered (see buffering.py). While they come, their
progress and their text are told to clients that asked for such. A generator is always read by a task of its
own, which sees its cleaning up through: whether it ends, is too much, or its caller gives up.
"""

import asyncio
import contextlib
import inspect
import logging
import math
from collections.abc import AsyncIterable, Awaitable
from typing import Protocol, runtime_checkable

from plait.errors import ToolError
from plait.providers.buffering import Buffer
from plait.providers.builtin import in_words
from plait.providers.context import ToolContext
from plait.providers.stream_events import StreamEvent, as_event, notice_of
from plait.wire.tools import CallToolResult, ToolDefinition

_log = logging.getLogger("plait.provider")

GRACE = 5.0
"""Seconds for a stream to clean up, and to end after it has failed."""
_BREATH = 64
"""After so many events others have their turn: a generator that never waits would let nobody else run."""
_STEP = 1e-6
"""How much a progress event without a number is more than the one before: it "MUST increase"."""

Events = AsyncIterable[object]


@runtime_checkable
class StreamingToolProvider(Protocol):
    """A source of tools whose results come bit by bit. Mounted, it is a server like any other."""

    @property
    def namespace(self) -> str:
        """The prefix it is mounted under."""

    async def list_tools(self) -> list[ToolDefinition]: ...

    def stream_tool(self, name: str, arguments: dict[str, object]) -> Events | Awaitable[Events]:
        """An async generator function, or a function that gives an async iterator. Raises NotFound for a
        tool it does not have, before its first event."""


async def stream(
    provider: StreamingToolProvider, name: str, arguments: dict[str, object], context: ToolContext
) -> CallToolResult:
    """Call a tool that streams; its one result."""
    started = provider.stream_tool(name, arguments)
    return await collect(await started if inspect.isawaitable(started) else started, context, name)


async def collect(events: Events, context: ToolContext, name: str) -> CallToolResult:
    """Read a stream to its end, or until it is too much, or too slow. The result says how it went.

    What it raises before its first event is raised here: it has not begun (S4-08).
    """
    return await _Reading(name, context).run(events)


class _Reading:
    """One stream, from its first event until it has cleaned up."""

    def __init__(self, name: str, context: ToolContext) -> None:
        self._name = name
        self._context = context
        self._buffer = Buffer(context.limits)
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + context.limits.seconds
        self._silence = context.keep_time()
        self._grace_ends: float | None = None
        self._problem: Exception | None = None
        self._deadline = asyncio.timeout_at(self._until())
        self._stopped = False
        self._progress = 0.0

    async def run(self, events: Events) -> CallToolResult:
        task = self._context.tasks.start(self._read(events))
        try:
            await self._finished(task)
        except asyncio.CancelledError:
            self._context.cancelled = True
            await self._stop(task)
            raise
        if task.done() and task.cancelled() and not self._stopped:
            self._buffer.fail("the stream was ended before it was done")
        return self._result()

    async def _finished(self, task: asyncio.Task[None]) -> None:
        try:
            async with self._deadline:
                await asyncio.wait((task,))
        except TimeoutError:
            # A stream that has failed already, or only cleans up, has had its grace.
            if not self._buffer.over and not self._buffer.is_error:
                self._too_slow()
            await self._stop(task)

    def _too_slow(self) -> None:
        if self._loop.time() >= self._end:
            self._buffer.cut(f"not done within {self._context.limits.seconds:g} s", "stream.seconds")
        else:
            self._buffer.cut(f"nothing came for {self._silence:g} s", "timeout")

    async def _stop(self, task: asyncio.Task[None]) -> None:
        """Its cleaning up is waited for, but not for ever."""
        self._stopped = True
        task.cancel()
        await asyncio.wait((task,), timeout=GRACE)
        if not task.done():
            _log.warning("tool %s: its stream did not end within %g s of being stopped", self._name, GRACE)

    def _result(self) -> CallToolResult:
        problem = self._problem
        if problem is not None:
            if not self._buffer.events and not self._buffer.over:
                raise problem
            if not isinstance(problem, ToolError):
                _log.error("tool %s failed in the middle of its stream", self._name, exc_info=problem)
            if not self._buffer.over:
                self._buffer.fail(in_words(problem))
        return self._buffer.result()

    # ---- the stream's own task

    async def _read(self, events: Events) -> None:
        try:
            async for given in events:
                self._take(as_event(given))
                if self._buffer.over or self._stopped:
                    break
                if self._buffer.events % _BREATH == 0:
                    await asyncio.sleep(0)
        except Exception as problem:
            self._problem = problem
        finally:
            self._reschedule()
            await self._close(events)

    async def _close(self, events: Events) -> None:
        """`break` alone leaves a generator's cleaning up to the garbage collector."""
        close = getattr(events, "aclose", None)
        if close is not None:
            try:
                await close()
            except Exception:
                _log.exception("tool %s failed to clean up after its stream", self._name)

    def _take(self, event: StreamEvent | None) -> None:
        skipped = self._buffer.skipped
        self._buffer.take(event)
        self._reschedule()
        if self._buffer.skipped > skipped:
            self._context.count(
                "unknown stream event", f"{self._name}: {event.kind if event else 'no event'}"
            )
        elif event is not None and not self._stopped:
            self._tell(event)

    # ---- what the caller is told meanwhile

    def _tell(self, event: StreamEvent) -> None:
        if event.kind == "progress":
            self._advance(event)
            return
        notice = notice_of(event)
        if notice is not None:
            self._context.log(notice.data, notice.level, notice.logger)

    def _advance(self, event: StreamEvent) -> None:
        percentage = event.number("percentage")
        value = event.number("progress", "value") if percentage is None else percentage
        total = event.number("total") if percentage is None else 100.0
        if value is None or not math.isfinite(value):
            value = self._progress + _STEP
        self._progress = max(self._progress, value)
        self._context.progress(value, total, event.text("message"))

    # ---- its time

    def _reschedule(self) -> None:
        with contextlib.suppress(RuntimeError):  # its time is up
            self._deadline.reschedule(self._until())

    def _until(self) -> float:
        """Until when the next event must come; after its end or its failure there is a last time."""
        now = self._loop.time()
        if self._buffer.over or self._buffer.is_error or self._problem is not None:
            if self._grace_ends is None:
                self._grace_ends = now + GRACE
            return self._grace_ends
        return self._end if self._silence is None else min(self._end, now + self._silence)
