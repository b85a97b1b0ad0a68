"""What can go wrong on the way out.

OutboundError
├── UrlRefused       the policy says no; nothing was sent there
├── RequestInvalid   the method or a header cannot be sent
├── Unreachable      no connection, or no trust in the other side
├── TooSlow          a time limit ran out
├── TooLarge         the answer is longer than we take
└── AnswerBroken     the answer is no HTTP, ends early, or is packed in a way we do not open

No message repeats a URL's path or query, or the value of a header: they may hold secrets.
"""

from plait.errors import PlaitError
from plait.outbound.urls import Refusal


class OutboundError(PlaitError):
    """The root of the tree above."""


class UrlRefused(OutboundError):
    """The policy says no."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


class RequestInvalid(OutboundError):
    """The caller asked for something that cannot be sent."""


class Unreachable(OutboundError):
    """There is no connection to the host."""


class TooSlow(OutboundError):
    """A time limit ran out."""


class TooLarge(OutboundError):
    """The answer is longer than we take."""


class AnswerBroken(OutboundError):
    """What came is no answer."""
