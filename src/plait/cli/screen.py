"""How things look on a terminal, and how plain they are elsewhere."""

import os
import shutil
import sys
from typing import TextIO

import msgspec.json

from plait.wire.text import printable

_STYLES = {"bold": "1", "dim": "2", "good": "32", "bad": "31", "warn": "33"}


class Screen:
    """stdout for results, stderr for the rest; colour only where a person looks and has not said NO_COLOR."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._colour = self._out.isatty() and not os.environ.get("NO_COLOR")
        self._live = self._err.isatty()
        self.width = shutil.get_terminal_size((100, 24)).columns if self._out.isatty() else 0
        """Columns to fit into; 0 where nobody has asked for lines to be cut."""

    def style(self, text: str, style: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self._colour else text

    def say(self, text: str = "", style: str | None = None) -> None:
        """A line of the result. What comes from servers is made safe; colours are ours."""
        safe = "\n".join(self._fit(printable(line)) for line in text.split("\n"))
        print(self.style(safe, style) if style else safe, file=self._out)

    def whole(self, text: str) -> None:
        """A result as it is, however long its lines are; on a terminal it is made safe."""
        print("\n".join(map(printable, text.split("\n"))) if self._out.isatty() else text, file=self._out)

    def note(self, text: str) -> None:
        """Something beside the result."""
        self.progress("")
        print("\n".join(printable(line) for line in text.split("\n")), file=self._err)

    def progress(self, text: str) -> None:
        """One line that rewrites itself; nothing at all where it could not."""
        if self._live:
            columns = shutil.get_terminal_size((80, 24)).columns
            self._err.write(f"\r\x1b[K{printable(text)[: columns - 1]}")
            self._err.flush()

    def json(self, value: object) -> None:
        """One object, for programs: never cut, never coloured."""
        print(msgspec.json.encode(value).decode(), file=self._out)

    def _fit(self, line: str) -> str:
        return line if not self.width or len(line) <= self.width else f"{line[: self.width - 1]}…"
