"""Notes in an SQLite file with full-text search; several processes may use it at once."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from sqlite3 import Connection

MOST_BYTES = 128 * 1024 * 1024
"""Of the whole file; past that nothing more is taken."""
PAGE_SIZE = 4096
PATIENCE = 10.0
"""Seconds to wait for another process that is writing."""
MOST_WORDS = 32

_WORD = re.compile(r"\w+")
_TABLE = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS notes USING fts5"
    "(content, written UNINDEXED, tokenize = 'unicode61 remove_diacritics 2')"
)
_FIELDS = "SELECT rowid, content, written FROM notes"


class Note(Struct, frozen=True):
    number: int
    content: str
    written: float


class Notes:
    """Blocking, and to be used from one thread only: its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: Connection | None = None

    def add(self, content: str) -> int:
        cursor = self._connection().execute(
            "INSERT INTO notes (content, written) VALUES (?, ?)", (content, time.time())
        )
        return int(cursor.lastrowid or 0)

    def replace(self, number: int, content: str) -> bool:
        """Was there such a note?"""
        changed = self._connection().execute(
            "UPDATE notes SET content = ?, written = ? WHERE rowid = ?", (content, time.time(), number)
        )
        return changed.rowcount > 0

    def forget(self, number: int) -> bool:
        return self._connection().execute("DELETE FROM notes WHERE rowid = ?", (number,)).rowcount > 0

    def count(self) -> int:
        return int(self._connection().execute("SELECT count(*) FROM notes").fetchone()[0])

    def one(self, number: int) -> list[Note]:
        return self._select(f"{_FIELDS} WHERE rowid = ?", number)

    def newest(self, most: int) -> list[Note]:
        return self._select(f"{_FIELDS} ORDER BY rowid DESC LIMIT ?", most)

    def search(self, query: str, most: int) -> list[Note]:
        """The notes that hold most of the words, or their beginnings; then those that hold the text itself.

        A query is words: whatever the search engine has a syntax for is quoted. The text itself is
        looked for because some scripts put no spaces between words.
        """
        words = _WORD.findall(query)[:MOST_WORDS]
        found: list[Note] = []
        if words:
            match = " OR ".join(f'"{word}"*' for word in words)
            found = self._select(f"{_FIELDS} WHERE notes MATCH ? ORDER BY bm25(notes) LIMIT ?", match, most)
        text = query.strip()
        if len(found) < most and text:
            literal = self._select(f"{_FIELDS} WHERE instr(lower(content), lower(?)) LIMIT ?", text, most)
            found += [note for note in literal if note not in found]
        return found[:most]

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _select(self, query: str, *values: object) -> list[Note]:
        return [Note(*row) for row in self._connection().execute(query, values)]

    def _connection(self) -> Connection:
        if self._open is None:
            self._open = _connect(self._path)
        return self._open


def _connect(path: Path) -> Connection:
    import sqlite3  # noqa: PLC0415  only who has notes pays for it

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # SQLite gives its other files the mode of this one.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    try:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as problem:
                # The switch to WAL does not wait for others by itself.
                if "locked" not in str(problem) or time.monotonic() > end:
                    raise
                time.sleep(0.01)
        connection.execute(f"PRAGMA max_page_count = {MOST_BYTES // PAGE_SIZE}")
        connection.execute(_TABLE)
    except BaseException:
        connection.close()
        raise
    return connection
