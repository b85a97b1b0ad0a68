"""An MCP server over HTTP, on loopback, that misbehaves exactly where a test says so."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from loopback import PATIENCE, Received, Site, plain
from plait.upstream.client import Listener
from plait.upstream.handshake import McpSession
from plait.upstream.http import HttpTransport

Message = dict[str, object]
Script = Callable[[Message, asyncio.StreamWriter], Awaitable[None]]
"""What to do about one message; for a GET or a DELETE the message is its headers."""

WELCOME: Message = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "theirs", "version": "7"},
    "instructions": "be kind",
}
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def reply(message: Message, result: object) -> Message:
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def as_json(message: object, status: int = 200, **headers: str) -> bytes:
    return plain(json.dumps(message).encode(), status, Content_Type="application/json", **headers)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(message: object, *fields: str) -> bytes:
    """One chunk with one event in it."""
    lines = "".join(f"{field}\n" for field in fields)
    data = "" if message is None else json.dumps(message)
    return chunk(f"{lines}data: {data}\n\n".encode())


def sends(*parts: bytes) -> Script:
    """Always the same bytes, whatever was asked."""

    async def script(message: Message, writer: asyncio.StreamWriter) -> None:
        writer.write(b"".join(parts))

    return script


def streams(*parts: Callable[[Message], bytes] | bytes) -> Script:
    """A stream; parts that are functions are given the request."""

    async def script(message: Message, writer: asyncio.StreamWriter) -> None:
        given = (part if isinstance(part, bytes) else part(message) for part in parts)
        writer.write(STREAM + b"".join(given))

    return script


def answer(message: Message) -> bytes:
    """An event with an ordinary reply."""
    return event(reply(message, {"content": []}))


def in_turn(*scripts: Script) -> Script:
    """The next script for each request; the last one again and again."""
    left = list(scripts)

    async def script(message: Message, writer: asyncio.StreamWriter) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(message, writer)

    return script


async def cut(message: Message, writer: asyncio.StreamWriter) -> None:
    """A TCP reset instead of an answer."""
    writer.transport.abort()


async def silence(message: Message, writer: asyncio.StreamWriter) -> None:
    """Nothing, for ever."""
    await asyncio.Event().wait()


class McpSite(Site):
    """Scripts are found by the JSON-RPC method, or by GET and DELETE; the rest is done as it should be."""

    def __init__(self, scripts: Mapping[str, Script] | None = None, session: str | None = "s-1") -> None:
        super().__init__(self._answer)
        self._scripts = dict(scripts or {})
        self._session = session

    @property
    def mcp(self) -> str:
        return self.url("/mcp", host="127.0.0.1")

    def sent(self, *methods: str) -> list[Message]:
        """The messages that came, of these methods or all."""
        messages = [json.loads(received.body) for received in self.received if received.body]
        return [message for message in messages if not methods or message.get("method") in methods]

    def asked(self, method: str) -> list[Received]:
        """The requests of one HTTP method."""
        return [received for received in self.received if received.method == method]

    async def until_asked(self, method: str, times: int = 1) -> None:
        """Wait until so many requests of one HTTP method came."""
        await _until(lambda: len(self.asked(method)) >= times)

    async def until_sent(self, method: str, times: int = 1) -> None:
        """Wait until so many messages of one JSON-RPC method came."""
        await _until(lambda: len(self.sent(method)) >= times)

    async def _answer(self, received: Received, writer: asyncio.StreamWriter) -> None:
        message: Message = json.loads(received.body) if received.body else dict(received.headers)
        method = str(message.get("method", "")) if received.body else received.method
        script = self._scripts.get(method)
        if script is not None:
            await script(message, writer)
        elif method == "initialize":
            headers = {"Mcp_Session_Id": self._session} if self._session else {}
            writer.write(as_json(reply(message, WELCOME), 200, **headers))
        elif method in ("GET", "DELETE"):
            writer.write(plain(b"", 405))
        elif "id" in message and method:
            writer.write(as_json(reply(message, {"content": []})))
        else:
            writer.write(plain(b"", 202))


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE * 10):  # on a clock that jumps, too
        while not true():  # noqa: ASYNC110  what came is a list, and no event
            await asyncio.sleep(0.002)


@asynccontextmanager
async def visiting(
    site: McpSite,
    headers: Mapping[str, str] | None = None,
    *,
    limit: int = 64 * 1024,
    timeout: float = PATIENCE,
    listener: Listener | None = None,
    patience: float = PATIENCE,
) -> AsyncIterator[McpSession]:
    """A session with it, which is over in good time."""
    transport = HttpTransport(site.mcp, headers, limit=limit)
    async with asyncio.timeout(patience):
        session = await McpSession.connect(transport, name="far", timeout=timeout, listener=listener)
        async with session:
            yield session
