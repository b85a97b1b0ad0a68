"""Take out of a text what is made for terminals and for hiding, and leave what is made for reading.

Two kinds of characters, treated differently. Control characters, escape sequences and the tag
characters have no honest use in the text of a result: they move cursors, set clipboards, or carry
words that a model reads and a person does not see. They go. Other invisible characters join emoji
and shape Persian: they are counted where they stand alone, and go only where somebody asks for it.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

MANY = 10_000
_STEP = 65_536

_TAGS = "\U000e0000-\U000e007f"
_CONTROLS = f"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{_TAGS}"
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0080-\U000e0fff"
)
"""What Unicode calls default-ignorable, and the marks of interlinear notes."""

# ECMA-48. A sequence starts with ESC or with one C1 character. The first item is a plain set of
# characters so that the search for it is one scan; what follows depends on which one it was. A
# string (OSC, DCS, APC …) that nothing ends loses its introducer only: what it would have swallowed
# on a terminal is text to us, and without the introducer it is harmless.
_STRING = r"[^\x00-\x1f\x7f-\x9f]*+(?:\x07|\x1b\\|\x9c)"
_PARAMETERS = r"[0-?]*+[ -/]*+[@-~]?"
_SEQUENCE = re.compile(
    rf"[{_CONTROLS}]"
    rf"(?:(?<=\x1b)(?:\[{_PARAMETERS}|[\]PX^_](?:{_STRING})?|[ -/]*+[0-~]?)"
    rf"|(?<=\x9b){_PARAMETERS}"
    rf"|(?<=[\x90\x98\x9d-\x9f])(?:{_STRING})?)?"
)

_VISIBLE = rf"[^\x00-\x9f{_INVISIBLE}]"
_JOINER = "[\u200c\u200d]"
# A joiner between two letters or two emoji, or one choice of presentation after its character: the
# group is then empty, and else it is None. Again the first item is a plain set of characters.
_UNSEEN = re.compile(
    rf"[{_INVISIBLE}]("
    rf"(?<={_VISIBLE}{_JOINER})(?={_VISIBLE})|(?<={_VISIBLE}\ufe0f{_JOINER})(?={_VISIBLE})"
    rf"|(?<={_VISIBLE}[\ufe0e\ufe0f])|(?<=[0-9#*][\ufe0e\ufe0f]))?"
)

# The same characters as they stand in JSON. Raw control characters are not JSON, so below DEL only
# escapes count. An escaped backslash before a "u" is a false alarm, and costs a closer look.
_ESCAPED = re.compile(
    rb"\\(?:u(?:00(?:[01]|7[fF]|[89]|[aA][dD])|20(?:0[b-fB-F]|2[a-eA-E]|6)|[fF][eE](?:0|[fF][fF])"
    rb"|[dD](?:82[fF]|834|[bB]4[0-3])|[fF][fF](?:[aA]0|[fF][9aAbB])|034[fF]|061[cC]|115[fF]|1160|17[bB][45]"
    rb"|180[b-fB-F]|3164)|[bf])"
)
_SPELLED = tuple(
    (pattern[:1], re.compile(pattern))
    for pattern in (
        b"\xe2(?:\x80[\x8b-\x8f\xaa-\xae]|\x81[\xa0-\xaf])",
        b"\xc2[\x80-\x9f\xad]",
        b"\xef(?:\xb8[\x80-\x8f]|\xbb\xbf|\xbe\xa0|\xbf[\xb9-\xbb])",
        b"\xf0(?:\x9b\xb2[\xa0-\xa3]|\x9d\x85[\xb3-\xba])",
        b"\xf3\xa0",
        b"\xe1(?:\x85[\x9f\xa0]|\x9e[\xb4\xb5]|\xa0[\x8b-\x8f])",
        b"\xe3\x85\xa4",
        b"\xd8\x9c",
        b"\xcd\x8f",
        b"\x7f",
    )
)
"""By their first byte: whether that occurs at all is a question for memchr."""


def harmless(payload: bytes) -> bool:
    """Is there certainly nothing to take out of, or count in, the strings of this JSON?"""
    if _ESCAPED.search(payload):
        return False
    if payload.isascii():
        return b"\x7f" not in payload
    return not any(first in payload and pattern.search(payload) for first, pattern in _SPELLED)


def neutralise(text: str) -> str:
    """Without control characters (but tab, newline, return), escape sequences and tag characters.

    One pass is enough: every character that could start something is itself taken out.
    """
    return _SEQUENCE.sub("", text) if len(text) <= _STEP else _without(_matches(_SEQUENCE, text), text)


def count_unseen(text: str) -> int:
    """How many invisible characters stand where they join or shape nothing; ten thousand is many."""
    return 0 if text.isascii() else sum(1 for _ in islice(_unseen(text), MANY))


def without_unseen(text: str) -> str:
    """Without those; emoji and Persian keep theirs."""
    return text if text.isascii() else _without(_unseen(text), text)


def _unseen(text: str) -> Iterator[re.Match[str]]:
    return (found for found in _matches(_UNSEEN, text) if found[1] is None)


def _without(matches: Iterable[re.Match[str]], text: str) -> str:
    kept: list[str] = []
    end = 0
    for found in matches:
        kept.append(text[end : found.start()])
        end = found.end()
    kept.append(text[end:])
    return "".join(kept)


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """`finditer` in steps: a search lets no other thread run, and a result may have megabytes."""
    position = 0
    while position < len(text):
        start = pattern.search(text, position, position + _STEP)
        # What was found at the edge of a step may go on behind it.
        found = None if start is None else pattern.match(text, start.start())
        if found is not None:
            yield found
        position = position + _STEP if found is None else found.end()
