"""The folder the file tools may use: everything in it, and nothing beside it."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from stat import S_IMODE, S_ISDIR, S_ISREG

from plait.providers.tools.beneath import MOST_LINKS, OpenBeneath, Outside, best_way

# Without O_NONBLOCK the opening of a pipe waits for whoever is at its other end.
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
FOLDER = os.O_RDONLY | os.O_DIRECTORY


class NotPlain(Exception):
    """A pipe, a device or a socket: nothing that has a content."""


class Workspace:
    """Paths in it are relative to it, or absolute and inside. Blocking: call it from a thread."""

    def __init__(self, root: Path, way: OpenBeneath | None = None) -> None:
        self.root = Path(os.path.abspath(root))
        self._way = way
        """None until it is needed: to find the best one takes a moment."""

    def __repr__(self) -> str:
        return f"<Workspace {self.root}>"

    def relative(self, path: str) -> str:
        """The same path from the workspace. Not yet a promise that it stays inside."""
        if not path.startswith("/"):
            return path or "."
        parts = PurePosixPath("/" + path.lstrip("/")).parts
        for root in (self.root, Path(os.path.realpath(self.root))):
            if parts[: len(root.parts)] == root.parts:
                return "/".join(parts[len(root.parts) :]) or "."
        raise Outside(path)

    # ---- opening

    @contextmanager
    def open(self, path: str, flags: int) -> Iterator[int]:
        descriptor = self._open(self.relative(path), flags)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _open(self, relative: str, flags: int) -> int:
        """The workspace itself is found by its name each time: it may have been made anew."""
        way = self._way = self._way or best_way()
        root = os.open(self.root, FOLDER | os.O_CLOEXEC)
        try:
            return way(root, relative, flags)
        finally:
            os.close(root)

    def read(self, path: str, most: int) -> bytes:
        """The content of a plain file. One that has more than `most` bytes is an EFBIG."""
        with self.open(path, READ) as descriptor:
            state = os.fstat(descriptor)
            if S_ISDIR(state.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            if not S_ISREG(state.st_mode):
                raise NotPlain(path)
            return _read_all(descriptor, most)

    # ---- writing

    def write(self, path: str, data: bytes) -> bool:
        """All of it or nothing: a new file takes the old one's place. Was there none before?

        The mode of the old file is kept. Missing folders are made.
        """
        folder, name = self._place(path)
        try:
            return _replace(folder, name, data)
        finally:
            os.close(folder)

    def _place(self, path: str) -> tuple[int, str]:
        """The open folder and the name in it. A link is followed to where it leads, inside."""
        relative = self.relative(path)
        for _ in range(MOST_LINKS):
            head, _, name = relative.rpartition("/")
            if name in ("", ".", ".."):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            folder = self._make(head or ".")
            try:
                target = os.readlink(name, dir_fd=folder)
            except OSError as problem:
                if problem.errno in (errno.EINVAL, errno.ENOENT):
                    return folder, name
                os.close(folder)
                raise
            os.close(folder)
            if target.startswith("/"):
                raise Outside(path)
            relative = f"{head}/{target}" if head else target
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)

    def _make(self, relative: str) -> int:
        """Open a folder, and make what is missing of it, each in the one above."""
        parts = relative.split("/")
        missing: list[str] = []
        while True:
            try:
                folder = self._open("/".join(parts) or ".", FOLDER)
                break
            except FileNotFoundError:
                if not parts or parts[-1] == "..":
                    raise
                missing.append(parts.pop())
        for name in reversed(missing):
            folder = _enter(folder, name)
        return folder


def _enter(folder: int, name: str) -> int:
    """The folder of that name in this one, which is closed."""
    try:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
        return os.open(name, FOLDER | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)


def _replace(folder: int, name: str, data: bytes) -> bool:
    old = _existing(folder, name)
    draft = f".plait-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o666 if old is None else 0o600, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if old is not None:
                with suppress(OSError):  # only root gives files away
                    os.fchown(descriptor, old.st_uid, old.st_gid)
                os.fchmod(descriptor, S_IMODE(old.st_mode))
            os.fsync(descriptor)
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)
        raise
    return old is None


def _existing(folder: int, name: str) -> os.stat_result | None:
    """What a new content may take the place of: a plain file that may be written."""
    try:
        state = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if S_ISDIR(state.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not S_ISREG(state.st_mode):
        raise NotPlain(name)
    # Renaming over a file needs no leave of the file's: whoever made it read-only meant it.
    if not os.access(name, os.W_OK, dir_fd=folder):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    return state


def _read_all(descriptor: int, most: int) -> bytes:
    """Not by the size it says it has: it may grow, or not know it."""
    with open(descriptor, "rb", buffering=0, closefd=False) as file:
        content = bytearray()
        while len(content) <= most:
            piece = file.read(min(1024 * 1024, most + 1 - len(content)))
            if not piece:
                return bytes(content)
            content += piece
    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
