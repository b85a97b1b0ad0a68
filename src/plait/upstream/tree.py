"""Find and signal every process below this one, orphans included.

The guardian and its keepers run on this module and must start at once: `signal` would add half as
much again as the interpreter itself needs (it builds enums), so the C module below it has to do.
"""

from __future__ import annotations

import os
import select
import sys

TYPE_CHECKING = False  # as typing's, which is too slow to import here
if TYPE_CHECKING:
    import signal
    from collections.abc import Collection, Iterator
else:
    import _signal as signal

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # <sys/prctl.h>
RTLD_NOW = 2


class Bell:
    """Becomes readable when a child of this process has ended."""

    def __init__(self) -> None:
        self.reader, self._writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler nothing would be written

    def silence(self) -> None:
        """Hear every ring so far. Look for the dead after this, never before: a ring could get lost."""
        try:  # noqa: SIM105  (contextlib is slow to import)
            os.read(self.reader, 4096)
        except BlockingIOError:
            pass

    def wait(self, milliseconds: int) -> None:
        """Wait for the next ring, but no longer than this."""
        poll = select.poll()
        poll.register(self.reader, select.POLLIN)
        poll.poll(milliseconds)

    def close(self) -> None:
        """Let go of the pipe."""
        os.close(self.reader)
        os.close(self._writer)


def adopt_orphans() -> bool:
    """Become the parent of every process below us that loses its own; False where that is not possible."""
    return prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies."""
    if prctl(PR_SET_PDEATHSIG, signal.SIGKILL) and os.getppid() != parent:
        os._exit(127)  # it died before we asked


def prctl(option: int, value: int) -> bool:
    """Call prctl(2), where there is one."""
    if sys.platform != "linux":
        return False
    try:
        import _ctypes  # noqa: PLC0415  (not built everywhere; ctypes on top of it takes 2 ms more)
    except ImportError:
        return False
    address = _ctypes.dlsym(_ctypes.dlopen(None, RTLD_NOW), "prctl")  # type: ignore[arg-type]
    return bool(_ctypes.call_function(address, (option, value, 0, 0, 0)) == 0)


def strike(signals: Collection[int], group: int = 0, spare: Collection[int] = ()) -> int:
    """Send signals once to each process below this one; how many targets there were.

    Whole groups at a time: for the kernel that is one step, nobody in it can fork in between.
    PermissionError when there is somebody, but nobody that we may signal.
    """
    ours = os.getpgrp()
    # A server that has not called setsid yet is in our own group, which we must not hit; and -1 and
    # 0 would mean everybody.
    targets = {-theirs if theirs not in (0, 1, ours) else pid for pid, theirs in descendants(group, spare)}
    refused = 0
    for target in targets:
        try:
            for number in signals:
                os.kill(target, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            refused += 1
    if targets and refused == len(targets):
        raise PermissionError
    return len(targets)


def descendants(group: int = 0, spare: Collection[int] = ()) -> Iterator[tuple[int, int]]:
    """(pid, group) of every process below this one, without the spared and theirs, and of one group."""
    children: dict[int, list[tuple[int, int]]] = {}
    for pid, parent, theirs in process_table():
        children.setdefault(parent, []).append((pid, theirs))
        if group and theirs == group:
            yield pid, theirs
    generation = [os.getpid()]
    while generation:
        born = [child for pid in generation for child in children.pop(pid, ()) if child[0] not in spare]
        yield from born
        generation = [pid for pid, _ in born]


def process_table() -> Iterator[tuple[int, int, int]]:
    """(pid, parent, group) of every living process."""
    # /proc/PID/task/TID/children would be faster, but not every kernel has it, and it may skip
    # entries while processes come and go, which is exactly when we look.
    return table_from_proc() if os.path.exists("/proc/self/stat") else table_from_ps()


def table_from_proc() -> Iterator[tuple[int, int, int]]:
    """The process table as Linux shows it."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            descriptor = os.open(f"/proc/{name}/stat", os.O_RDONLY)
        except OSError:
            continue  # it ended meanwhile, or is none of our business
        try:
            stat = os.read(descriptor, 1024)
        except ProcessLookupError:
            continue
        finally:
            os.close(descriptor)
        # The name, in parentheses, may itself hold parentheses and spaces.
        state, parent, group, _ = stat[stat.rindex(b")") + 2 :].split(None, 3)
        if state != b"Z":
            yield int(name), int(parent), int(group)


def table_from_ps() -> Iterator[tuple[int, int, int]]:
    """The process table where there is no /proc, as on macOS."""
    reader, writer = os.pipe()
    ps = os.posix_spawn(
        "/bin/ps",
        ["ps", "-A", "-o", "pid=,ppid=,pgid=,state="],
        {},
        file_actions=[(os.POSIX_SPAWN_DUP2, writer, 1)],
    )
    os.close(writer)
    with open(reader, "rb") as output:
        lines = output.read().splitlines()
    os.waitpid(ps, 0)
    for line in lines:
        pid, parent, group, state = line.split(None, 3)
        if not state.startswith(b"Z") and int(pid) != ps:
            yield int(pid), int(parent), int(group)
