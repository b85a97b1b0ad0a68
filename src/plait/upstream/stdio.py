"""A server in a child process, spoken to over its stdin and stdout."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from plait.config.command import resolve_command
from plait.errors import ConfigError, UpstreamUnavailable
from plait.outbox import Outbox
from plait.tasks import seen_through
from plait.upstream.base import Receiver
from plait.upstream.containers import Container
from plait.upstream.process import Child, Guardian
from plait.upstream.stderr import StderrLog
from plait.wire.framing import LineFramer, Oversized, as_line
from plait.wire.spec import MAX_FROM_SERVERS

HIGH_WATER = 1024 * 1024
"""Past this many unread bytes a server lags, and further requests wait."""
ENDLESS = 16
"""A line of this many times the limit has no end: the server is ended instead."""
SETTLE = 0.1
"""Seconds between the end of a server's output and its exit status, either of which may come first."""


class StdioTransport:
    """Starts the command when opened; ends its whole process tree when closed."""

    def __init__(
        self,
        command: str,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        *,
        cwd: str | None = None,
        limit: int = MAX_FROM_SERVERS,
        memory: int | None = None,
        processes: int | None = None,
        guardian: Guardian | None = None,
        log: StderrLog | None = None,
        container: Container | None = None,
    ) -> None:
        self._argv = (command, *args)
        self._env = dict(env) if env is not None else {"PATH": os.environ.get("PATH", os.defpath)}
        self._cwd = cwd
        self._limit = limit
        self._rlimits = (memory, processes)
        self._own_guardian = None if guardian is not None else Guardian()
        self._guardian = guardian or self._own_guardian
        self.log = log or StderrLog()
        self._container = container
        self.lagging = False
        self._child: Child | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._outbox: Outbox | None = None
        self._readers: list[asyncio.ReadTransport] = []
        self._watch: asyncio.Task[None] | None = None
        self._drain_waiters: list[asyncio.Future[None]] = []
        self._aborted: str | None = None
        self._tell: Callable[[str], None] = lambda reason: None

    def __repr__(self) -> str:
        return f"<StdioTransport {self._argv[0]}, pid {self._child.pid if self._child else None}>"

    # ---- opening and closing

    async def open(self, receiver: Receiver) -> None:
        """Raises UpstreamUnavailable, which says where we looked, if the command cannot be started.

        Takes milliseconds, and is not torn by a cancellation: what is open can be closed, halves cannot.
        """
        try:
            await seen_through(asyncio.get_running_loop().create_task(self._start(receiver)))
        except BaseException:
            await self.aclose()
            raise

    async def _start(self, receiver: Receiver) -> None:
        child = self._child = await self._spawn()
        loop = asyncio.get_running_loop()
        stdin, stdout, stderr = (
            os.fdopen(fd, mode, 0) for fd, mode in zip(child.take_pipes(), ("wb", "rb", "rb"), strict=True)
        )
        # The writer first: a server that answers at once must find it.
        transport, _ = await loop.connect_write_pipe(lambda: _Stdin(self), stdin)
        self._stdin = transport
        self._outbox = Outbox(transport, receiver.alone)
        self._stdin.set_write_buffer_limits(high=HIGH_WATER)
        ended = loop.create_future()
        reader, self._stdout = await loop.connect_read_pipe(
            lambda: _Stdout(self, receiver, self._limit, ended), stdout
        )
        errors, _ = await loop.connect_read_pipe(lambda: _Stderr(self.log), stderr)
        self._readers += [reader, errors]
        self._tell = receiver.closed
        self._watch = loop.create_task(self._watch_end(child, ended))

    async def _spawn(self) -> Child:
        assert self._guardian is not None
        memory, processes = self._rlimits
        try:
            executable = resolve_command(self._argv[0], self._env.get("PATH", os.defpath), self._cwd)
            argv = (executable, *self._argv[1:])
            return await self._guardian.spawn(argv, self._env, self._cwd, memory=memory, processes=processes)
        except (OSError, ConfigError) as problem:
            raise UpstreamUnavailable(f"cannot start {self._argv[0]}: {problem}") from problem

    async def _watch_end(self, child: Child, ended: "asyncio.Future[None]") -> None:
        """Tell the receiver once that nothing more will come, as soon as that is certain.

        Output normally ends with the process. A grandchild may hold the pipe open, and a process may
        close its output and live on: neither keeps a caller waiting.
        """
        exited = asyncio.get_running_loop().create_task(child.wait())
        try:
            await asyncio.wait((exited, ended), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait((exited, ended), timeout=SETTLE)
            self._tell(self._aborted or self._describe(exited))
        finally:
            exited.cancel()
        self._wake()
        child.kill()

    def _describe(self, exited: "asyncio.Task[int]") -> str:
        if not exited.done():
            return "it closed its output"
        code = exited.result()
        how = f"it exited with code {code}" if code >= 0 else f"it was ended by signal {-code}"
        return f"{how}; last stderr: {self.log.last}" if self.log.last else how

    async def aclose(self) -> None:
        """Close its input, wait, SIGTERM, wait, SIGKILL: the whole tree, and never for long."""
        self._wake()
        if self._stdin is not None and self._outbox is not None:
            self._outbox.flush()
            self._stdin.close()
        code = self._child.returncode if self._child is not None else 0
        try:
            if self._child is not None:
                await self._child.stop()
        finally:
            for reader in self._readers:
                reader.close()
            if self._watch is not None and not self._watch.done():
                self._watch.cancel()
                self._tell(self._aborted or "closed")  # it has not come to that, and calls may wait
            try:
                if self._container is not None:
                    await self._container.remove(self._child, unasked=code is not None and code >= 0)
            finally:
                if self._own_guardian is not None:
                    await self._own_guardian.aclose()

    def abort(self, reason: str) -> None:
        self._aborted = reason
        if self._child is not None:
            self._child.kill()

    # ---- writing

    def write(self, message: bytes) -> None:
        if self._outbox is not None:
            self._outbox.write(as_line(message))

    @property
    def stuck(self) -> str | None:
        if self.lagging:
            return "it does not read its input"
        if self._stdout.framer.partial:
            return "it stopped in the middle of a message"
        return None

    def drained(self) -> "asyncio.Future[None]":
        waiter = asyncio.get_running_loop().create_future()
        self._drain_waiters.append(waiter)
        return waiter

    def pause(self) -> None:
        self.lagging = True

    def resume(self) -> None:
        self.lagging = False
        self._wake()

    def _wake(self) -> None:
        for waiter in self._drain_waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._drain_waiters.clear()


class _Stdin(asyncio.BaseProtocol):
    """The child's stdin: tells the transport when the server lags."""

    def __init__(self, owner: StdioTransport) -> None:
        self._owner = owner

    def pause_writing(self) -> None:
        self._owner.pause()

    def resume_writing(self) -> None:
        self._owner.resume()


class _Stdout(asyncio.Protocol):
    """The child's stdout: one line is one message."""

    def __init__(
        self, owner: StdioTransport, receiver: Receiver, limit: int, ended: "asyncio.Future[None]"
    ) -> None:
        self.framer = LineFramer(limit)
        self._owner = owner
        self._receiver = receiver
        self._limit = limit
        self._ended = ended

    def data_received(self, data: bytes) -> None:
        for line in self.framer.feed(data):
            if type(line) is Oversized:
                self._receiver.oversized(line.head, self._limit)
            else:
                self._receiver.received(cast(bytes, line))
        if self.framer.skipped > ENDLESS * self._limit:
            self._owner.abort("it wrote a line without end")
            self._receiver.closed("it wrote a line without end")

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._ended.done():
            self._ended.set_result(None)


class _Stderr(asyncio.Protocol):
    """The child's stderr: always drained, so that a server that complains a lot never blocks."""

    def __init__(self, log: StderrLog) -> None:
        self._log = log

    def data_received(self, data: bytes) -> None:
        self._log.feed(data)
