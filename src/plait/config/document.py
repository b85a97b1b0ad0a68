"""Read JSON with comments, and remember where every key and value stood.

Beyond JSON (RFC 8259) a file may start with a byte order mark, hold `//` and `/* */` comments between
its tokens, and have a comma after the last entry. Short of it, a key may not be defined twice, half a
surrogate pair is no text, and nesting is bounded.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TypeAlias

from msgspec import Struct

from plait.config.masking import mask_broken_line, printable
from plait.config.problem import ConfigFileError, Problem, Where
from plait.config.syntax import Malformed, Node, Parser, string_pieces

Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain] | None"

_LINE_END = re.compile(r"\r\n|\n|\r")
_EXCERPT_REACH = 60


class Document(Struct, frozen=True):
    """One file: its text, its tree, and where each line of it starts."""

    file: str
    text: str
    root: Node
    comments: tuple[tuple[int, int], ...]
    line_starts: tuple[int, ...]

    def where(self, offset: int, path: str = "") -> Where:
        """The place of an offset, in lines and columns that count from 1."""
        return _where(self.file, self.line_starts, offset, path)

    def line_around(self, offset: int) -> tuple[int, int]:
        """The part of an offset's line that is near enough to be shown."""
        start = max(self.line_starts[_line(self.line_starts, offset)], offset - _EXCERPT_REACH)
        return start, _shown_end(self.text, offset)

    def inside(self, node: Node, index: int) -> int:
        """The offset of one character of a string, counted as in its value, where escapes are decoded."""
        seen = 0
        for offset, piece in string_pieces(self.text, node.start + 1, node.end - 1):
            if index < seen + len(piece):
                # An escape is longer than what it stands for; only plain runs are counted into.
                return offset + (index - seen)
            seen += len(piece)
        return node.end - 1


def parse(text: str, file: str) -> Document:
    """Read a whole document, or raise a ConfigFileError that says where it is broken."""
    text = text.removeprefix("\ufeff")
    line_starts = (0, *(match.end() for match in _LINE_END.finditer(text)))
    parser = Parser(text)
    try:
        root = parser.document()
    except Malformed as fault:
        raise _broken(fault, text, file, line_starts) from None
    return Document(file, text, root, tuple(parser.comments), line_starts)


def plain(node: Node) -> Plain:
    """The value as json.loads would give it."""
    if isinstance(node.value, dict):
        return {key: plain(member) for key, member in node.value.items()}
    if isinstance(node.value, tuple):
        return [plain(item) for item in node.value]
    return node.value


def _broken(fault: Malformed, text: str, file: str, line_starts: tuple[int, ...]) -> ConfigFileError:
    # From the start of the line, since what is key and what is value can only be told from there.
    start = line_starts[_line(line_starts, fault.offset)]
    line = mask_broken_line(text[start : _shown_end(text, fault.offset)])
    hints = fault.hints
    if fault.related is not None:
        hints = (f"{fault.related[0]} {_where(file, line_starts, fault.related[1])}", *hints)
    return ConfigFileError(
        Problem(
            code=fault.code,
            message=fault.message,
            where=_where(file, line_starts, fault.offset),
            excerpt=printable(line[-2 * _EXCERPT_REACH :]).strip(),
            hints=hints,
        )
    )


def _line(line_starts: tuple[int, ...], offset: int) -> int:
    return bisect_right(line_starts, offset) - 1


def _where(file: str, line_starts: tuple[int, ...], offset: int, path: str = "") -> Where:
    line = _line(line_starts, offset)
    return Where(file, line + 1, offset - line_starts[line] + 1, path)


def _shown_end(text: str, offset: int) -> int:
    ending = _LINE_END.search(text, offset, offset + _EXCERPT_REACH)
    return ending.start() if ending else min(len(text), offset + _EXCERPT_REACH)
