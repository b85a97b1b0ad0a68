"""Who a client is, and what was granted to it: a grant can take away, and never adds.

Rules say what an operator allows; a grant says which part of that one token may use. Both must agree, in
lists and in calls alike, so grants are a guard of their own beside the rules.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Self

from msgspec import Struct

from plait.pipeline.compose import Stage
from plait.pipeline.kept import HOME
from plait.pipeline.permissions import HIDDEN, denied, named
from plait.pipeline.rules import BUILTIN, Subject, subject_of
from plait.session.exchange import Caller, Exchange, Handler, Reply, Verdict

ANONYMOUS = "anonymous"


class Grant(Struct, frozen=True):
    """What may be seen and called."""

    tools: tuple[str, ...] | None = None
    """Patterns of exposed names, and of the URIs of resources; None: everything."""
    builtin: frozenset[str] | None = None
    """The names of those of our own tools that are offered; None: all of them."""

    def allows(self, subject: Subject) -> bool:
        if self.builtin is not None and subject.server == BUILTIN and subject.native not in self.builtin:
            return False
        if self.tools is None or subject.exposed.startswith(HOME):
            return True  # what was cut from a result is given to nobody but whoever made the call
        return any(fnmatchcase(subject.exposed, pattern) for pattern in self.tools)


EVERYTHING = Grant()


class Identity(str):
    """The name of whoever a client is to us, and what was granted under it."""

    grant: Grant
    sessions: int | None
    """How many it may have open at once; None: as many as anybody."""
    rate: int | None
    """Requests in a minute."""

    def __new__(
        cls, name: str, grant: Grant = EVERYTHING, *, sessions: int | None = None, rate: int | None = None
    ) -> Self:
        identity = super().__new__(cls, name)
        identity.grant, identity.sessions, identity.rate = grant, sessions, rate
        return identity

    def same(self, other: Identity) -> bool:
        """The same name with another grant is not the same: a session keeps what it was opened with."""
        return self == other and self.grant == other.grant


def grant_of(identity: str) -> Grant:
    """A name alone, as of a client on our own pipes, may use whatever the rules allow."""
    return identity.grant if isinstance(identity, Identity) else EVERYTHING


def _granted(caller: Caller) -> Grant:
    grant = getattr(caller, "grant", EVERYTHING)
    return grant if isinstance(grant, Grant) else EVERYTHING


class GrantFilter:
    """Hides what was not granted. A name that is hidden is an unknown name."""

    stage = Stage.PERMISSIONS

    def visible(self, caller: Caller, subject: Subject) -> bool:
        return _granted(caller).allows(subject)

    async def __call__(self, exchange: Exchange, call_next: Handler) -> Reply:
        grant = _granted(exchange.caller)
        if exchange.destination is None:
            reply = await call_next(exchange)
            if exchange.address and not grant.allows(named(exchange.address)):
                reply.verdict = HIDDEN
            return reply
        if grant.allows(subject_of(exchange.destination)):
            return await call_next(exchange)
        return denied(exchange, Verdict("denied", "grant", "not granted to this client"))
