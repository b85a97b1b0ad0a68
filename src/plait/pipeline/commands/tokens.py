"""Cut shell text into literal words and operators, and refuse whatever a shell would expand.

This reads what POSIX calls token recognition and quote removal, for text in which nothing else
happens: no expansion of any kind. It is linear, so hostile text never reaches the real parser,
which is quadratic on some; and it is the second opinion on where each word begins and ends.
"""

import re
from enum import Enum

from msgspec import Struct

from plait.pipeline.commands.verdicts import Unacceptable

MAX_TEXT = 16 * 1024
"""Bytes of a command given as text. Whoever needs more gives argv."""
MAX_OPERATORS = 64


class Kind(Enum):
    WORD = "word"
    DESCRIPTOR = "descriptor"
    """The number right before a redirection."""
    OPERATOR = "operator"
    NEWLINE = "newline"


class Token(Struct, frozen=True):
    """One word or operator, and which bytes of the text it is."""

    kind: Kind
    start: int
    end: int
    value: str


# Possessive: no text makes this backtrack. A $ is itself where no name, bracket or quote follows it.
_PIECE = re.compile(
    rb"""
      (?P<plain>     [^\x00-\x20\x7f\\'"$`|&;<>()*?\[{}~\#]++ )
    | (?P<blank>     [ \t]++ )
    | (?P<single>    '[^']*+' )
    | (?P<double>    "(?> [^"\\$`]++ | \\[^\n] | \$(?![A-Za-z0-9_@*\#?$!{(\[-]) )*+" )
    | (?P<escape>    \\[^\n] )
    | (?P<operator>  && | \|\|? | ; | >> | >& | > | &>>? | < (?![<>&(]) )
    | (?P<braces>    \{\} )
    | (?P<dollar>    \$ (?= [ \t\n|&;<>)] | \Z ) )
    | (?P<newline>   \n )
    | (?P<inside>    [~\#] )
    """,
    re.VERBOSE,
)
_UNESCAPE = re.compile(rb'\\([$`"\\])')

_CAUSES = {
    "$": ("C-expansion", "$ is expanded by a shell, and none is used here: write the value itself"),
    "`": ("C-expansion", "a command in backticks is not run: run it first, and write its output"),
    '"': ("C-expansion", "the double-quoted part has a $ or ` in it, or no end: use single quotes"),
    "'": ("C-syntax", "the single-quoted part has no end"),
    "\\": ("C-newline", "a line cannot be continued with a backslash: write the command on one line"),
    "~": ("C-expansion", "~ is not expanded: write the path of the folder"),
    "#": ("C-comment", "comments are not part of a command"),
    "{": ("C-expansion", "braces are not expanded: write the words one by one, or quote them"),
    "}": ("C-expansion", "braces are not expanded: write the words one by one, or quote them"),
    "(": ("C-shell", "subshells, functions and groups are not run: give one plain command"),
    ")": ("C-shell", "subshells, functions and groups are not run: give one plain command"),
    "&": ("C-shell", "nothing is run in the background: give one plain command"),
    "<": ("C-shell", "here-documents and process substitutions are not run: write a file first"),
}
_GLOB = ("C-glob", "patterns such as * ? [ are not expanded: list the files first, or quote the pattern")
_CONTROL = ("C-text", "the command contains a control character outside quotes")


def tokenize(source: bytes) -> list[Token]:
    """The tokens of the whole text; Unacceptable says what in it is not literal."""
    if b"\0" in source:
        raise Unacceptable("C-text", "the command contains a NUL character")
    tokens: list[Token] = []
    word: list[bytes] = []
    begin = position = 0
    while position < len(source):
        piece = _PIECE.match(source, position)
        if piece is None:
            raise _cause(source, position)
        kind, start, position = piece.lastgroup, position, piece.end()
        if kind in ("blank", "operator", "newline"):
            if word:
                tokens.append(_word(source, begin, start, word, before=kind))
                word = []
            if kind != "blank":
                tokens.append(_separator(str(kind), start, piece[0]))
        else:
            begin = begin if word else start
            word.append(_literal(source, kind, piece[0], start, begin))
    if word:
        tokens.append(_word(source, begin, position, word, before="end"))
    return tokens


def _literal(source: bytes, kind: str | None, piece: bytes, start: int, begin: int) -> bytes:
    """What a piece of a word stands for."""
    match kind:
        case "single":
            return piece[1:-1]
        case "double":
            return _UNESCAPE.sub(rb"\1", piece[1:-1])
        case "escape":
            return piece[1:]
        case "inside" if start == begin or (piece == b"~" and source[start - 1 : start] in (b"=", b":")):
            raise _cause(source, start)
    return piece


def _word(source: bytes, begin: int, end: int, pieces: list[bytes], before: str) -> Token:
    value = b"".join(pieces).decode()
    adjacent = before == "operator" and source[end : end + 1] in (b"<", b">")
    descriptor = adjacent and source[begin:end].isdigit()
    return Token(Kind.DESCRIPTOR if descriptor else Kind.WORD, begin, end, value)


def _separator(kind: str, start: int, piece: bytes) -> Token:
    return Token(Kind(kind), start, start + len(piece), piece.decode())


def _cause(source: bytes, position: int) -> Unacceptable:
    character = chr(source[position])
    if source[position : position + 2] in (b"[ ", b"[["):
        return Unacceptable("C-shell", "[ … ] is not run: write it as `test …`")
    if character in "*?[":
        return Unacceptable(*_GLOB)
    return Unacceptable(*_CAUSES.get(character, _CONTROL))
