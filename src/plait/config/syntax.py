"""The grammar of JSON with comments: from text to a tree of nodes that know their offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn, TypeAlias

from msgspec import Struct

from plait.config.codes import DUPLICATE_KEY, NOT_JSON
from plait.config.masking import quoted

# Far above any real file, and far below the interpreter's own limit: a level costs two frames.
MAX_DEPTH = 100

Value: TypeAlias = "str | int | float | bool | tuple[Node, ...] | dict[str, Node] | None"

_SPACES = frozenset(" \t\r\n")
_SPACE = re.compile(r"[ \t\r\n]*+")
_LINE_COMMENT = re.compile(r"//[^\r\n]*+")
_STRING_BODY = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*+)*+')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?+([eE][+-]?[0-9]++)?+(?![\w.+-])", re.ASCII)
_WORD = re.compile(r"[^\s{}\[\],:\"'/]++")
_PIECE = re.compile(
    r"(?P<run>[^\\]++)"
    r"|\\u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|\\u(?P<unit>(?![dD][89a-fA-F])[0-9a-fA-F]{4})"
    r'|\\(?P<short>["\\/bfnrt])'
)
_SHORT_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LITERALS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
# What people write for JSON's literals; other words are not quoted in errors, they may be secrets.
_MISTAKEN = {
    "True": "true",
    "False": "false",
    "None": "null",
    "undefined": "null",
    "NaN": "null",
    "Infinity": "null",
    "-Infinity": "null",
}


class Node(Struct, frozen=True, gc=False):
    """A value and where its source starts and ends; key_start is where its key stands, if it has one."""

    value: Value
    start: int
    end: int
    key_start: int | None = None


class Malformed(Exception):
    """The text is not a document. `related` is a hint that ends with the place of another offset."""

    def __init__(
        self,
        message: str,
        offset: int,
        *hints: str,
        code: str = NOT_JSON,
        related: tuple[str, int] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.hints = hints
        self.code = code
        self.related = related


class Parser:
    """Reads one text from its start to its end, once."""

    def __init__(self, text: str) -> None:
        self.comments: list[tuple[int, int]] = []
        self._text = text
        self._position = 0

    def document(self) -> Node:
        """The one value of the text."""
        if self._next() == "":
            raise Malformed("there is nothing in this file", self._position, "write {} for no servers")
        root = self._value(None, 0)
        if self._next() != "":
            raise Malformed("text after the end of the document", self._position)
        return root

    def _next(self) -> str:
        """Skip what separates tokens, and look at the first character of the next; '' at the end."""
        while True:
            found = self._text[self._position : self._position + 1]
            if found == "/":
                self._skip_comment()
            elif found in _SPACES:
                self._position = _end_of(_SPACE, self._text, self._position)
            else:
                return found

    def _skip_comment(self) -> None:
        start = self._position
        if match := _LINE_COMMENT.match(self._text, start):
            self._position = match.end()
        elif self._text.startswith("/*", start):
            end = self._text.find("*/", start + 2)
            if end < 0:
                raise Malformed("unterminated comment", start, "a comment that starts with /* ends with */")
            self._position = end + 2
        else:
            raise Malformed("a stray '/'", start, "comments start with // or /*")
        self.comments.append((start, self._position))

    def _value(self, key_start: int | None, depth: int) -> Node:
        """The value that starts here; the caller has skipped the space before it."""
        start = self._position
        first = self._text[start : start + 1]
        value: Value
        if first == '"':
            value = self._string()
        elif first == "{":
            value = self._object(depth + 1)
        elif first == "[":
            value = self._list(depth + 1)
        elif first in "-0123456789" and first:
            value = self._number()
        else:
            value = self._literal()
        return Node(value, start, self._position, key_start)

    def _object(self, depth: int) -> dict[str, Node]:
        start = self._enter(depth)
        members: dict[str, Node] = {}
        while not self._ends("}", start):
            key_start = self._position
            key = self._key()
            if key in members:
                raise Malformed(
                    f"{quoted(key)} is defined twice; the later one would win silently",
                    key_start,
                    code=DUPLICATE_KEY,
                    related=("it is first defined at", members[key].key_start or 0),
                )
            if self._next() != ":":
                # The key is not quoted: in {"NAME=value"} it is a secret.
                raise Malformed("missing ':' after a key", self._position)
            self._position += 1
            self._next()
            members[key] = self._value(key_start, depth)
            self._separator("}", start)
        self._position += 1
        return members

    def _list(self, depth: int) -> tuple[Node, ...]:
        start = self._enter(depth)
        items: list[Node] = []
        while not self._ends("]", start):
            items.append(self._value(None, depth))
            self._separator("]", start)
        self._position += 1
        return tuple(items)

    def _enter(self, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise Malformed(f"nested more than {MAX_DEPTH} levels deep", self._position)
        self._position += 1
        return self._position - 1

    def _ends(self, closing: str, opened_at: int) -> bool:
        found = self._next()
        if found == "":
            self._unclosed(opened_at)
        return found == closing

    def _separator(self, closing: str, opened_at: int) -> None:
        """Pass the comma after an entry; the closing bracket may stand in its place."""
        found = self._next()
        if found == ",":
            self._position += 1
        elif found == "":
            self._unclosed(opened_at)
        elif found in "}]":
            if found != closing:
                raise Malformed(f"expected '{closing}' here, got '{found}'", self._position)
        else:
            raise Malformed("missing ',' between entries", self._position)

    def _unclosed(self, opened_at: int) -> NoReturn:
        bracket = self._text[opened_at]
        raise Malformed(
            f"the file ends before the '{bracket}' is closed",
            self._position,
            related=(f"the '{bracket}' is at", opened_at),
        )

    def _key(self) -> str:
        if self._text.startswith('"', self._position):
            return self._string()
        raise Malformed("expected a key in double quotes", self._position)

    def _string(self) -> str:
        start = self._position
        end = _end_of(_STRING_BODY, self._text, start)
        if not self._text.startswith('"', end):
            self._unfinished_string(start, end)
        self._position = end + 1
        body = self._text[start + 1 : end]
        if "\\" not in body:
            return body
        return "".join(piece for _, piece in string_pieces(self._text, start + 1, end))

    def _unfinished_string(self, start: int, end: int) -> NoReturn:
        if self._text[end : end + 1] in ("", "\n", "\r", "\\"):
            raise Malformed("unterminated string", start, "a string ends on the line it starts on, with '\"'")
        raise Malformed("a control character in a string", end, r"write it as an escape: \t or \u0009")

    def _number(self) -> int | float:
        match = _NUMBER.match(self._text, self._position)
        if match is None:
            if self._text.startswith("-Infinity", self._position):
                self._literal()
            raise Malformed("not a number that JSON knows", self._position)
        try:
            number = float(match[0]) if match[1] or match[2] else int(match[0])
        except ValueError:  # the interpreter refuses integers of more than some thousand digits
            raise Malformed("a number with too many digits", self._position) from None
        self._position = match.end()
        return number

    def _literal(self) -> bool | None:
        match = _WORD.match(self._text, self._position)
        word = match[0] if match else ""
        if word in _LITERALS:
            self._position += len(word)
            return _LITERALS[word]
        if word in _MISTAKEN:
            raise Malformed(f"{word} is not JSON", self._position, f"write {_MISTAKEN[word]}")
        raise Malformed("expected a value", self._position, "strings stand in double quotes")


def _end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def string_pieces(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """What the source between two quotes says: plain runs and single escapes, each with its offset."""
    position = start
    while position < end:
        match = _PIECE.match(text, position, end)
        if match is None:
            raise Malformed(
                "a bad escape in a string",
                position,
                r"known are \" \\ \/ \b \f \n \r \t and \uXXXX (both halves of a surrogate pair)",
            )
        yield position, _decoded(match)
        position = match.end()


def _decoded(match: re.Match[str]) -> str:
    if match["run"]:
        return match["run"]
    if match["unit"]:
        return chr(int(match["unit"], 16))
    if match["high"]:
        return chr(0x10000 + ((int(match["high"], 16) & 0x3FF) << 10) + (int(match["low"], 16) & 0x3FF))
    return _SHORT_ESCAPES.get(match["short"], match["short"])
