"""A real `plait up` process, for tests that talk to it over HTTP."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

PATIENCE = 30.0


class Served:
    """`async with Served(config) as served:` starts it and waits until it listens; leaving ends it."""

    def __init__(
        self,
        *configs: Path,
        arguments: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        files = [word for config in configs for word in ("-c", str(config))]
        self._argv = [sys.executable, "-m", "plait", "up", "--port", "0", *files, *arguments]
        self._environ = {**os.environ, **(environ or {})}
        self._cwd = cwd
        self.lines: list[str] = []
        """What it said on its output so far."""
        self.stderr = ""
        self._more = asyncio.Event()

    async def __aenter__(self) -> Self:
        self.process = await asyncio.create_subprocess_exec(
            *self._argv,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._environ,
            cwd=self._cwd,
        )
        self._log = asyncio.get_running_loop().create_task(self._listen())
        try:
            found = re.search(r"http://\S+/mcp", await self.said("plait "))
            assert found is not None, self.lines
            self.url = found[0]
        except BaseException:
            self.process.kill()
            raise
        return self

    async def _listen(self) -> None:
        assert self.process.stderr is not None
        while data := await self.process.stderr.read(65536):
            self.stderr += data.decode(errors="replace")
            self._more.set()

    async def noted(self, words: str) -> None:
        """Wait until it has said these words on its error output."""
        async with asyncio.timeout(PATIENCE):
            while words not in self.stderr:
                self._more.clear()
                await self._more.wait()

    async def said(self, words: str) -> str:
        """The next line with these words in it."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while line := (await self.process.stdout.readline()).decode():
                self.lines.append(line.rstrip("\n"))
                if words in line:
                    return line
        raise AssertionError(f"it ended without saying {words!r}: {self.lines}, {self.stderr}")

    async def stop(self, number: int = signal.SIGTERM) -> int:
        """Tell it to stop, and wait until it has; its exit code."""
        if self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            code = await self.stop()
        except BaseException:
            self.process.kill()
            raise
        await self._log
        if error is None:
            assert code == 0, self.stderr
            assert "a bug in plait" not in self.stderr
            assert "Traceback" not in self.stderr

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2].removesuffix("/mcp"))
