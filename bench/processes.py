"""What the kernel says about a process: its descendants, its CPU time, its memory (Linux)."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
CLOCK_OF_SCHEDULER = 2


def descendants(root: int) -> list[int]:
    """The process and everything below it."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def command_line(pid: int) -> list[str]:
    """How it was started; empty when it is gone."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def cpu_seconds(pid: int) -> float:
    """User and system time of all its threads so far.

    The process's own CPU clock (`clock_getcpuclockid(3)`): the sum that /proc/PID/stat shows as utime and
    stime, in nanoseconds instead of hundredths of a second.
    """
    try:
        return time.clock_gettime((~pid << 3) | CLOCK_OF_SCHEDULER)
    except OSError:
        return 0.0


def resident_bytes(pid: int) -> int:
    """VmRSS: what is in memory of it, shared pages included."""
    return _kibibytes(PROC / str(pid) / "status", "VmRSS:") * 1024


def proportional_bytes(pid: int) -> int:
    """PSS: as resident, but a page shared by several processes counts for its share only."""
    return _kibibytes(PROC / str(pid) / "smaps_rollup", "Pss:") * 1024


def _kibibytes(file: Path, field: str) -> int:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(field)), 0)


def _parents() -> Iterator[tuple[int, int]]:
    for name in filter(str.isdigit, os.listdir(PROC)):
        try:
            stat = (PROC / name / "stat").read_text()
        except OSError:
            continue
        # The second field is the name in parentheses and may contain anything, so count from its end.
        yield int(name), int(stat.rpartition(")")[2].split()[1])
