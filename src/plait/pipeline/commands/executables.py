"""Find the file that a command's name stands for, and see that nobody else can replace it."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from plait.pipeline.commands.verdicts import Unacceptable

DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin:/run/current-system/sw/bin"


class Executable(Struct, frozen=True):
    """A program's file as it was when it was found fit."""

    path: str
    state: tuple[int, ...]


class Executables:
    """Finds programs, and remembers them as long as their files stay the same."""

    def __init__(self, path: str, roots: Sequence[Path]) -> None:
        self._folders = [folder for folder in path.split(":") if folder.startswith("/")]
        self._roots = [os.path.realpath(root) for root in roots]
        self._found: dict[str, Executable] = {}

    def find(self, name: str) -> str:
        """The real path of a program, named alone or by an absolute path; Unacceptable says what is wrong."""
        known = self._found.get(name)
        if known is not None and _state(known.path) == known.state:
            return known.path
        executable = os.path.realpath(self._locate(name))
        if (fault := self._fault(executable)) is not None:
            raise Unacceptable("C-executable", f"{executable} is not run: {fault}")
        self._found[name] = Executable(executable, _state(executable))
        return executable

    def _locate(self, name: str) -> str:
        candidates = [name] if "/" in name else [os.path.join(folder, name) for folder in self._folders]
        for candidate in candidates:
            if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
                return candidate
        raise Unacceptable("C-executable", f"there is no program '{name}' in {':'.join(self._folders)}")

    def _fault(self, path: str) -> str | None:
        """Why a file is not to be trusted."""
        about, folder = os.stat(path), os.stat(os.path.dirname(path))
        if about.st_uid not in (0, os.geteuid()):
            return "it belongs to another user"
        if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or folder.st_mode & stat.S_IWOTH:
            return "other users can change or replace it"
        if about.st_mode & (stat.S_ISUID | stat.S_ISGID):
            return "it runs with another user's rights"
        if any(path.startswith(os.path.join(root, "")) for root in self._roots):
            return "it lies where commands and tools may write"
        return None


def _state(path: str) -> tuple[int, ...]:
    """What changes when a file is replaced, rewritten or given away; nothing when it is gone."""
    try:
        about = os.stat(path)
    except OSError:
        return ()
    return (about.st_dev, about.st_ino, about.st_mode, about.st_uid, about.st_size, about.st_mtime_ns)
