"""A modern server in memory, and a client that stamps what it says, for tests."""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Raw
from msgspec.json import decode

from clients import PATIENCE, RawClient
from fakes import FakeServer, Held, Message, Refusal
from plait.testing.server import Greeted
from plait.testing.wire import Reported, Wire
from plait.upstream.base import Link
from plait.upstream.client import Listener, McpClient
from plait.upstream.greeting import greet
from plait.wire.modern import CAPABILITIES_KEY, CLIENT_KEY, LEVEL_KEY, SUBSCRIPTION_KEY, VERSION_KEY

REVISION = "2026-07-28"
EVERYTHING = {
    "tools": {"listChanged": True},
    "prompts": {},
    "resources": {"subscribe": True},
    "completions": {},
    "logging": {},
}


class ModernServer(FakeServer):
    """Speaks the modern era only: it wants a stamp on everything, and knows no `initialize`."""

    streams: dict[object, Message]
    """The open streams: their filters, by their ids."""
    honours: bool = True

    async def open(self, listener: Listener, behalf: Awaitable[Greeted]) -> Link:
        self.streams = {}
        wire = ModernWire(self)
        self.wires.append(wire)
        client = McpClient(wire, name=self.name, timeout=self.timeout, listener=listener)
        await wire.open(client)
        try:
            known = await behalf
            return await greet(client, known.capabilities, known.revision, era=self.era, memory=self.memory)
        except BaseException:
            await wire.aclose()
            raise

    def answer(self, method: str, params: Message, report: Reported) -> object:
        meta = params.get("_meta")
        if not isinstance(meta, dict) or VERSION_KEY not in meta or CAPABILITIES_KEY not in meta:
            return Refusal(-32602, f"{method} without a stamp")
        answer = super().answer(method, params, report)
        if isinstance(answer, Refusal | Held):
            return answer
        if isinstance(answer, Raw):
            answer = decode(answer)
        assert isinstance(answer, dict)
        return {"resultType": "complete", **answer}

    def _usual(self, method: str, params: Message) -> object:
        match method:
            case "server/discover":
                return self.discovery()
            case "initialize" | "ping" | "logging/setLevel" | "resources/subscribe":
                return Refusal(-32601, f"Method not found: {method}")
            case "completion/complete":
                return {"completion": {"values": ["one"]}}
        return super()._usual(method, params)

    def discovery(self) -> Message:
        capabilities = EVERYTHING if self.capabilities is None else self.capabilities
        info = {"io.modelcontextprotocol/serverInfo": {"name": self.name, "version": "1"}}
        return {
            "supportedVersions": [REVISION],
            "capabilities": capabilities,
            "instructions": self.words,
            "ttlMs": 0,
            "cacheScope": "public",
            "_meta": info,
        }

    # ---- streams

    def listen(self, id: object, wanted: Message) -> None:
        self.streams[id] = wanted
        self.tell(
            id, "notifications/subscriptions/acknowledged", notifications=wanted if self.honours else {}
        )

    def tell(self, id: object, method: str, **params: object) -> None:
        """Something on one stream."""
        self.notify(method, {**params, "_meta": {SUBSCRIPTION_KEY: id}})

    def stream_of(self, filter: str) -> object:
        """The id of the open stream with this filter."""
        [id] = [id for id, wanted in self.streams.items() if filter in wanted]
        return id

    def end_stream(self, id: object) -> None:
        del self.streams[id]
        self.wire.say({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete"}})


class ModernWire(Wire):
    def __init__(self, server: ModernServer) -> None:
        super().__init__(server)
        self._modern = server

    def write(self, message: bytes) -> None:
        decoded: Message = decode(message)
        params = decoded.get("params")
        if self.closed or not isinstance(params, dict):
            return
        if decoded.get("method") == "subscriptions/listen":
            self._modern.requests.append(("subscriptions/listen", params))
            self._modern.listen(decoded["id"], params["notifications"])
            return
        if decoded.get("method") == "notifications/cancelled":
            self._modern.streams.pop(params["requestId"], None)
        super().write(message)


class ModernClient(RawClient):
    """A client that shakes no hands: every request has its stamp."""

    def stamp(self, capabilities: Message | None = None, level: str | None = None) -> Message:
        stamp: Message = {
            VERSION_KEY: REVISION,
            CLIENT_KEY: {"name": "modern", "version": "1"},
            CAPABILITIES_KEY: capabilities or {},
        }
        return stamp if level is None else {**stamp, LEVEL_KEY: level}

    def request(
        self,
        method: str,
        id: object = 1,
        *,
        meta: Message | None = None,
        capabilities: Message | None = None,
        level: str | None = None,
        **params: object,
    ) -> None:
        self.say(method, id, **params, _meta={**self.stamp(capabilities, level), **(meta or {})})

    async def send(self, method: str, id: object = 1, **more: object) -> Message:
        """The whole answer to a request; what else runs goes on running."""
        self.request(method, id, **more)  # type: ignore[arg-type]
        return await self.until(lambda message: "method" not in message and message["id"] == id)

    async def heard(self, method: str) -> Message:
        """The first notification of this method, params only."""
        params = (await self.until(lambda message: message.get("method") == method)).get("params", {})
        assert isinstance(params, dict)
        return params

    async def until(self, wanted: Callable[[Message], bool]) -> Message:
        async with asyncio.timeout(PATIENCE):
            while not (found := [message for message in self.messages if wanted(message)]):
                self._more = asyncio.get_running_loop().create_future()
                await self._more
        return found[0]

    _more: asyncio.Future[None] | None = None

    def write(self, message: bytes, within: bytes | None = None) -> None:
        super().write(message, within)
        if self._more is not None and not self._more.done():
            self._more.set_result(None)
