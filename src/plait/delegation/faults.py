"""What a model's API does wrong: worth another try, or in words that help; never with the key in them."""

import random
from collections.abc import Mapping

from msgspec import Struct

MASK = "***"
LONGEST_PAUSE = 60.0
"""Seconds; whoever wants us to wait longer is asked again all the same."""
_FIRST_PAUSE = 0.5
_LONGEST_OF_OURS = 8.0
_LONGEST_WORDS = 500
_PASSING = frozenset((408, 409, 429))
_PASSING_KINDS = frozenset(("overloaded_error", "rate_limit_error", "api_error", "timeout_error"))
_NOT_THERE, _FIRST_OF_THE_SERVER = 404, 500
_NOT_ALLOWED = (401, 403)


class Fault(Struct, frozen=True):
    """What an API, or the way to it, did instead of answering."""

    words: str
    passing: bool
    """May it be gone in a moment?"""
    wait: float | None = None
    """Seconds that the API wants us to wait."""


def of_status(status: int, body: object, headers: Mapping[str, str], model: str) -> Fault:
    """From an answer that says no; in the middle of a stream the status is the stream's own."""
    kind, message = _error(body)
    passing = status in _PASSING or status >= _FIRST_OF_THE_SERVER or kind in _PASSING_KINDS
    said = f"{message or kind or 'no reason given'} ({status})"
    if status in _NOT_ALLOWED:
        words = f"Anthropic does not take the key: {said}; see ANTHROPIC_API_KEY or delegation.api_key"
    elif status == _NOT_THERE:
        words = (
            f"Anthropic has no model {model!r}, perhaps not any more: {said}; set delegation.claude_model to "
            "one that it has"
        )
    else:
        words = f"Anthropic did not answer: {said}"
    return Fault(words, passing, _seconds(headers.get("retry-after")))


def pause(fault: Fault, attempt: int) -> float:
    """Seconds until the next try: what the API asks for, or longer each time and never the same for all."""
    if fault.wait is not None:
        return min(fault.wait, LONGEST_PAUSE)
    longest = min(_FIRST_PAUSE * 2**attempt, _LONGEST_OF_OURS)
    return random.uniform(longest / 2, longest)


def without(secret: str, words: str) -> str:
    """An API, or what pretends to be one, may say our key back to us."""
    return words.replace(secret, MASK)[:_LONGEST_WORDS] if secret else words[:_LONGEST_WORDS]


def _error(body: object) -> tuple[str, str]:
    inner = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(inner, Mapping):
        return "", ""
    return str(inner.get("type", "")), str(inner.get("message", ""))


def _seconds(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
