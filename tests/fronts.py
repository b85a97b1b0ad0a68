"""A compositor with one server in memory, behind our HTTP application, for tests."""

import contextlib
from collections.abc import AsyncIterator

from asgi import HttpClient, StatelessClient, closing
from clients import compositor
from fakes import FakeServer, Held, Message
from plait.downstream.access import Access
from plait.downstream.http import HttpApp
from plait.downstream.http_limits import HttpLimits
from plait.downstream.sources import Sources
from plait.pipeline.grants import Identity
from plait.wire.spec import LATEST_HANDSHAKE

CALL = {"name": "fs__t", "arguments": {}}
DONE = {"content": [{"type": "text", "text": "done"}]}
OPEN = Access(Sources("127.0.0.1"), anonymous=Identity("anonymous"))


class Front:
    """A compositor with one server, behind HTTP."""

    def __init__(self, app: HttpApp, server: FakeServer) -> None:
        self.app = app
        self.server = server

    async def client(self, revision: str = LATEST_HANDSHAKE, **capabilities: object) -> HttpClient:
        client = HttpClient(self.app)
        await client.shake_hands(revision, capabilities)
        return client

    def modern(self, **capabilities: object) -> StatelessClient:
        return StatelessClient(self.app, capabilities=capabilities)

    def hold(self) -> list[Held]:
        """From now on calls wait for their answers; every one of them is put here."""
        held: list[Held] = []

        def later(params: Message) -> Held:
            held.append(Held())
            return held[-1]

        self.server.answers["tools/call"] = later
        return held

    def progress(self, value: int, place: int = 0) -> None:
        """The server tells how far it is with the call that came to it in this place."""
        meta = self.server.asked("tools/call")[place]["_meta"]
        assert isinstance(meta, dict)
        told = {"progressToken": meta["progressToken"], "progress": value}
        self.server.notify("notifications/progress", told)


@contextlib.asynccontextmanager
async def front(
    limits: HttpLimits | None = None, server: FakeServer | None = None, access: Access = OPEN
) -> AsyncIterator[Front]:
    server = server or FakeServer("fs", tools=["t"])
    async with compositor(server) as made, closing(HttpApp(made, access, limits=limits)) as app:
        yield Front(app, server)
