"""Run a command's coroutine on the fastest loop there is."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

Result = TypeVar("Result")


def run(work: Coroutine[object, object, Result]) -> Result:
    try:
        import uvloop  # noqa: PLC0415  absent on Windows
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
