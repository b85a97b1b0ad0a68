"""The files of an audit folder: the key, the register, and tapes that are only ever appended to."""

import contextlib
import errno
import fcntl
import logging
import os
import re
import stat
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from plait.config.folders import state_folder
from plait.pipeline.ledger_chain import SLOT, Key, first_check, slot

_log = logging.getLogger("plait.audit")

Write = Callable[[int, bytes], int]
"""The seam for tests: `os.write`, or one that fails."""

KEY = "key"
REGISTER = "register"
SEGMENT = re.compile(r"(?P<stream>\d{8}T\d{12}Z-\d+-[0-9a-f]{8})\.(?P<number>\d{4,})\.jsonl")

_KEY_BYTES = 32
_KEY_TEXT = re.compile(rb"[0-9a-f]{64}")
_PATIENCE = 0.5
"""Seconds that we try to get a lock."""


def audit_folder(environ: Mapping[str, str]) -> Path:
    """Where the records are if nobody says otherwise."""
    return state_folder(environ) / "audit"


def new_stream() -> str:
    """A name that no other process takes, and that sorts by time."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}-{os.getpid()}-{os.urandom(4).hex()}"


def segment_path(folder: Path, stream: str, number: int) -> Path:
    return folder / f"{stream}.{number:04d}.jsonl"


def segments(folder: Path) -> dict[str, list[Path]]:
    """The files of every stream, in order."""
    found: dict[str, list[tuple[int, Path]]] = {}
    with contextlib.suppress(FileNotFoundError):
        for path in folder.iterdir():
            if match := SEGMENT.fullmatch(path.name):
                found.setdefault(match["stream"], []).append((int(match["number"]), path))
    return {stream: [path for _, path in sorted(numbered)] for stream, numbered in sorted(found.items())}


def segments_of(folder: Path, stream: str) -> list[Path]:
    """The files of one stream, in order."""
    files = [path for path in folder.glob(f"{stream}.*.jsonl") if SEGMENT.fullmatch(path.name)]
    return sorted(files, key=lambda path: (len(path.name), path.name))


def make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


# ---- the key


def load_key(path: Path) -> Key:
    """The key in this file. Whoever can read it can forge records, so that is said if it is not secret."""
    text = path.read_bytes().removesuffix(b"\n")
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        _log.warning("%s can be read by others, who could forge audit records: chmod 600", path)
    if not _KEY_TEXT.fullmatch(text):
        raise OSError(errno.EINVAL, "this is no audit key; put the right file back, or move the folder", path)
    return Key(bytes.fromhex(text.decode()))


def obtain_key(folder: Path) -> Key:
    """The folder's key, made if it has none. Of several processes at once all get the same."""
    path = folder / KEY
    try:
        return load_key(path)
    except FileNotFoundError:
        _make_key(path)
    return load_key(path)


def _make_key(path: Path) -> None:
    """A link is made to a file that is complete, and by one process only: nobody reads half a key."""
    draft = path.with_name(f".{path.name}-{os.getpid()}-{os.urandom(4).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        _write_all(descriptor, os.urandom(_KEY_BYTES).hex().encode() + b"\n")
        os.fsync(descriptor)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        os.close(descriptor)
        draft.unlink()


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


# ---- the register


class Register:
    """One entry for every stream: how far it has come. Each process writes its own entry only."""

    def __init__(self, folder: Path) -> None:
        self.descriptor = os.open(folder / REGISTER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def enter(self, key: Key, stream: str) -> int:
        """The number of the new entry."""
        _lock(self.descriptor)
        try:
            number = -(-os.fstat(self.descriptor).st_size // SLOT)
            entry = slot(stream, 0, first_check(key, stream))
            if os.pwrite(self.descriptor, entry, number * SLOT) != SLOT:
                os.ftruncate(self.descriptor, number * SLOT)
                raise OSError(errno.ENOSPC, "no room for an entry in the audit register")
        finally:
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        return number

    def mark(self, number: int, entry: bytes) -> None:
        os.pwrite(self.descriptor, entry, number * SLOT)

    def close(self) -> None:
        os.close(self.descriptor)


# ---- tapes


class Tape:
    """A new file that whole lines are appended to."""

    def __init__(self, path: Path, write: Write = os.write) -> None:
        self.path = path
        self.size = 0
        self._write = write
        self.torn = False
        """Whether a part of a line could not be taken back yet."""
        self._announced = False
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self.descriptor = os.open(path, flags, 0o600)

    def append(self, line: bytes) -> None:
        """The whole line or nothing of it."""
        if self.torn:
            self._mend()
        try:
            done = self._write(self.descriptor, line)
            while done != len(line):
                done += self._write(self.descriptor, line[done:])
        except OSError:
            with contextlib.suppress(OSError):
                self.torn = True
                self._mend()
            raise
        self.size += len(line)

    def _mend(self) -> None:
        """Take back what is left of a line that did not fit."""
        os.ftruncate(self.descriptor, self.size)
        self.torn = False

    def sync(self) -> None:
        """Wait until the disk has it. Runs in a thread of its own."""
        _data_sync(self.descriptor)
        if os.fstat(self.descriptor).st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, "the audit file was removed while in use", self.path)
        if not self._announced:
            # The name of a new file is part of its folder, which is not synced with the file.
            _sync_folder(self.path.parent)
            self._announced = True

    def close(self) -> None:
        os.close(self.descriptor)


# ---- signs of life


def hold(path: Path) -> int:
    """Lock a stream's first file: a sign of life that ends with the process, however that ends."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    with contextlib.suppress(OSError):  # without locks here, readers take us for dead; nothing worse
        _lock(descriptor)
    return descriptor


def is_held(path: Path) -> bool:
    """Whether the process that writes this stream is still there."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _lock(descriptor: int) -> None:
    """Never for long: others have such locks for microseconds, and nobody must stop the gateway by one."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.001)


# macOS has no fdatasync.
_data_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
