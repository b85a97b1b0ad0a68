"""A compositor in this process, and clients of it, for tests."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Self

from msgspec.json import decode
from msgspec.structs import replace

from fakes import FakeServer, Held, Message
from plait.compositor import Compositor
from plait.config.model import ServerSettings, Settings
from plait.routing.naming import MountPrefix
from plait.session.exchange import Exchange, Reply
from plait.upstream.client import Answer, Listener
from plait.upstream.handshake import McpSession
from plait.wire.address import as_raw
from plait.wire.envelope import Fields, encode
from plait.wire.spec import LATEST_HANDSHAKE

ALONE = Settings(resource_tools=False, meta_resources=False)
"""Nothing is mounted but what the test mounts."""
PATIENCE = 30.0
"""Seconds that any single wait of a test may take."""


@contextlib.asynccontextmanager
async def compositor(
    *servers: FakeServer, settings: Settings | None = None, shared: bool = False
) -> AsyncIterator[Compositor]:
    """A compositor with these servers, each under its name; `shared`: all clients have one session with each.

    An error that plait calls its own bug fails."""
    bugs = _Bugs()
    logging.getLogger("plait").addHandler(bugs)
    try:
        async with Compositor(
            replace(settings or Settings(), resource_tools=False, meta_resources=False)
        ) as made:
            for server in servers:
                share = ServerSettings(share="all" if shared else "identity")
                await made.mount(MountPrefix(server.name), server, settings=share, wait=False)
            yield made
    finally:
        logging.getLogger("plait").removeHandler(bugs)
    assert not bugs.seen, bugs.seen


class _Bugs(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("a bug in plait"):
            self.seen.append(logging.Formatter().format(record))


class Client(Listener):
    """A client by our own client half. `async with Client(compositor) as client: …`"""

    def __init__(
        self,
        compositor: Compositor,
        capabilities: Mapping[str, object] | None = None,
        revision: str = LATEST_HANDSHAKE,
    ) -> None:
        self._compositor = compositor
        self._capabilities = {key: as_raw(value) for key, value in (capabilities or {}).items()}
        self._revision = revision
        self.notes: list[tuple[str, Message]] = []
        self.asked: list[tuple[str, Message]] = []
        self.retractions = 0
        self.answers: dict[str, object] = {}
        """What to answer a question of this method with; a Held waits."""

    async def __aenter__(self) -> Self:
        self.session = await McpSession.connect(
            self._compositor.transport(),
            capabilities=self._capabilities,
            revision=self._revision,
            timeout=3600,
            listener=self,
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.session.aclose()

    async def send(self, method: str, **params: object) -> Message:
        """The decoded result. Raises UpstreamRefused for an error."""
        async with asyncio.timeout(PATIENCE * 100):
            result = await self.session.client.send_raw(method, params)
        assert isinstance(result, dict)
        return result

    async def call(self, tool: str, **arguments: object) -> Message:
        return await self.send("tools/call", name=tool, arguments=arguments)

    async def names(self) -> list[object]:
        return [tool["name"] for tool in await self.session.list_tools()]

    def told(self, method: str) -> list[Message]:
        """The params of every such notification that came, in order."""
        return [params for told, params in self.notes if told == method]

    def questions(self, method: str) -> list[Message]:
        return [params for asked, params in self.asked if asked == method]

    # ---- what the gateway says unasked

    def heard(self, method: str, params: Fields) -> None:
        self.notes.append((method, {key: decode(value) for key, value in params.items()}))

    def consulted(
        self,
        id: bytes,
        method: str,
        params: Fields,
        answer: Answer,
        exchange: Exchange | None,
    ) -> None:
        self.asked.append((method, {key: decode(value) for key, value in params.items()}))
        scripted = self.answers[method]
        if isinstance(scripted, Held):
            scripted.answer = lambda result: answer(Reply(result=as_raw(result)))
        else:
            answer(Reply(result=as_raw(scripted)))

    def retracted(self, id: bytes) -> None:
        self.retractions += 1


class RawClient:
    """A client that writes what it likes, line by line, and sees every message that comes back."""

    def __init__(self, compositor: Compositor, identity: str = "anonymous") -> None:
        self._compositor = compositor
        self._identity = identity
        self.messages: list[Message] = []

    async def __aenter__(self) -> Self:
        self.connection = self._compositor.connect(self, self._identity)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._compositor.disconnect(self.connection)

    def write(self, message: bytes, within: bytes | None = None) -> None:
        self.messages.append(decode(message))

    def backlog(self) -> int:
        return 0

    def say(self, method: str, id: object = None, **params: object) -> None:
        """A request, or without an id a notification."""
        head: Message = {"jsonrpc": "2.0", "method": method}
        if id is not None:
            head["id"] = id
        self.connection.receive(encode({**head, "params": params}))

    def initialize(self, id: object = 1, **capabilities: object) -> None:
        info = {"name": "raw", "version": "1"}
        self.say(
            "initialize", id, protocolVersion=LATEST_HANDSHAKE, capabilities=capabilities, clientInfo=info
        )
        self.say("notifications/initialized")

    async def answered(self) -> None:
        """Every request that was said has its answer."""
        await self.connection.finish(PATIENCE)

    def answer(self, id: object) -> Message:
        """The one answer to this request."""
        [answer] = [message for message in self.messages if "method" not in message and message["id"] == id]
        return answer

    def told(self, method: str) -> list[Message]:
        return [message for message in self.messages if message.get("method") == method]


def result_of(answer: Message) -> Message:
    result = answer["result"]
    assert isinstance(result, dict)
    return result


def error_of(answer: Message) -> Message:
    error = answer["error"]
    assert isinstance(error, dict)
    return error
