"""A running server as we see it: its pipes, its end, and the leash that its keeper holds."""

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import sys
from typing import NamedTuple, TypeVar

from plait.upstream.keeper import TERMINATE

PIPE_SIZE = 256 * 1024
"""Of a server's input and output where the system allows it: fewer wake-ups for a big message."""
LAST_WAIT = 5.0
"""Seconds to wait for the end of killed processes. They cannot refuse, but a stuck disk can hold them."""

T = TypeVar("T")


class Pipes(NamedTuple):
    """Three descriptors: a server's standard input, output and error, or our ends of them."""

    stdin: int
    stdout: int
    stderr: int

    def close(self) -> None:
        """Close all three."""
        for descriptor in self:
            os.close(descriptor)


class Ends(NamedTuple):
    """One side of everything that connects us with a server and its keeper."""

    leash: socket.socket
    pipes: Pipes

    def close(self) -> None:
        """Close this side."""
        self.leash.close()
        self.pipes.close()


class Child:
    """A running server. Whoever spawned it takes its pipes, and stops it even if it has exited."""

    def __init__(self, ends: Ends) -> None:
        loop = asyncio.get_running_loop()
        self.pid = 0
        self.stdin, self.stdout, self.stderr = ends.pipes
        self._owned = list(ends.pipes)
        self._leash = ends.leash
        self._unread = b""
        self._terminating = False
        self._launched: asyncio.Future[list[str]] = loop.create_future()
        self._exited: asyncio.Future[int] = loop.create_future()
        self.gone: asyncio.Future[None] = loop.create_future()
        """Done when the whole tree has ended, not only the server; not to be cancelled."""
        loop.add_reader(self._leash, self._hear)

    def __repr__(self) -> str:
        return f"<Child pid={self.pid} returncode={self.returncode}>"

    @property
    def returncode(self) -> int | None:
        """The exit code, or minus the signal that ended the server; None while it runs."""
        return self._exited.result() if self._exited.done() else None

    @property
    def finished(self) -> bool:
        """Whether nothing is left to be done about it."""
        return self.gone.done() and not self._owned

    def take_pipes(self) -> Pipes:
        """Our ends of the pipes, which the caller must close from now on."""
        if len(self._owned) < 3:
            raise RuntimeError(f"the pipes of process {self.pid} are taken or closed already")
        self._owned.clear()
        return Pipes(self.stdin, self.stdout, self.stderr)

    async def wait(self) -> int:
        """Wait until the server itself has ended, whatever it left running; its return code."""
        return await asyncio.shield(self._exited)  # many may wait, and each be cancelled alone

    async def stop(self, patience: float = 2.0) -> None:
        """End the server and its tree: wait (its input is closed), SIGTERM, wait, SIGKILL.

        Bounded, even against a process that cannot die; when cancelled, it kills at once.
        """
        self._close(self.stdin)  # only: a server that ends in order may have something to say
        try:
            await asyncio.wait((self._exited,), timeout=patience)
            if not self._exited.done():
                self._terminate()
                await asyncio.wait((self.gone,), timeout=patience)
        finally:
            self.kill()
        await asyncio.wait((self.gone,), timeout=LAST_WAIT)

    def kill(self) -> None:
        """Kill the whole tree now, without waiting for its end."""
        # Only our half: the news still comes. OSError: the keeper has ended already.
        with contextlib.suppress(OSError):
            self._leash.shutdown(socket.SHUT_WR)
        self._close(self.stdin, self.stdout, self.stderr)

    def _terminate(self) -> None:
        # Once: many programs take a second SIGTERM for impatience.
        if not self._terminating:
            self._terminating = True
            with contextlib.suppress(OSError):
                self._leash.send(TERMINATE)

    async def launch(self, order: bytes, pipes: Pipes) -> list[str]:
        """Give the keeper its order and hear what became of it; nothing when the keeper is lost."""
        try:
            sent = socket.send_fds(self._leash, [order], pipes)
            if sent < len(order):
                await asyncio.get_running_loop().sock_sendall(self._leash, memoryview(order)[sent:])
        except ConnectionError:
            return []
        return await self._launched

    def release(self) -> None:
        """Let go of the keeper: it has ended, or is not to be waited for any longer."""
        if self._leash.fileno() != -1:
            asyncio.get_running_loop().remove_reader(self._leash)
            self._leash.close()
        settle(self._launched, [])
        settle(self._exited, -signal.SIGKILL)  # the keeper was killed, and so was its server
        settle(self.gone, None)

    def _hear(self) -> None:
        try:
            news = self._leash.recv(4096)
        except BlockingIOError:
            return
        except ConnectionError:
            news = b""
        *lines, self._unread = (self._unread + news).split(b"\n")
        for line in lines:
            self._learn(line.decode().split())
        if not news:
            self.release()

    def _learn(self, words: list[str]) -> None:
        match words:
            case ["exited", code]:
                settle(self._exited, int(code))
            case ["started", pid]:
                self.pid = int(pid)
                settle(self._launched, words)
            case _:
                settle(self._launched, words)

    def _close(self, *descriptors: int) -> None:
        for descriptor in descriptors:
            if descriptor in self._owned:
                self._owned.remove(descriptor)
                os.close(descriptor)


def open_ends() -> tuple[Ends, Ends]:
    """Our side, which does not block, and the far one."""
    with contextlib.ExitStack() as undo:
        near, far = socket.socketpair()
        undo.callback(near.close)
        undo.callback(far.close)
        ends: list[int] = []
        for _ in range(3):
            ends += os.pipe()
            undo.callback(os.close, ends[-1])
            undo.callback(os.close, ends[-2])
        undo.pop_all()
    ours, theirs = Pipes(ends[1], ends[2], ends[4]), Pipes(ends[0], ends[3], ends[5])
    for descriptor in ours:
        os.set_blocking(descriptor, False)
    near.setblocking(False)
    for descriptor in (ours.stdin, ours.stdout):
        enlarge(descriptor)
    return Ends(near, ours), Ends(far, theirs)


def enlarge(pipe: int) -> None:
    """Make a pipe bigger, where the system allows it."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # the user has many big pipes already
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_SIZE)


def settle(future: "asyncio.Future[T]", value: T) -> None:
    """Set a result unless somebody was faster."""
    if not future.done():
        future.set_result(value)
