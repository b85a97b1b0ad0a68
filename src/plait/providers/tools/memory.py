"""The memory tools: notes that outlive the conversation in which they were written."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar

from plait.errors import ExecutionFailed
from plait.providers.tools.notes import Note, Notes

Value = TypeVar("Value")

LONGEST_NOTE = 64 * 1024
MOST_NOTES = 100
MOST_TOLD = 48 * 1024
"""Bytes of one answer; what does not fit is counted."""

Count = Annotated[int, "How many notes at most."]


class MemoryTools:
    """One thread of its own does all the work: SQLite blocks, and a connection belongs to a thread."""

    def __init__(self, folder: Path) -> None:
        self._notes = Notes(folder / "memory.sqlite")
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="plait-memory")

    def functions(self) -> Sequence[Callable[..., object]]:
        return (self.memory_read, self.memory_write, self.memory_search)

    async def memory_read(
        self,
        note: Annotated[int | None, "The number of one note; by default the newest ones."] = None,
        limit: Count = 20,
    ) -> str:
        """Read the notes of earlier conversations, newest first."""
        if note is None:
            return _told(*await self._do(lambda notes: (notes.newest(_bounded(limit)), notes.count())))
        found = await self._do(lambda notes: notes.one(note))
        return _told(found, 1) if found else _missing(note)

    async def memory_write(
        self,
        content: Annotated[str, "What to remember; nothing: forget the note."],
        note: Annotated[int | None, "The number of the note to replace; by default a new one."] = None,
    ) -> str:
        """Remember something for later conversations, or correct or forget a note."""
        size = len(content.encode(errors="surrogatepass"))
        if size > LONGEST_NOTE:
            raise ExecutionFailed(f"a note has up to {LONGEST_NOTE} bytes, and this one has {size}")
        if note is None and not content.strip():
            raise ExecutionFailed("there is nothing to remember: the content is empty")
        if note is None:
            return f"remembered as note {await self._do(lambda notes: notes.add(content))}"
        if not content.strip():
            return f"forgot note {note}" if await self._do(lambda n: n.forget(note)) else _missing(note)
        return (
            f"replaced note {note}" if await self._do(lambda n: n.replace(note, content)) else _missing(note)
        )

    async def memory_search(self, query: Annotated[str, "Words to look for."], limit: Count = 10) -> str:
        """Find notes of earlier conversations by words in them, best first."""
        found = await self._do(lambda notes: notes.search(query, _bounded(limit)))
        return _told(found, len(found)) if found else "[no note holds any of these words]"

    async def _do(self, work: Callable[[Notes], Value]) -> Value:
        return await asyncio.get_running_loop().run_in_executor(self._thread, _speaking, work, self._notes)

    async def aclose(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._notes.close)
        self._thread.shutdown(wait=False)


def _speaking(work: Callable[[Notes], Value], notes: Notes) -> Value:
    """Whatever is wrong with the file, in words."""
    import sqlite3  # noqa: PLC0415  only who has notes pays for it

    try:
        return work(notes)
    except (sqlite3.Error, OSError) as problem:
        raise ExecutionFailed(f"the memory cannot be used: {problem}") from None
    except (UnicodeEncodeError, OverflowError):
        raise ExecutionFailed("half a character, or a number that large, cannot be remembered") from None


def _bounded(limit: int) -> int:
    return max(1, min(limit, MOST_NOTES))


def _told(notes: Sequence[Note], total: int) -> str:
    parts: list[str] = []
    left = MOST_TOLD
    for note in notes:
        written = datetime.fromtimestamp(note.written, UTC).strftime("%Y-%m-%d %H:%M")
        part = f"[{note.number}] {written}\n{note.content}"
        left -= len(part.encode())
        if left < 0 and parts:
            break
        parts.append(part)
    if total > len(parts):
        parts.append(f"[{total - len(parts)} more notes; memory_search finds them by words]")
    return "\n\n".join(parts) or "[there are no notes yet]"


def _missing(note: int) -> str:
    raise ExecutionFailed(f"there is no note {note}; memory_read shows those there are")
