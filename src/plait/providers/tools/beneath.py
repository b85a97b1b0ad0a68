"""Open a path without ever leaving the directory it starts from, whatever somebody swaps meanwhile.

Both ways below follow links that stay inside, and refuse links that are absolute or lead out: the
directory is held open, and every step is taken from an open directory, so there is no moment in which
a name that was checked can become another file.
"""

import errno
import os
import struct
import sys
from collections.abc import Callable

OpenBeneath = Callable[[int, str, int], int]
"""From an open directory, a relative path and flags to a descriptor. Raises Outside, or OSError."""

MOST_LINKS = 40
"""As many as Linux follows."""
LONGEST_PATH = 4096
_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
_TRIES = 16


class Outside(Exception):
    """The path leads out of the directory."""


def best_way() -> OpenBeneath:
    """The kernel's, where it has one: Linux since 5.6, unless a sandbox forbids it."""
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        beneath = by_the_kernel() if sys.platform == "linux" else step_by_step
        os.close(beneath(root, ".", os.O_RDONLY | os.O_DIRECTORY))
    except (OSError, ImportError):
        return step_by_step
    finally:
        os.close(root)
    return beneath


def by_the_kernel() -> OpenBeneath:
    import ctypes  # noqa: PLC0415  only who has files to open pays for it

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long

    def open_beneath(directory: int, path: str, flags: int) -> int:
        """openat2(2): "Do not permit the path resolution to succeed if any component of the resolution
        is not a descendant of the directory indicated by dirfd"."""
        name = os.fsencode(path)
        if b"\0" in name:
            raise ValueError("embedded null character")  # to C the path would end there
        how = struct.pack("QQQ", flags | os.O_CLOEXEC, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
        for _ in range(_TRIES):
            size = ctypes.c_size_t(len(how))
            descriptor: int = syscall(ctypes.c_long(_OPENAT2), ctypes.c_int(directory), name, how, size)
            if descriptor >= 0:
                return descriptor
            code = ctypes.get_errno()
            if code == errno.EXDEV:
                raise Outside(path)
            # Somebody renamed something while ".." was resolved: the kernel asks to try again.
            if code not in (errno.EAGAIN, errno.EINTR):
                break
        raise OSError(code, os.strerror(code), path)

    return open_beneath


def step_by_step(directory: int, path: str, flags: int) -> int:
    """One component at a time, following links by hand. `..` is the directory we came from."""
    if path.startswith("/"):
        raise Outside(path)
    if len(os.fsencode(path)) >= LONGEST_PATH:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)
    trail = [directory]
    try:
        return _walk(trail, path, flags)
    finally:
        for descriptor in trail[1:]:
            os.close(descriptor)


def _walk(trail: list[int], path: str, flags: int) -> int:
    """The trail holds the directories that lead to where we are; what is on it, the caller closes."""
    ahead = path.split("/")[::-1]
    links = 0
    while ahead:
        name = ahead.pop()
        if name in ("", "."):
            continue
        if name == "..":
            if len(trail) == 1:
                raise Outside(path)
            os.close(trail.pop())
            continue
        last = not any(part not in ("", ".") for part in ahead)
        how = flags | (os.O_DIRECTORY if ahead else 0) if last else os.O_RDONLY | os.O_DIRECTORY
        try:
            descriptor = os.open(name, how | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=trail[-1])
        except OSError as problem:
            target = _link(name, trail[-1], problem)
            links += 1
            if links > MOST_LINKS or (not ahead and flags & os.O_NOFOLLOW):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path) from None
            if target.startswith("/"):
                raise Outside(path) from None
            ahead.extend(target.split("/")[::-1])
            continue
        if last:
            return descriptor
        trail.append(descriptor)
    return os.open(".", flags | os.O_CLOEXEC, dir_fd=trail[-1])


def _link(name: str, directory: int, problem: OSError) -> str:
    """Where the link leads that could not be opened. If it is none, that was the problem."""
    if problem.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
        raise problem
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError:
        raise problem from None
