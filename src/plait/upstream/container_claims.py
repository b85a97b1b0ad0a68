"""What must be known to remove a container later, in a file that is locked while its owner lives.

The kernel lets go of a lock when the process ends that holds it, however that ends: from then on a claim
is anybody's to clear up. In the folder of all claims there are

    TOKEN.json   how to call the engine; locked (flock) by the plait whose server's container it is
    TOKEN.cid    the container's id, written by the engine; empty until there is a container

and nothing of a container that has been removed.
"""

import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import msgspec
from msgspec import Struct

YOUNG = 60.0
"""Seconds for a daemon to finish a container that it was asked for by somebody who is dead."""
_NAMES = frozenset(("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "SSH_AUTH_SOCK"))
_PREFIXES = ("DOCKER_", "CONTAINER", "PODMAN_", "STORAGE_", "XDG_")
_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,127}", re.ASCII)


class Engine(Struct, frozen=True):
    """How to call the engine that has a container. Words and variables may hold secrets."""

    server: str
    """Whose container it is, for people."""
    words: tuple[str, ...]
    """What every call of it begins with."""
    environment: Mapping[str, str]
    cwd: str | None

    def __repr__(self) -> str:
        return f"<Engine of server '{self.server}'>"


def relevant(environment: Mapping[str, str]) -> dict[str, str]:
    """What an engine needs of a server's environment to find its daemon, and no more."""
    return {
        name: value for name, value in environment.items() if name in _NAMES or name.startswith(_PREFIXES)
    }


class Claim:
    """One file in the folder, and its lock, which is ours until we release it."""

    def __init__(self, path: Path, engine: Engine, lock: int) -> None:
        self.path = path
        self.engine = engine
        self._lock: int | None = lock

    def __repr__(self) -> str:
        return f"<Claim {self.token} of server '{self.engine.server}'>"

    @classmethod
    def create(cls, folder: Path, engine: Engine) -> Self:
        """Raises OSError if the folder cannot be used."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{os.urandom(12).hex()}.json"
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        claim = cls(path, engine, lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a sweep may look at the empty file for a microsecond
            # Not msgspec's encoder: what is no UTF-8 in a variable must come back as it was.
            os.write(lock, json.dumps(msgspec.to_builtins(engine)).encode())
        except BaseException:
            claim.forget()
            raise
        return claim

    @classmethod
    def adopt(cls, path: Path) -> Self | None:
        """A claim whose owner is dead; None if it lives, or somebody else is at it."""
        try:
            lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None  # just gone, or not ours
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with open(lock, "rb", closefd=False) as file:
                claim = cls(path, msgspec.convert(json.loads(file.read()), Engine), lock)
        except OSError:
            os.close(lock)
            return None
        except ValueError:
            _drop_torn(path, lock)
            return None
        if os.fstat(lock).st_nlink == 0:
            claim.release()  # somebody else has just finished with it
            return None
        return claim

    @property
    def token(self) -> str:
        """What is unique about it: its container's label."""
        return self.path.stem

    @property
    def cidfile(self) -> Path:
        return self.path.with_suffix(".cid")

    @property
    def young(self) -> bool:
        return _is_young(self.path)

    def touch(self) -> None:
        """Start its youth anew."""
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.path)

    def forget(self) -> None:
        """There is nothing left to remove."""
        for path in (self.cidfile, self.path):
            path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Leave it as it is, to whoever comes next."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def read_id(cidfile: Path) -> str | None:
    """The id of a container, if there is one already."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        text = cidfile.read_text(encoding="ascii").strip()
        if _ID.fullmatch(text):
            return text
    return None


def _drop_torn(path: Path, lock: int) -> None:
    """A claim is being written right now, or its writer was killed then: before it started anything."""
    if not _is_young(path):
        path.unlink(missing_ok=True)
    os.close(lock)


def _is_young(path: Path) -> bool:
    try:
        return abs(time.time() - path.stat().st_mtime) < YOUNG
    except FileNotFoundError:
        return False
