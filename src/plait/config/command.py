"""Find the program that a server's command names, or say where we looked."""

from __future__ import annotations

import os

from plait.errors import ConfigError

_SHOWN_FOLDERS = 6
# Where programs are that a client started from a desktop does not have on its PATH.
_USUAL_FOLDERS = ("/opt/homebrew/bin", "/usr/local/bin", "/usr/bin", "/bin")


class CommandNotFound(ConfigError):
    """There is no such program, or it may not be run."""


def resolve_command(command: str, path: str, cwd: str | None) -> str:
    """The absolute path of a program: on `path` if it is a bare name, else relative to `cwd`.

    `path` is the PATH that the child will have, `cwd` the folder it will run in (None: ours).
    """
    if not command or "\0" in command:
        raise CommandNotFound("the command is empty or holds a NUL character")
    if "/" in command:
        return _checked(command, os.path.abspath(os.path.join(cwd or os.curdir, command)))
    folders = [os.path.abspath(os.path.join(cwd or os.curdir, entry)) for entry in path.split(":") if entry]
    candidates = [os.path.join(folder, command) for folder in folders]
    found = next((candidate for candidate in candidates if _runs(candidate)), None)
    if found is None:
        raise _not_on_path(command, folders, candidates)
    return found


def _runs(candidate: str) -> bool:
    return os.path.isfile(candidate) and os.access(candidate, os.X_OK)


def _checked(command: str, candidate: str) -> str:
    if _runs(candidate):
        return candidate
    if command.startswith("~"):
        raise CommandNotFound(f"command '{command}' is not found: ~ is not expanded; write ${{userHome}}")
    raise CommandNotFound(f"command '{command}' cannot be run: {_fault(candidate)}")


def _fault(candidate: str) -> str:
    if os.path.isdir(candidate):
        return f"{candidate} is a folder"
    if os.path.exists(candidate):
        return f"{candidate} is not executable (chmod +x would make it so)"
    if os.path.islink(candidate):
        return f"{candidate} is a link to nothing"
    return f"{candidate} does not exist"


def _not_on_path(command: str, folders: list[str], candidates: list[str]) -> CommandNotFound:
    reasons = [f"looked in {_listed(folders)}" if folders else "PATH is empty"]
    reasons += [_fault(candidate) for candidate in candidates if os.path.lexists(candidate)]
    elsewhere = [os.path.join(folder, command) for folder in _USUAL_FOLDERS if folder not in folders]
    reasons += [f"{found} is there, but not on PATH" for found in filter(_runs, elsewhere)]
    return CommandNotFound(f"command '{command}' is not on PATH: {'; '.join(reasons)}")


def _listed(folders: list[str]) -> str:
    """The folders on one line; of a long list, its start."""
    distinct = list(dict.fromkeys(folders))
    hidden = len(distinct) - _SHOWN_FOLDERS
    shown = ", ".join(distinct[:_SHOWN_FOLDERS])
    return f"{shown} and {hidden} more" if hidden > 0 else shown
