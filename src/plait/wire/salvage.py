"""Whose reply was that? The id of a message that cannot be read, so that its call fails at once.

Only an id at the message's own level counts, so that an `"id"` inside a payload never fails
somebody else's call: found by a lenient parse, or right at the beginning or the end of the line.
"""

import json
import re

_AT_START = re.compile(rb'\s*\[?\s*\{\s*(?:"jsonrpc"\s*:\s*"[^"]*"\s*,\s*)?"id"\s*:\s*(-?[0-9]+)\s*[,}]')
_AT_END = re.compile(rb',\s*"id"\s*:\s*(-?[0-9]+)\s*(?:,\s*"jsonrpc"\s*:\s*"[^"]*"\s*)?\}\s*\]?\s*$')
_ANY_AT_START = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"[^"]*"\s*,\s*)?"id"\s*:\s*(-?[0-9]{1,19}|"(?:[^"\\]|\\.){0,256}")\s*,'
)
_SMALL = 1024 * 1024
"""The lenient parser builds every value, so a larger line is only looked at from its two ends."""


def salvage_ids(line: bytes) -> list[bytes]:
    """The integer ids (all ours are) that this broken message, or array of messages, answers."""
    parsed = _parse(line) if len(line) <= _SMALL else None
    messages = parsed if isinstance(parsed, list) else [parsed]
    ids = [
        str(message["id"]).encode() for message in messages if isinstance(message, dict) and _ours(message)
    ]
    if ids or parsed is not None:
        return ids
    found = _AT_START.match(line) or _AT_END.search(line[-256:])
    return [found[1]] if found else []


def salvage_any_id(head: bytes) -> bytes | None:
    """The id of a request that was too long to read, if it came first."""
    found = _ANY_AT_START.match(head)
    return found[1] if found else None


def _ours(message: dict[str, object]) -> bool:
    """Is it (meant as) a reply, to an id such as we make?"""
    return type(message.get("id")) is int and "method" not in message


def _parse(line: bytes) -> object:
    try:
        return json.loads(line.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None
