"""Find what looks like a secret written out among a server's arguments."""

import re
from collections.abc import Iterator, Sequence

from plait.pipeline.redaction import is_secret_name, redact_text

# A placeholder is how a secret should be written; a default in one is written out again.
_PLACEHOLDER = re.compile(r"\$\{(?:env:|input:)?\w+(?:\}|:-)")
# Digests, commits and UUIDs are as random as keys, and meant to be seen.
_PUBLIC = re.compile(
    r"\bsha\d+[:=-][\w+/=-]+|[@#][0-9a-f]{40}\b|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
)
_USER_OF_A_URL = re.compile(r"://[^/?#\s@:]*:[^/?#\s@]+@")
_OPTION = re.compile(r"-{0,2}([A-Za-z][\w-]{0,40})")
_PATH = re.compile(r"~|\.{0,2}/|[A-Za-z]:\\")
_NAME_OF_A_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_NAMES_A_PLACE = re.compile(r"(?:file|path|dir|env|url|uri|name|type|mode)$", re.IGNORECASE)
SHORTEST = 8


def literal_secrets(arguments: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The index of each, and the option that it belongs to, if there is one; never the value."""
    option = ""
    for index, argument in enumerate(arguments):
        written = _PLACEHOLDER.sub("", argument)
        name, given, value = written.partition("=")
        named = _OPTION.fullmatch(name)
        belongs = option if not argument.startswith("-") else ""
        if given and named is not None and _hides(named[1], value):
            yield index, name
        elif _hides(belongs.lstrip("-"), written) or _looks_secret(written):
            yield index, belongs
        option = argument if argument.startswith("-") and _OPTION.fullmatch(argument) else ""


def _hides(name: str, value: str) -> bool:
    """Is this the value of an option that takes a secret? Not the file or the variable that holds it."""
    if not is_secret_name(name) or _NAMES_A_PLACE.search(name):
        return False
    return len(value) >= SHORTEST and not _PATH.match(value) and not _NAME_OF_A_VARIABLE.fullmatch(value)


def _looks_secret(text: str) -> bool:
    """By its looks alone; piece by piece, since a long path is as mixed as a key is."""
    if _USER_OF_A_URL.search(text):
        return True
    pieces = re.split(r"[/\\]", _PUBLIC.sub("", text))
    return any(redact_text(piece)[1] for piece in pieces)
