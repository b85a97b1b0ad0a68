"""Start servers as child processes, and stop each with everything it started."""

import asyncio
import contextlib
import errno
import marshal
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

from plait.upstream.child import LAST_WAIT, Child, open_ends
from plait.upstream.keeper import HEADER_SIZE

__all__ = ["Child", "Guardian"]

START_LIMIT = 10.0
"""Seconds until a server's process must have been started."""
ATTEMPTS = 3
"""How many guardians may be killed under one spawn before it fails."""

# A package of that name that is only a path: what plait's own __init__ imports is no burden for a
# guardian, which starts in a few milliseconds and stays small.
BOOT = """\
import sys
package = sys.modules["plait"] = type(sys)("plait")
package.__path__ = [sys.argv[1]]
from plait.upstream.guardian import main
main()
"""


class Guardian:
    """Starts servers through one small process that outlives us just long enough to end them all."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._children: set[Child] = set()
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process id of the guardian itself, once there is one."""
        return self._process.pid if self._process is not None else None

    async def spawn(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None = None,
        *,
        memory: int | None = None,
        processes: int | None = None,
    ) -> Child:
        """Start a server with exactly this environment; its command is looked up on its own PATH.

        `memory` bounds the bytes of data of each of its processes. `processes` is what the kernel
        makes of it: how many its user may have in all, when it wants one more; root is exempt.
        OSError tells, as subprocess would, why the command cannot be run.
        """
        order = encode_order(argv, env, cwd, memory, processes)
        try:
            async with asyncio.timeout(START_LIMIT):
                child, report = await self._start_somehow(order)
        except TimeoutError:
            self._abandon(self._channel)  # it may be what is stuck; its keepers do not need it
            late = f"The process was not started within {START_LIMIT:g} s"
            raise TimeoutError(errno.ETIMEDOUT, late, argv[0]) from None
        match report:
            case ["started", _]:
                return child
            case ["failed", stage, number]:
                raise launch_error(stage, int(number), argv[0], cwd)
        raise ChildProcessError(errno.ECHILD, "The guardian process is killed again and again", argv[0])

    async def _start_somehow(self, order: bytes) -> tuple[Child, list[str]]:
        """The child and what its keeper reported, which is nothing if every guardian was killed."""
        for _ in range(ATTEMPTS - 1):
            child, report = await self._start(order)
            if report:
                return child, report
        return await self._start(order)

    async def _start(self, order: bytes) -> tuple[Child, list[str]]:
        """One attempt; the report is empty when the guardian or the new keeper was killed under it."""
        near, far = open_ends()
        child = Child(near)
        self._children = {child, *(other for other in self._children if not other.finished)}
        report: list[str] = []
        channel = None
        try:
            channel = await self._hand_over(far.leash)
            far.leash.close()  # or we would never learn that nobody else has it any more
            report = await child.launch(order, far.pipes)
        finally:
            far.close()
            if report[:1] != ["started"]:
                child.kill()
            if channel is None:
                child.release()
        if not report:
            self._abandon(channel)
        return child, report

    async def _hand_over(self, leash: socket.socket) -> socket.socket:
        """Give the guardian its end of a leash, starting one if there is none; the channel it went by."""
        while True:
            if self._closed:
                raise RuntimeError("this guardian is closed; it starts nothing any more")
            channel = self._channel or self._open()
            try:
                socket.send_fds(channel, [b"+"], [leash.fileno()])
                return channel
            except BlockingIOError:
                await asyncio.sleep(0.005)  # hundreds before us are being started right now
            except ConnectionError:
                self._abandon(channel)

    def _open(self) -> socket.socket:
        """Start the guardian process."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            try:
                self._process = start_guardian(theirs.fileno())
            except OSError as error:
                ours.close()
                reason = f"The guardian process cannot start: {error.strerror}"
                raise OSError(error.errno, reason, sys.executable) from error
        self._channel = ours
        return ours

    def _abandon(self, channel: socket.socket | None) -> None:
        """Give up the guardian behind this channel, if it is still ours; the next spawn starts another."""
        if channel is not None and channel is self._channel and self._process is not None:
            channel.close()
            self._channel = None
            self._process.kill()  # it may have stopped, not ended
            self._process.wait()
            self._process = None

    async def aclose(self) -> None:
        """Kill every server that still runs, with its tree, and end the guardian."""
        self._closed = True
        for child in self._children:
            child.kill()
        try:
            if self._children:
                await asyncio.wait([child.gone for child in self._children], timeout=LAST_WAIT)
            await self._dismiss()
        finally:
            for child in self._children:
                child.release()
            self._children.clear()
            self._abandon(self._channel)

    async def _dismiss(self) -> None:
        """Let the guardian end by itself; it may have strays to kill."""
        if self._channel is not None:
            with contextlib.suppress(TimeoutError, OSError):
                self._channel.shutdown(socket.SHUT_WR)
                async with asyncio.timeout(LAST_WAIT):
                    await asyncio.get_running_loop().sock_recv(self._channel, 1)


def start_guardian(channel: int) -> "subprocess.Popen[bytes]":
    """Run the guardian, out of reach of our terminal's signals and without what our environment holds."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", BOOT, package, str(channel)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[channel],
        env={name: value for name, value in os.environ.items() if name.startswith(("LD_", "DYLD_"))},
        start_new_session=True,
    )


def encode_order(
    argv: Sequence[str], env: Mapping[str, str], cwd: str | None, memory: int | None, processes: int | None
) -> bytes:
    """What a keeper needs to know; ValueError for what no system could run."""
    arguments = [os.fsencode(argument) for argument in argv]
    environment = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
    directory = None if cwd is None else os.fsencode(cwd)
    if not arguments or not arguments[0]:
        raise ValueError("there is no command to run")
    if any(b"\0" in text for text in (*arguments, *environment, *environment.values(), directory or b"")):
        raise ValueError(f"{argv[0]!r}: an argument, a variable or the directory contains a NUL character")
    if any(not name or b"=" in name for name in environment):
        raise ValueError(f"{argv[0]!r}: the name of a variable is empty or contains '='")
    body = marshal.dumps((arguments, environment, directory, memory, processes))
    return len(body).to_bytes(HEADER_SIZE, "little") + body


def launch_error(stage: str, number: int, command: str, cwd: str | None) -> OSError:
    """The error of a failed start: FileNotFoundError, PermissionError … by its number."""
    reason = os.strerror(number)
    match stage:
        case "command":
            return OSError(number, reason, command)
        case "directory":
            return OSError(number, f"The working directory cannot be used: {reason}", cwd)
    return OSError(number, f"No process could be made for it ({stage}): {reason}", command)
