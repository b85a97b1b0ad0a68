"""The file tools: read, write, edit, list and search, inside the workspace only."""

import asyncio
import errno
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import Annotated, TypeVar

from plait.errors import ExecutionFailed, PermissionDenied
from plait.providers.tools.beneath import Outside
from plait.providers.tools.searching import Search
from plait.providers.tools.workspace import FOLDER, NotPlain, Workspace
from plait.wire.text import printable

Value = TypeVar("Value")

MOST_BYTES = 16 * 1024 * 1024
"""Of a file that is read, edited or written: no message is larger either."""
MOST_ENTRIES = 2_000
MOST_HITS = 200
SEARCH_SECONDS = 20.0
LONGEST_NAME = 300

PathName = Annotated[str, "A path in the workspace: relative to it, or absolute and inside it."]


class FileTools:
    """Everything here blocks, and so runs in a thread; the words are for a model."""

    def __init__(self, workspace: Workspace, *, most_bytes: int = MOST_BYTES) -> None:
        self._workspace = workspace
        self._most_bytes = most_bytes
        self._writing = threading.Lock()
        """An edit reads and then writes: two at once would lose one."""

    def functions(self) -> Sequence[Callable[..., object]]:
        return (self.read_file, self.write_file, self.edit_file, self.list_directory, self.search_files)

    async def read_file(
        self,
        path: PathName,
        offset: Annotated[int, "The first line wanted; the file begins with line 1."] = 1,
        limit: Annotated[int | None, "How many lines; all of them by default."] = None,
    ) -> str:
        """Read a text file of the workspace, or some lines of it."""

        def read() -> str:
            with speaking("read_file", path):
                return _lines(_as_text(self._workspace.read(path, self._most_bytes), path), offset, limit)

        return await asyncio.to_thread(read)

    async def write_file(self, path: PathName, content: Annotated[str, "All of the new content."]) -> str:
        """Write a file of the workspace: a new one, or all of an old one anew. Missing folders are made."""

        def write() -> str:
            with speaking("write_file", path), self._writing:
                data = self._checked(content)
                created = self._workspace.write(path, data)
            return f"{'created' if created else 'replaced'} {_shown(path)}: {len(data)} bytes"

        return await asyncio.to_thread(write)

    async def edit_file(
        self,
        path: PathName,
        old_text: Annotated[str, "What is there now, exactly; it must occur once."],
        new_text: Annotated[str, "What shall be there instead."],
        replace_all: Annotated[bool, "Replace it wherever it occurs."] = False,
    ) -> str:
        """Replace a piece of text in a file of the workspace by another."""

        def edit() -> str:
            with speaking("edit_file", path), self._writing:
                old = self._workspace.read(path, self._most_bytes)
                new, line, count = _edited(old, old_text, new_text, path, replace_all=replace_all)
                self._workspace.write(path, new)
            what = f"at line {line}" if count == 1 else f"in {count} places, the first at line {line}"
            return f"edited {_shown(path)} {what}"

        return await asyncio.to_thread(edit)

    async def list_directory(self, path: PathName = ".") -> str:
        """List a folder of the workspace: one line for each entry; folders end in a slash."""

        def entries() -> str:
            with speaking("list_directory", path), self._workspace.open(path, FOLDER) as folder:
                return _listing(folder)

        return await asyncio.to_thread(entries)

    async def search_files(
        self,
        text: Annotated[str, "The words to find in files, taken literally; none: files by name only."] = "",
        pattern: Annotated[str, "Which files: a glob on the name (*.py) or the path (src/**/*.ts)."] = "*",
        path: PathName = ".",
    ) -> str:
        """Find files of the workspace by name, or the lines in them that hold some text."""
        search = Search(self._workspace, pattern, text, most=MOST_HITS, seconds=SEARCH_SECONDS)

        def hits() -> str:
            with speaking("search_files", path):
                return _hits(search, path)

        try:
            return await asyncio.to_thread(hits)
        except asyncio.CancelledError:
            search.cancelled = True
            raise

    def _checked(self, content: str) -> bytes:
        data = content.encode()
        if len(data) > self._most_bytes:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return data


@contextmanager
def speaking(tool: str, path: str) -> Iterator[None]:
    """Whatever goes wrong with a path, in words that help; never a path of the machine's own."""
    name = _shown(path)
    try:
        yield
    except Outside:
        raise PermissionDenied(
            tool,
            f"{name} is outside the workspace; use a path relative to the workspace, such as 'src/main.py'",
        ) from None
    except NotPlain:
        raise ExecutionFailed(f"{name} is a pipe, a device or a socket, not a file") from None
    except UnicodeEncodeError:
        raise ExecutionFailed("half a character (a lone surrogate) cannot be written") from None
    except ValueError:
        raise ExecutionFailed("a path cannot hold a NUL character") from None
    except OSError as problem:
        raise ExecutionFailed(_reason(problem, name)) from None


