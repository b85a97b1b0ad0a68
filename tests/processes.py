"""What a test can see of processes from outside, and how to wait for it."""

import asyncio
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

PATIENCE = 10.0
"""Seconds a test waits for what should take milliseconds, before it fails."""
PATH = {"PATH": os.environ.get("PATH", os.defpath)}


def python(code: str) -> list[str]:
    """The command of a server that is this code; starts fast."""
    return [sys.executable, "-I", "-S", "-c", code]


def exists(pid: int) -> bool:
    """Whether there is such a process, be it a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def alive(pid: int) -> bool:
    """Whether there is such a process and it is not a zombie, which only its parent can remove."""
    return exists(pid) and (sys.platform != "linux" or status(pid)[0] not in "ZX")


def status(pid: int) -> list[str]:
    """Its fields in /proc/PID/stat from the state on: state, parent, group, session …"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ["X"]


def parent_of(pid: int) -> int:
    """The process id of its parent."""
    return int(status(pid)[1])


def children_of(pid: int) -> list[int]:
    """The process ids of its children, zombies included."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [child for child in pids if status(child)[1:2] == [str(pid)]]


def environment_of(pid: int) -> dict[str, str]:
    """The environment it was started with."""
    pairs = Path(f"/proc/{pid}/environ").read_text(errors="surrogateescape").split("\0")[:-1]
    return dict(pair.split("=", 1) for pair in pairs)


def open_descriptors(pid: int) -> int:
    """How many descriptors it has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


async def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait for something outside this process that nobody will tell us about."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  (there is no event for it)
            await asyncio.sleep(0.005)


async def until_gone(pids: Iterable[int], seconds: float = PATIENCE) -> None:
    """Wait until none of these processes is alive."""
    left = set(pids)
    try:
        await until(lambda: not any(alive(pid) for pid in left), seconds)
    except TimeoutError:
        raise AssertionError(f"still alive: {[pid for pid in left if alive(pid)]}") from None


async def read_line(descriptor: int) -> str:
    """The next line from a pipe, which stays as it is."""
    loop = asyncio.get_running_loop()
    line = b""
    async with asyncio.timeout(PATIENCE):
        while not line.endswith(b"\n"):
            readable = asyncio.Event()
            loop.add_reader(descriptor, readable.set)
            try:
                await readable.wait()
            finally:
                loop.remove_reader(descriptor)
            byte = os.read(descriptor, 1)
            if not byte:
                raise EOFError(f"the pipe ended after {line!r}")
            line += byte
    return line.decode().strip()
