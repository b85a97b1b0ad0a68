"""How a server is greeted: in the era of the client it is opened for, if it speaks that one.

    client        first                      and if that is refused
    handshake     initialize                 server/discover: it may speak the modern era only
    modern        server/discover            initialize

"Never send anything but the probe first": some servers run what they are asked before any handshake.
"""

import asyncio

from plait.errors import UpstreamBroken, UpstreamError, UpstreamRefused, UpstreamTimeout, UpstreamUnavailable
from plait.session.eras.verdict import EraMemory, Incompatible, Reluctant
from plait.session.exchange import Reply
from plait.session.negotiation import Greeting
from plait.upstream.base import Link
from plait.upstream.client import McpClient
from plait.upstream.decoded import unwrap
from plait.upstream.handshake import McpSession
from plait.upstream.modern import ModernSession, discover, incompatible
from plait.wire.envelope import Fields
from plait.wire.modern import DISCOVER, UNSUPPORTED_VERSION, is_modern
from plait.wire.spec import LATEST_HANDSHAKE, Era

PROBE = 5.0
"""Seconds for an answer to the probe. After that `initialize` is tried, and nothing is remembered."""


class EndedByProbe(UpstreamUnavailable):
    """The server ended when it was asked for its era. It is one of the handshake era: open it anew."""


async def greet(
    client: McpClient,
    capabilities: Fields,
    revision: str,
    *,
    era: str = "auto",
    timeout: float = 60.0,
    memory: EraMemory | None = None,
) -> Link:
    """The server after its greeting, on behalf of a client that can do this and speaks that revision.

    `era` pins how it is greeted: auto, handshake or modern. Raises UpstreamError.
    `memory` is what was learnt of this server before, and learns what is found now.
    """
    greeter = _Greeter(client, capabilities, revision, timeout, memory or EraMemory())
    match era:
        case "handshake":
            return await greeter.initialize()
        case "modern":
            return await ModernSession.greet(client, timeout, greeter.memory)
    return await (greeter.modern_first() if is_modern(revision) else greeter.handshake_first())


class _Greeter:
    def __init__(
        self, client: McpClient, capabilities: Fields, revision: str, timeout: float, memory: EraMemory
    ) -> None:
        self._client = client
        self._capabilities = capabilities
        self._revision = revision
        self._timeout = timeout
        self.memory = memory

    async def initialize(self) -> Link:
        """A modern client's abilities are not declared: a question of the server's could not be put to it."""
        capabilities, revision = self._capabilities, self._revision
        if is_modern(revision):
            capabilities, revision = {}, LATEST_HANDSHAKE
        return await McpSession.greet(self._client, capabilities, revision, self._timeout)

    async def handshake_first(self) -> Link:
        try:
            return await self.initialize()
        except UpstreamRefused as refusal:
            session = await self._probe_after(refusal)
            if session is None:
                raise
            return session

    async def modern_first(self) -> Link:
        remembered = self.memory.recall(self._now())
        if remembered is not Era.HANDSHAKE:
            session = await self._probe(remembered)
            if session is not None:
                return session
        try:
            return await self.initialize()
        except UpstreamRefused as refusal:
            # A slow server that read the probe after all is bound to the modern era now.
            session = await self._probe_after(refusal) if refusal.code == UNSUPPORTED_VERSION else None
            if session is None:
                raise
            return session

    async def _probe(self, remembered: Era | None) -> Link | None:
        try:
            found = await discover(self._client, min(PROBE, self._timeout))
        except UpstreamTimeout:
            if remembered is Era.MODERN:
                raise
            return None
        except UpstreamError as problem:
            if self._client.end is None:
                return None
            self.memory.learn(Era.HANDSHAKE, self._now())
            raise EndedByProbe(str(problem)) from problem
        return self._conclude(found)

    def _conclude(self, found: Greeting | Era | Incompatible | Reluctant) -> Link | None:
        match found:
            case Greeting():
                self.memory.learn(Era.MODERN, self._now())
                return ModernSession(self._client, found, self.memory)
            case Incompatible(versions=versions):
                raise incompatible(self._client.name, versions)
            case Reluctant(error=error):
                unwrap(Reply(error=error))
                raise UpstreamBroken(f"server '{self._client.name}' refused {DISCOVER}")
        self.memory.learn(Era.HANDSHAKE, self._now())
        return None

    async def _probe_after(self, refusal: UpstreamRefused) -> Link | None:
        """Refused to shake hands: is it modern? If it does not say so, the refusal is what counts."""
        try:
            found = await discover(self._client, min(PROBE, self._timeout))
        except UpstreamError:
            return None
        return self._conclude(found) if isinstance(found, Greeting | Incompatible) else None

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
