"""One mount, started by hand as a supervisor would, for tests."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from msgspec.json import decode

from fakes import FakeServer, Message
from plait.config.model import ServerSettings
from plait.mounts.mount import Mount, MountState
from plait.routing.naming import MountPrefix
from plait.session.exchange import Reply
from plait.upstream.opening import Behalf
from plait.wire.envelope import EMPTY, Fields
from plait.wire.spec import LATEST_HANDSHAKE, Kind


class Surroundings:
    """Remembers what a mount tells the rest of the compositor."""

    def __init__(self) -> None:
        self.states: list[tuple[MountState, str]] = []
        self.changes = 0
        self.heard_of: list[tuple[str, Message]] = []
        self.questions: list[tuple[str, Message]] = []
        self.answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.on_progress: Callable[[Fields], None] = lambda progress: None

    def state_changed(self, mount: Mount) -> None:
        self.states.append((mount.state, mount.reason))

    def lists_changed(self, mount: Mount) -> None:
        self.changes += 1

    def heard(self, mount: Mount, method: str, params: Fields) -> None:
        self.heard_of.append((method, {key: decode(value) for key, value in params.items()}))

    async def consulted(
        self, mount: Mount, method: str, params: Fields, on_progress: Callable[[Fields], None]
    ) -> Reply:
        self.questions.append((method, {key: decode(value) for key, value in params.items()}))
        self.on_progress = on_progress
        return await asyncio.shield(self.answer)


class Life:
    """A mount, what surrounds it, and its server; started by hand, as a supervisor would."""

    def __init__(self, server: FakeServer, settings: ServerSettings | None = None) -> None:
        self.server = server
        self.around = Surroundings()
        self.mount = Mount(MountPrefix("fs"), "files", server, settings or ServerSettings(), self.around)

    async def start(self) -> None:
        await self.mount.start(_behalf())

    async def end(self, reason: str = "it exited with code 1") -> None:
        """The server ends, and the mount notices."""
        self.server.end(reason)
        assert await self.mount.run_out() == reason

    def keys(self, kind: Kind = Kind.TOOLS) -> list[str]:
        return [item.key for item in self.mount.listed(kind)]


@contextlib.asynccontextmanager
async def life(server: FakeServer, settings: ServerSettings | None = None) -> AsyncIterator[Life]:
    made = Life(server, settings)
    try:
        yield made
    finally:
        await made.mount.aclose()


async def _behalf() -> Behalf:
    return Behalf({"roots": EMPTY}, LATEST_HANDSHAKE)
