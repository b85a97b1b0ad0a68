"""A command while it runs: its streams, its deadline, and the end of everything it started."""

import asyncio
import os
from typing import Self

from plait.errors import ExecutionFailed
from plait.providers.tools.captured import Captured
from plait.upstream.process import Child

KEEP_BYTES = 1024 * 1024
"""Of each output stream; clients are sent what `results.maxBytes` allows of it."""
FLOOD_BYTES = 64 * 1024 * 1024
"""A command that writes more than this is ended: to read it would slow down everybody else."""
MODES = ("wb", "rb", "rb")
LAST_WAIT = 5.0
"""Seconds for killed processes to be gone, and for what they wrote before to reach us."""


class Running:
    """Around a child that waits for its order; on leaving, nothing of it is left."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._flooded = False
        self._transports: list[asyncio.BaseTransport] = []
        self.stdout = Captured(KEEP_BYTES, FLOOD_BYTES, self._flood)
        self.stderr = Captured(KEEP_BYTES, FLOOD_BYTES, self._flood)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._child.kill()
        await asyncio.wait((self._child.gone,), timeout=LAST_WAIT)
        for transport in self._transports:
            transport.close()

    async def begin(self, order: bytes) -> None:
        """Read both streams from now on, and give the launcher its order; it waits for the end of it."""
        loop = asyncio.get_running_loop()
        pipes = [os.fdopen(fd, mode, 0) for fd, mode in zip(self._child.take_pipes(), MODES, strict=True)]
        try:
            stdout, _ = await loop.connect_read_pipe(lambda: self.stdout, pipes[1])
            stderr, _ = await loop.connect_read_pipe(lambda: self.stderr, pipes[2])
            writer, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, pipes[0])
        except BaseException:
            for pipe in pipes:
                pipe.close()
            raise
        self._transports += [stdout, stderr, writer]
        writer.write(order)
        writer.close()  # after the last byte

    async def finish(self, deadline: float, late: str) -> int:
        """Wait for the end of the command and of its output; its return code."""
        try:
            async with asyncio.timeout_at(deadline):
                code = await self._child.wait()
        except TimeoutError:
            self._child.kill()
            await self._drain()
            raise ExecutionFailed(f"{late}, and was ended{self._so_far()}") from None
        await self._drain()
        if self._flooded:
            limit = FLOOD_BYTES // 1024**2
            raise ExecutionFailed(f"it wrote more than {limit} MiB, and was ended{self._so_far()}")
        return code

    async def _drain(self) -> None:
        """Nobody of the tree outlives its first process, so the pipes end now."""
        await asyncio.wait((self.stdout.ended, self.stderr.ended), timeout=LAST_WAIT)

    def _flood(self) -> None:
        self._flooded = True
        self._child.kill()

    def _so_far(self) -> str:
        streams = (("stdout", self.stdout.text), ("stderr", self.stderr.text))
        parts = [f"\n--- {name} so far ---\n{text}" for name, text in streams if text]
        return "".join(parts) or "; it had written nothing"
