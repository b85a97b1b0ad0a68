"""Text from somewhere else, made safe to show."""

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def printable(text: str) -> str:
    """The same text with control characters, escape sequences among them, spelled out.

    A server's name, message or stderr must not move somebody's cursor or forge a line of a log.
    """
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
