"""May this client talk to us at all, and who is it? One guard for every route.

A request without proof is anonymous where that is allowed. A proof that is wrong is never nothing: it is
refused, whatever a request without one may do. Every request proves itself; a session proves nothing.
"""

from collections.abc import Sequence
from typing import Protocol

from plait.downstream.asgi import Answer, Headers, Request, refusal
from plait.downstream.meter import Meter
from plait.downstream.sources import Sources
from plait.pipeline.grants import Identity


class Proof(Protocol):
    """A way to show who one is."""

    async def identify(self, token: str) -> Identity | Answer | None:
        """Whose token it is; None: nobody's that is known here. An Answer says what else is wrong."""

    def knows(self, identity: Identity) -> bool:
        """Would this identity still be let in?"""


class Access:
    def __init__(
        self,
        sources: Sources,
        proofs: Sequence[Proof] = (),
        anonymous: Identity | None = None,
        challenge: Sequence[str] = (),
    ) -> None:
        """`anonymous`: who a client without a token is; None: it is not let in. `challenge`: what is told
        to a client that has to prove itself, as the parameters of `WWW-Authenticate`."""
        self.sources = sources
        self._proofs = tuple(proofs)
        self._anonymous = anonymous
        self._challenge = tuple(challenge)
        self._meter = Meter()

    async def identify(self, request: Request) -> Identity | Answer:
        """Whoever sent this, or the answer to somebody who may not."""
        given = request.header(b"authorization")
        identity = self._anonymous if given is None else await self._proven(given)
        if identity is None:
            if given is None:
                return self._refused("a token is needed: Authorization: Bearer …")
            # "invalid_token: The access token provided is expired, revoked, malformed, or invalid for
            # other reasons" (RFC 6750 §3.1). Which of them it is, is nobody's business.
            return self._refused("the token is not valid", 'error="invalid_token"')
        if isinstance(identity, Answer):
            return identity
        wait = self._meter.wait(identity)
        if wait:
            return refusal(429, f"{identity} sends too many requests", ((b"retry-after", b"%d" % wait),))
        return identity

    def knows(self, identity: Identity) -> bool:
        """Would whoever opened a session under this identity still be let in?"""
        if self._anonymous is not None and self._anonymous.same(identity):
            return True
        return any(proof.knows(identity) for proof in self._proofs)

    async def _proven(self, given: str) -> Identity | Answer | None:
        scheme, _, token = given.partition(" ")
        if scheme.lower() != "bearer":
            return None
        for proof in self._proofs:
            found = await proof.identify(token.strip())
            if found is not None:
                return found
        return None

    def _refused(self, message: str, *more: str) -> Answer:
        return refusal(401, message, challenge(*more, *self._challenge))


def challenge(*parameters: str) -> Headers:
    """The header that says how to prove oneself."""
    told = ", ".join(('realm="plait"', *parameters))
    return ((b"www-authenticate", f"Bearer {told}".encode("latin-1")),)