_REASONS = {
    errno.ENOENT: "there is no {name}; list_directory shows what there is",
    errno.EISDIR: "{name} is a folder, not a file; list_directory shows what is in it",
    errno.ENOTDIR: "{name}: a part of the path is a file, not a folder",
    errno.EACCES: "{name} may not be read or written: its permissions forbid it",
    errno.EPERM: "{name} may not be read or written: its permissions forbid it",
    errno.EROFS: "{name} cannot be written: the disk is read-only",
    errno.ENOSPC: "{name} cannot be written: the disk is full",
    errno.EDQUOT: "{name} cannot be written: the disk quota is used up",
    errno.ENAMETOOLONG: "{name}: the name is too long",
    errno.ELOOP: "{name}: too many links in the path, or a link that leads to itself",
    errno.EFBIG: f"{{name}} is too large: the limit is {MOST_BYTES // (1024 * 1024)} MiB",
    errno.ENXIO: "{name} is a pipe, a device or a socket, not a file",
}


def _reason(problem: OSError, name: str) -> str:
    words = _REASONS.get(problem.errno or 0)
    return (
        words.format(name=name) if words is not None else f"{name}: {(problem.strerror or 'failed').lower()}"
    )


def _shown(path: str) -> str:
    """A path as it can be told: names may hold newlines, and bytes that are no text."""
    try:
        text = os.fsencode(path).decode(errors="backslashreplace")
    except UnicodeEncodeError:
        text = ascii(path)[1:-1]
    text = printable(text).replace("\n", "\\n").replace("\t", "\\t")
    return f"'{text}'" if len(text) <= LONGEST_NAME else f"'{text[:LONGEST_NAME]}…'"


def _as_text(content: bytes, path: str) -> str:
    """Text that is not UTF-8 throughout is read as far as it is; what is no text at all is not read."""
    if b"\0" in content[:8192]:
        raise ExecutionFailed(f"{_shown(path)} is not a text file ({len(content)} bytes)")
    return content.decode(errors="replace")


def _lines(text: str, offset: int, limit: int | None) -> str:
    if offset <= 1 and limit is None:
        return text
    lines = text.split("\n")
    start = max(0, offset - 1)
    end = len(lines) if limit is None else min(len(lines), start + max(0, limit))
    if start >= len(lines):
        raise ExecutionFailed(f"there is no line {offset}: the file has {len(lines)}")
    part = "\n".join(lines[start:end])
    if end == len(lines):
        return part
    return f"{part}\n[lines {start + 1} to {end} of {len(lines)}; go on with offset {end + 1}]"


def _edited(
    old: bytes, old_text: str, new_text: str, path: str, *, replace_all: bool
) -> tuple[bytes, int, int]:
    """The new content, the line of the first change, and how many there are. Other bytes stay as they are."""
    if not old_text:
        raise ExecutionFailed("old_text is empty: say what shall be replaced, or use write_file")
    was, becomes = old_text.encode(), new_text.encode()
    if was not in old and b"\r\n" in old:
        # Models write plain newlines, also for files that end their lines as Windows does.
        was, becomes = was.replace(b"\n", b"\r\n"), becomes.replace(b"\n", b"\r\n")
    count = old.count(was)
    if count == 0:
        raise ExecutionFailed(
            f"old_text does not occur in {_shown(path)}; read the file again: every blank and newline counts"
        )
    if count > 1 and not replace_all:
        raise ExecutionFailed(
            f"old_text occurs {count} times in {_shown(path)}; give more of its surroundings, or replace_all"
        )
    return old.replace(was, becomes), old.count(b"\n", 0, old.index(was)) + 1, count


def _listing(folder: int) -> str:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    lines = [_entry(entry, folder) for entry in found[:MOST_ENTRIES]]
    if len(found) > MOST_ENTRIES:
        lines.append(f"[{len(found) - MOST_ENTRIES} more of {len(found)}]")
    return "\n".join(lines) or "[empty]"


def _entry(entry: "os.DirEntry[str]", folder: int) -> str:
    name = _shown(entry.name)[1:-1]
    try:
        state = entry.stat(follow_symlinks=False)
        if S_ISDIR(state.st_mode):
            return f"{name}/"
        if S_ISLNK(state.st_mode):
            return f"{name} -> {_shown(os.readlink(entry.name, dir_fd=folder))[1:-1]}"
    except OSError:  # it has vanished meanwhile
        return name
    return f"{name} ({state.st_size} bytes)" if S_ISREG(state.st_mode) else f"{name} (not a file)"


def _hits(search: Search, path: str) -> str:
    found = search.run(path)
    lines = [
        f"{_shown(hit.path)[1:-1]}:{hit.line}: {printable(hit.text)}" if hit.line else _shown(hit.path)[1:-1]
        for hit in found
    ]
    if search.stopped:
        lines.append(f"[stopped: {search.stopped}; narrow the search by a path or a pattern]")
    return "\n".join(lines) or "[nothing found]"
