"""Walk a folder and find files by their names and by what is in them."""

import os
import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from plait.providers.tools.beneath import Outside
from plait.providers.tools.workspace import FOLDER, NotPlain, Workspace

SKIPPED = frozenset({".git", ".hg", ".svn"})
"""What belongs to a version control, and is found through it."""
MOST_FILES = 50_000
MOST_BYTES = 4 * 1024 * 1024
"""Of one file that is searched; a larger one is no text that anybody reads."""
LONGEST_LINE = 400


class Found(Struct, frozen=True):
    """One hit: the path from the workspace, and where the words stand in it, if words were asked for."""

    path: str
    line: int = 0
    text: str = ""


class Search:
    """One search. It ends when everything was seen, enough was found, or the time is up."""

    def __init__(self, workspace: Workspace, pattern: str, words: str, *, most: int, seconds: float) -> None:
        self._workspace = workspace
        self._pattern = pattern.split("/")
        self._words = words
        self._most = most
        self._end = time.monotonic() + seconds
        self.stopped = ""
        """Why it ended before everything was seen."""
        self.cancelled = False

    def run(self, path: str) -> list[Found]:
        hits: list[Found] = []
        for count, file in enumerate(self._files(path)):
            if count >= MOST_FILES:
                self.stopped = f"{MOST_FILES} files were seen"
            elif len(hits) >= self._most:
                self.stopped = f"{self._most} were found"
            if self._over():
                break
            hits += [Found(file)] if not self._words else self._look_into(file)
        return hits[: self._most]

    def _over(self) -> bool:
        if time.monotonic() > self._end or self.cancelled:
            self.stopped = "the time was up"
        return bool(self.stopped)

    def _files(self, path: str) -> Iterator[str]:
        """The files that the pattern fits. Links are not followed: nothing is seen twice, or for ever."""
        start = self._workspace.relative(path).rstrip("/")
        ahead = [start]
        while ahead and not self._over():
            folder = ahead.pop()
            below: list[str] = []
            for name, is_folder in self._entries(folder, first=folder == start):
                whole = name if folder == "." else f"{folder}/{name}"
                if is_folder:
                    below.append(whole)
                elif self._fits(whole.removeprefix(f"{start}/")):
                    yield whole
            ahead += reversed(below)

    def _entries(self, folder: str, *, first: bool) -> list[tuple[str, bool]]:
        """Plain files and folders, sorted. What vanished or may not be read is empty, but for the first."""
        how = FOLDER if first else FOLDER | os.O_NOFOLLOW
        try:
            with self._workspace.open(folder, how) as descriptor, os.scandir(descriptor) as entries:
                return sorted(
                    (entry.name, is_folder)
                    for entry in entries
                    if (is_folder := entry.is_dir(follow_symlinks=False) and entry.name not in SKIPPED)
                    or entry.is_file(follow_symlinks=False)
                )
        except (OSError, Outside):
            if first:
                raise
            return []

    def _fits(self, path: str) -> bool:
        """A pattern without a slash is about the name, one with a slash about the path."""
        parts = path.split("/")
        return matches(parts[-1:] if len(self._pattern) == 1 else parts, self._pattern)

    def _look_into(self, file: str) -> Iterator[Found]:
        try:
            content = self._workspace.read(file, MOST_BYTES)
        except (OSError, Outside, NotPlain):
            return
        words = self._words.encode()
        if b"\0" in content[:8192] or words not in content:
            return
        for number, line in enumerate(content.split(b"\n"), 1):
            if words in line:
                yield Found(file, number, _excerpt(line.decode(errors="replace"), self._words))


def matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Does a path fit a glob, part by part? `**` stands for any number of parts.

    All ways through the pattern are followed at once, so that no pattern takes long.
    """
    states = _reach({0}, pattern)
    for part in parts:
        onward = {state for state in states if state < len(pattern) and pattern[state] == "**"}
        onward |= {
            state + 1
            for state in states
            if state < len(pattern) and pattern[state] != "**" and fnmatchcase(part, pattern[state])
        }
        states = _reach(onward, pattern)
    return len(pattern) in states


def _reach(states: set[int], pattern: Sequence[str]) -> set[int]:
    """`**` also stands for nothing."""
    reached = set(states)
    for position, part in enumerate(pattern):
        if position in reached and part == "**":
            reached.add(position + 1)
    return reached


def _excerpt(line: str, words: str) -> str:
    if len(line) <= LONGEST_LINE:
        return line
    start = max(0, line.find(words) - LONGEST_LINE // 2)
    return f"…{line[start : start + LONGEST_LINE]}…"
