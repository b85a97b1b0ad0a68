"""Show text without the secrets in it: in a representation, and in a line of a user's file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

MASK = "***"

# A name is quoted in many errors; a hostile file may make it long, or put terminal escapes in it.
_LONGEST_NAME = 80

# These patterns are strings, compiled (and kept) by re at their first use: a good file needs none.
# The parts of a secret value that may be shown: placeholders without their defaults, and the scheme.
_PUBLIC = r"(?i)\$\{(?:env:|input:)?[a-z_]\w*(?:\}|:-)|\}|^(?:Bearer|Basic|Token) +"

_USERINFO = r"(?<=//)[^/?#\s]*@"
_QUERY = r"(?s)[?#].*"

# In a file that is no JSON only keys and punctuation are sure to be no values; what stands between
# two colons is none.
_KEY_OR_VALUE = (
    r"""(?P<colon>:\s*)"(?:[^"\\]|\\.)*+"?|(?P<keep>"[\w$-]{1,40}"(?=\s*:)|[{}\[\],\s]+|:)"""
    r"""|"(?:[^"\\]|\\.)*+"?|'[^']*'?|[^{}\[\],:\s"']+"""
)


def quoted(name: str) -> str:
    """A name from a file as it may stand in a message: printable, and not too long."""
    return repr(name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + "…")


def printable(text: str) -> str:
    """Text from a file without what a terminal would obey."""
    return "".join(character if character.isprintable() else " " for character in text)


def mask_values(values: Mapping[str, object]) -> dict[str, str]:
    """The same names, every value hidden."""
    return dict.fromkeys(values, MASK)


def mask_url(url: str) -> str:
    """A URL without its user information, query and fragment, where people put keys."""
    return re.sub(_QUERY, lambda match: match[0][0] + MASK, re.sub(_USERINFO, f"{MASK}@", url))


def secret_spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a secret value's source that must not be shown."""
    position = start
    for match in re.finditer(_PUBLIC, text[start:end]):
        if match.start() + start > position:
            yield position, match.start() + start
        position = match.end() + start
    if position < end:
        yield position, end


def mask_broken_line(line: str) -> str:
    """A line of a file that is no JSON: its keys and punctuation, and nothing else."""
    return re.sub(_KEY_OR_VALUE, lambda match: match["keep"] or (match["colon"] or "") + MASK, line)
