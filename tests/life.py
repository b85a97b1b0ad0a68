"""One instance of a server, started by hand as a supervisor would, for tests."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence

from msgspec.json import decode

from fakes import FakeServer, Message
from plait.config.model import ServerSettings
from plait.mounts.instance import Instance
from plait.mounts.state import MountState
from plait.routing.naming import MountPrefix
from plait.session.exchange import Exchange, Reply
from plait.upstream.opening import Behalf
from plait.wire.envelope import EMPTY, Fields
from plait.wire.spec import LATEST_HANDSHAKE, Kind


class Surroundings:
    """Remembers what an instance tells the rest of the compositor."""

    def __init__(self) -> None:
        self.states: list[tuple[MountState, str]] = []
        self.changes = 0
        self.heard_of: list[tuple[str, Message]] = []
        self.questions: list[tuple[str, Message]] = []
        self.answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.on_progress: Callable[[Fields], None] = lambda progress: None

    def state_changed(self, instance: Instance) -> None:
        self.states.append((instance.state, instance.reason))

    def lists_changed(self, instance: Instance) -> None:
        self.changes += 1

    def heard(self, instance: Instance, method: str, params: Fields) -> None:
        self.heard_of.append((method, {key: decode(value) for key, value in params.items()}))

    def watched(self, instance: Instance) -> bool:
        return False

    async def consulted(
        self,
        instance: Instance,
        method: str,
        params: Fields,
        on_progress: Callable[[Fields], None],
        working_for: Sequence[Exchange],
    ) -> Reply:
        self.questions.append((method, {key: decode(value) for key, value in params.items()}))
        self.on_progress = on_progress
        return await asyncio.shield(self.answer)


class Life:
    """An instance, what surrounds it, and its server; started by hand, as a supervisor would."""

    def __init__(self, server: FakeServer, settings: ServerSettings | None = None) -> None:
        self.server = server
        self.around = Surroundings()
        self.instance = Instance(
            MountPrefix("fs"), "files", server, settings or ServerSettings(), self.around
        )
        self.instance.claim(Behalf({"roots": EMPTY}, LATEST_HANDSHAKE))

    async def start(self) -> None:
        await self.instance.start()

    async def end(self, reason: str = "it exited with code 1") -> None:
        """The server ends, and the instance notices."""
        self.server.end(reason)
        assert await self.instance.run_out() == reason

    def keys(self, kind: Kind = Kind.TOOLS) -> list[str]:
        return [item.key for item in self.instance.listed(kind)]


@contextlib.asynccontextmanager
async def life(server: FakeServer, settings: ServerSettings | None = None) -> AsyncIterator[Life]:
    made = Life(server, settings)
    try:
        yield made
    finally:
        await made.instance.aclose()
