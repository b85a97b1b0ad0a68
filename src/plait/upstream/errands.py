"""Run a short command through the guardian, and hear what it said."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from plait.upstream.child import LAST_WAIT, Child
from plait.upstream.process import Guardian

KEPT = 64 * 1024
"""Bytes of each of its outputs; more are read and dropped."""
SETTLE = 1.0
"""Seconds between its end and the end of its output, which somebody else may hold open."""


class Outcome(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    output: str
    complaint: str


async def run_errand(
    guardian: Guardian, argv: Sequence[str], env: Mapping[str, str], cwd: str | None = None
) -> Outcome:
    """Nothing of it is left afterwards, nor when it is cancelled. OSError if it cannot be started."""
    child = await guardian.spawn(argv, env, cwd)
    outputs: list[_Output] = []
    try:
        await _listen(child, outputs)
        code = await child.wait()
        await asyncio.wait([output.ended for output in outputs], timeout=SETTLE)
        return Outcome(code, *(output.text for output in outputs))
    finally:
        child.kill()
        for output in outputs:
            output.close()
        await asyncio.wait((child.gone,), timeout=LAST_WAIT)


async def _listen(child: Child, outputs: list["_Output"]) -> None:
    loop = asyncio.get_running_loop()
    pipes = child.take_pipes()
    os.close(pipes.stdin)
    files = [os.fdopen(descriptor, "rb", 0) for descriptor in (pipes.stdout, pipes.stderr)]
    try:
        for file in files:
            _, output = await loop.connect_read_pipe(_Output, file)
            outputs.append(output)
    except BaseException:
        for file in files[len(outputs) :]:
            file.close()
        raise


class _Output(asyncio.Protocol):
    """One output of a command, read to its end."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._data = b""
        self._transport: asyncio.BaseTransport | None = None

    @property
    def text(self) -> str:
        return self._data.decode(errors="replace")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data[: KEPT - len(self._data)]

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
