"""An operator's list of commands: names, paths, or a name with the words it may be run with."""

import os
import shlex
from collections.abc import Iterable, Sequence

from msgspec import Struct


class Entry(Struct, frozen=True):
    """One line of the list."""

    text: str
    program: str
    """A name to be looked up, or an absolute path."""
    words: tuple[str, ...]
    """The first arguments, where the line goes on with them."""


class Entries:
    """The list, by the names of its programs."""

    def __init__(self, lines: Iterable[str]) -> None:
        """ValueError tells of a line that names no program."""
        self._by_name: dict[str, list[Entry]] = {}
        for line in lines:
            entry = _entry(line)
            self._by_name.setdefault(os.path.basename(entry.program), []).append(entry)

    def named(self, name: str) -> list[Entry]:
        """Every line about this program."""
        return self._by_name.get(name, [])

    def covering(self, name: str, arguments: Sequence[str]) -> Entry | None:
        """The line that says most about a command with these arguments."""
        fitting = [entry for entry in self.named(name) if entry.words == tuple(arguments[: len(entry.words)])]
        return max(fitting, key=lambda entry: len(entry.words), default=None)

    def __str__(self) -> str:
        return " ".join(sorted(self._by_name))


def _entry(line: str) -> Entry:
    words = shlex.split(line)
    if not words or words[0].endswith("/") or ("/" in words[0] and not words[0].startswith("/")):
        raise ValueError(
            f"'{line}' names no program: write a name, an absolute path, or either with arguments"
        )
    return Entry(line, words[0], tuple(words[1:]))
