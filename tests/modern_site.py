"""A server of the modern era over HTTP, on loopback, that misbehaves exactly where a test says so."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from loopback import PATIENCE, Received
from mcp_site import STREAM, McpSite, Message, Script, as_json, chunk, event, reply
from plait.config.model import HttpServer
from plait.session.eras.verdict import EraMemory
from plait.upstream.base import Link
from plait.upstream.client import Listener, McpClient
from plait.upstream.greeting import greet
from plait.upstream.http import HttpTransport
from plait.upstream.opening import Behalf
from plait.upstream.opening_http import HttpOpener

REVISION = "2026-07-28"
DISCOVERED: Message = {
    "resultType": "complete",
    "supportedVersions": [REVISION],
    "capabilities": {"tools": {}},
    "instructions": "be modern",
    "ttlMs": 0,
    "cacheScope": "public",
}
DONE: Message = {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}


def refused(code: int, status: int = 400, id: object = None) -> Script:
    """A JSON-RPC error; without an id of the test's, under that of the request."""

    async def script(message: Message, writer: asyncio.StreamWriter) -> None:
        error = {"code": code, "message": "no"}
        given = message["id"] if id is None else None
        writer.write(as_json({"jsonrpc": "2.0", "id": given, "error": error}, status))

    return script


def gives(**result: object) -> Script:
    async def script(message: Message, writer: asyncio.StreamWriter) -> None:
        writer.write(as_json(reply(message, {"resultType": "complete", **result})))

    return script


class ModernSite(McpSite):
    """Knows no `initialize`; streams that are listened to stay open, and are found in `streams`."""

    def __init__(self, scripts: Mapping[str, Script] | None = None, **capabilities: object) -> None:
        declared = {**DISCOVERED, "capabilities": capabilities or {"tools": {}}}
        usual: dict[str, Script] = {
            "server/discover": gives(**declared),
            "initialize": refused(-32602, 400),
            "tools/list": gives(tools=[]),
            "tools/call": gives(**DONE),
            "subscriptions/listen": self._listen,
        }
        super().__init__({**usual, **(scripts or {})}, session=None)
        self.streams: list[asyncio.StreamWriter] = []

    async def _listen(self, message: Message, writer: asyncio.StreamWriter) -> None:
        params = message["params"]
        assert isinstance(params, dict)
        writer.write(STREAM)
        self.tell(
            writer,
            message["id"],
            "notifications/subscriptions/acknowledged",
            notifications=params["notifications"],
        )
        await writer.drain()
        self.streams.append(writer)
        await asyncio.Event().wait()

    def tell(self, writer: asyncio.StreamWriter, id: object, method: str, **params: object) -> None:
        tagged = {**params, "_meta": {"io.modelcontextprotocol/subscriptionId": id}}
        writer.write(event({"jsonrpc": "2.0", "method": method, "params": tagged}))

    def heads(self, method: str) -> list[Mapping[str, str]]:
        """The headers of every request of one JSON-RPC method."""
        return [each.headers for each in self.received if _method(each) == method]


def _method(received: Received) -> object:
    return json.loads(received.body).get("method") if received.body else None


def ends(result: Message) -> Script:
    """A stream with a sign of life and the result."""

    async def script(message: Message, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + chunk(b": ping\n\n") + event(reply(message, result)) + b"0\r\n\r\n")

    return script


@asynccontextmanager
async def greeted(
    url: str,
    revision: str = REVISION,
    *,
    era: str = "auto",
    memory: EraMemory | None = None,
    listener: Listener | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = PATIENCE,
) -> AsyncIterator[Link]:
    """A link to whatever is there, found out on behalf of a client of this revision."""
    transport = HttpTransport(url, headers, limit=64 * 1024)
    async with asyncio.timeout(PATIENCE):
        client = McpClient(transport, name="far", timeout=timeout, listener=listener)
        await transport.open(client)
        try:
            link = await greet(client, {}, revision, era=era, memory=memory, timeout=timeout)
        except BaseException:
            await transport.aclose()
            raise
        try:
            yield link
        finally:
            await link.aclose()


def opener(url: str, folder: Path, transport: Literal["http", "sse"] = "http") -> HttpOpener:
    server = HttpServer(name="far", url=url, transport=transport)
    return HttpOpener(server, {"XDG_CACHE_HOME": str(folder)})


async def behalf(revision: str = REVISION) -> Behalf:
    return Behalf({}, revision)
