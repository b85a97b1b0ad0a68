"""Landlock and the other promises a process can make to the kernel about itself, straight from libc.

The launcher starts with every command, and `ctypes` alone would add a third to its start-up: the C
module below it has to do. What a kernel or system does not have is not asked for.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as typing's, which is too slow to import here
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# <linux/landlock.h>: what each version of the interface added.
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
ALL_FILE_RIGHTS = {1: (1 << 13) - 1, 2: REFER, 3: TRUNCATE, 5: IOCTL_DEV}
ALL_TCP = 0b11  # bind, connect; since version 4
ALL_SCOPES = 0b11  # abstract sockets, signals; since version 6
ONLY_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""The rights that a rule on a file, not a folder, may name."""

LOOK = EXECUTE | READ_FILE | READ_DIR
RULE_PATH_BENEATH = 1
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on every architecture
ASK_VERSION = 1

PR_CAPBSET_READ, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS = 23, 24, 38, 39
# The first ones, CAP_CHOWN to CAP_FSETID, are about files: a container's workspace often belongs to others.
KEPT_CAPABILITIES = 5
RTLD_NOW = 2


class Kernel:
    """What this process can ask of its kernel. Each answer to `restrict` and the like is for ever."""

    def __init__(self) -> None:
        self._syscall = load("syscall")
        self._prctl = load("prctl")

    def version(self) -> int:
        """The version of Landlock's interface, 0 where there is none."""
        return max(self._syscall(CREATE_RULESET, None, 0, ASK_VERSION), 0)

    def restrict(self, rules: Iterable[tuple[str, int]], *, network: bool) -> None:
        """Allow this process these rights beneath these paths, and nothing else of the kind."""
        version = self.version()
        if version == 0:
            return
        handled = file_rights(version)
        attributes = [handled]
        if version >= 4:
            attributes.append(0 if network else ALL_TCP)
        if version >= 6:
            attributes.append(ALL_SCOPES)
        packed = b"".join(value.to_bytes(8, sys.byteorder) for value in attributes)
        ruleset = check(self._syscall(CREATE_RULESET, packed, len(packed), 0))
        for path, rights in rules:
            self._add_rule(ruleset, path, rights & handled)
        check(self._syscall(RESTRICT_SELF, ruleset, 0))
        os.close(ruleset)

    def _add_rule(self, ruleset: int, path: str, rights: int) -> None:
        """Allow rights beneath a path; one that is not there needs no rule."""
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return
        if not os.path.isdir(path):
            rights &= ONLY_FILES
        rule = rights.to_bytes(8, sys.byteorder) + descriptor.to_bytes(4, sys.byteorder)
        check(self._syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, rule, 0))
        os.close(descriptor)

    def can_forbid_new_privileges(self) -> bool:
        """Whether there is such a promise."""
        return self._prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) >= 0

    def forbid_new_privileges(self) -> None:
        """No setuid program will give this process, or any below it, more rights than it has."""
        if self.can_forbid_new_privileges():
            check(self._prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))

    def drop_capabilities(self) -> None:
        """Give up most of what root may do; files stay root's. Others have nothing to give up."""
        number = KEPT_CAPABILITIES
        while os.geteuid() == 0 and self._prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0:
            self._prctl(PR_CAPBSET_DROP, number, 0, 0, 0)  # in a container it may be gone already
            number += 1


def file_rights(version: int) -> int:
    """Every right on files that this version knows, and so can take away."""
    return sum(rights for since, rights in ALL_FILE_RIGHTS.items() if since <= version)


def check(result: int) -> int:
    """The result of a call, or the OSError that it tells of."""
    if result < 0:
        import _ctypes  # noqa: PLC0415  (it is there: the call was made through it)

        raise OSError(_ctypes.get_errno(), os.strerror(_ctypes.get_errno()))
    return result


def load(name: str) -> Callable[..., int]:
    """A function of libc that takes integers and buffers and remembers errno; one that fails elsewhere."""
    if sys.platform != "linux":
        return lambda *_: -1
    try:
        import _ctypes  # noqa: PLC0415  (not built everywhere)
    except ImportError:
        return lambda *_: -1

    class Int(_ctypes._SimpleCData):  # type: ignore[type-arg]
        _type_ = "i"

    class Function(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
        _restype_ = Int

    return Function(_ctypes.dlsym(_ctypes.dlopen(None, RTLD_NOW), name))  # type: ignore[arg-type]
