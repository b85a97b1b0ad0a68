"""A clock that jumps: when everything waits, the time of the next timer has come. Tests never really wait.

`@jumping` runs an async test on such a clock. `asyncio.sleep(30)` then means "let 30 seconds pass", and
takes none; a wait that nothing can end fails at once. A test that leaves a task behind, or an error that
nobody looked at, fails too.
"""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import ParamSpec

Parameters = ParamSpec("Parameters")

REAL_PATIENCE = 10.0
"""Real seconds for something outside the loop, such as a thread, to wake us."""


class Deadlock(Exception):
    """Every task waits, and no timer runs."""


class JumpingLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop, with a time that only moves while nothing else can."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        self._now += seconds


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: JumpingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0 if timeout is not None else REAL_PATIENCE)
        if events or timeout == 0:
            return events
        if timeout is None:
            raise Deadlock("every task waits, and no timer runs")
        self._loop.jump(timeout)
        return []


def jumping(test: Callable[Parameters, Coroutine[object, object, None]]) -> Callable[Parameters, None]:
    """Run an async test on a clock that jumps."""

    @functools.wraps(test)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        with asyncio.Runner(loop_factory=JumpingLoop) as runner:
            runner.run(_watched(test(*args, **kwargs)))

    return run


async def _watched(test: Coroutine[object, object, None]) -> None:
    errors: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    await test
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, f"the test left tasks behind: {left}"
    assert not errors, f"nobody looked at {errors}"


async def quiet() -> None:
    """Wait until everything else waits: a jumping clock moves no sooner."""
    await asyncio.sleep(1e-6)


def now() -> float:
    """Seconds since the test began, on its own clock."""
    return asyncio.get_running_loop().time()
