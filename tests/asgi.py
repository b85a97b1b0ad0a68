"""A client that calls an ASGI application in this process, request by request, and may leave at any time."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import cast

from fakes import Message
from plait.downstream.asgi import Message as AsgiMessage
from plait.downstream.asgi import Scope
from plait.downstream.http import HttpApp
from plait.session.negotiation import fields_of
from plait.wire.address import as_raw
from plait.wire.headers import headers_of
from plait.wire.modern import CAPABILITIES_KEY, LATEST_MODERN, VERSION_KEY
from plait.wire.spec import LATEST_HANDSHAKE

PATIENCE = 10_000.0
"""Seconds of a clock that jumps; on a real one the time limit of every test comes first."""
BOTH = "application/json, text/event-stream"
Pairs = Sequence[tuple[str, str]]


class Visit:
    """One request to the application, while it is answered."""

    def __init__(self, app: HttpApp, scope: Scope, parts: Sequence[bytes], *, endless: bool = False) -> None:
        self._parts = list(parts)
        self._endless = endless
        self._said: asyncio.Queue[AsgiMessage] = asyncio.Queue()
        self._gone = asyncio.Event()
        self._buffer = b""
        self.reads = asyncio.Event()
        """Cleared: the client does not read, and whoever sends to it waits."""
        self.reads.set()
        self.status = 0
        self.headers: dict[str, str] = {}
        self.asked = 0
        """How often the application asked for more of the body."""
        self.task = asyncio.get_running_loop().create_task(app(scope, self._receive, self._send))
        self.task.add_done_callback(lambda _: self._said.put_nowait({"type": "over"}))

    async def _receive(self) -> AsgiMessage:
        self.asked += 1
        if self._parts:
            part = self._parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(self._parts) or self._endless}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: AsgiMessage) -> None:
        await self.reads.wait()
        if not self._gone.is_set():
            self._said.put_nowait(message)

    def leave(self) -> None:
        """The client closes its connection."""
        self._gone.set()
        self.reads.set()

    # ---- what comes back

    async def _next(self) -> AsgiMessage:
        async with asyncio.timeout(PATIENCE):
            return await self._said.get()

    async def head(self) -> "Visit":
        """Wait for the status."""
        message = await self._next()
        assert message["type"] == "http.response.start", message
        self.status = cast(int, message["status"])
        pairs = cast(list[tuple[bytes, bytes]], message["headers"])
        self.headers = {name.decode(): value.decode() for name, value in pairs}
        return self

    async def _more(self) -> bool:
        message = await self._next()
        if message["type"] == "over":
            return False
        self._buffer += cast(bytes, message.get("body", b""))
        return bool(message.get("more_body"))

    async def body(self) -> bytes:
        """Everything up to the end."""
        if not self.status:
            await self.head()
        while await self._more():
            continue
        await asyncio.wait((self.task,))
        self.task.result()
        body, self._buffer = self._buffer, b""
        return body

    async def json(self) -> Message:
        found = json.loads(await self.body())
        assert isinstance(found, dict)
        return found

    async def block(self) -> str:
        """The next block of an event stream, comments too; empty at the end."""
        if not self.status:
            await self.head()
        while b"\n\n" not in self._buffer:
            if not await self._more():
                return ""
        block, _, self._buffer = self._buffer.partition(b"\n\n")
        return block.decode()

    async def event(self) -> dict[str, str]:
        """The next event: its fields. Empty at the end."""
        block = await self.block()
        while block.startswith(":"):
            block = await self.block()
        fields = [line.partition(": ") for line in block.splitlines()]
        return {name: value for name, _, value in fields}

    async def message(self) -> Message:
        """The next message of an event stream."""
        event = await self.event()
        while event and not event["data"].strip():
            event = await self.event()
        assert event, "the stream ended"
        found = json.loads(event["data"])
        assert isinstance(found, dict)
        return found

    async def close(self) -> None:
        self.leave()
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait((self.task,))


class Browser:
    """Somebody who speaks HTTP to the application."""

    def __init__(self, app: HttpApp, headers: Mapping[str, str] | None = None, root: str = "") -> None:
        self.app = app
        self.always = {"host": "127.0.0.1:7524", **(headers or {})}
        self._root = root

    def open(
        self,
        method: str,
        path: str,
        body: bytes | Sequence[bytes] = b"",
        headers: Mapping[str, str] | Pairs = (),
        *,
        endless: bool = False,
    ) -> Visit:
        """`endless`: the body never comes to its end."""
        path, _, query = path.partition("?")
        given = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
        names = {name for name, _ in given}
        pairs = [(name, value) for name, value in self.always.items() if name not in names] + given
        scope: Scope = {
            "type": "http",
            "method": method,
            "path": self._root + path,
            "root_path": self._root,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in pairs],
        }
        return Visit(self.app, scope, [body] if isinstance(body, bytes) else body, endless=endless)

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes | Sequence[bytes] = b"",
        headers: Mapping[str, str] | Pairs = (),
    ) -> tuple[Visit, bytes]:
        visit = self.open(method, path, body, headers)
        return visit, await visit.body()


class HttpClient(Browser):
    """A client of the handshake era at `/mcp`."""

    def __init__(self, app: HttpApp, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(app, {"content-type": "application/json", "accept": BOTH, **(headers or {})})
        self.session: dict[str, str] = {}
        self._ids = iter(range(1, 1_000_000))

    async def shake_hands(
        self, revision: str = LATEST_HANDSHAKE, capabilities: Mapping[str, object] | None = None
    ) -> Message:
        params = {"protocolVersion": revision, "capabilities": capabilities or {}}
        visit = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        answer = await visit.json()
        assert visit.status == 200, answer
        self.session = {"mcp-session-id": visit.headers["mcp-session-id"]}
        self.session["mcp-protocol-version"] = revision
        done = self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert await done.body() == b""
        assert done.status == 202
        return answer

    def post(self, message: object, **headers: str) -> Visit:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        given = {**self.session, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self.open("POST", "/mcp", body, given)

    def begin(self, method: str, params: Mapping[str, object] | None = None, id: object = None) -> Visit:
        """Send a request; the answer is the visit's."""
        id = next(self._ids) if id is None else id
        return self.post({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})

    async def request(self, method: str, **params: object) -> Message:
        return await self.begin(method, params).json()

    async def notify(self, method: str, **params: object) -> int:
        visit = self.post({"jsonrpc": "2.0", "method": method, "params": params})
        await visit.body()
        return visit.status

    def listen(self, last: str | None = None) -> Visit:
        """Open the standing stream, or go on with one that broke."""
        headers = self.session if last is None else {**self.session, "last-event-id": last}
        return self.open("GET", "/mcp", b"", headers)

    async def leave(self) -> int:
        visit, _ = await self.ask("DELETE", "/mcp", b"", self.session)
        return visit.status


class StatelessClient(Browser):
    """A client of the modern era at `/mcp`: every request has its stamp, and the headers that repeat it."""

    def __init__(
        self,
        app: HttpApp,
        headers: Mapping[str, str] | None = None,
        capabilities: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(app, {"content-type": "application/json", "accept": BOTH, **(headers or {})})
        self.stamp: Message = {VERSION_KEY: LATEST_MODERN, CAPABILITIES_KEY: capabilities or {}}
        self._ids = iter(range(1, 1_000_000))

    def begin(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        id: object = None,
        meta: Mapping[str, object] | None = None,
    ) -> Visit:
        """Send a request as it should be, but for these headers; the answer is the visit's."""
        given = {**(params or {}), "_meta": {**self.stamp, **(meta or {})}}
        id = next(self._ids) if id is None else id
        fields = {name: as_raw(value) for name, value in given.items()}
        always = headers_of(method, fields, fields_of(fields["_meta"]))
        named = {name.lower(): value for name, value in {**always, **(headers or {})}.items()}
        return self.post({"jsonrpc": "2.0", "id": id, "method": method, "params": given}, named)

    def post(self, message: object, headers: Mapping[str, str] | Pairs = ()) -> Visit:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return self.open("POST", "/mcp", body, headers)

    async def request(self, method: str, **params: object) -> Message:
        return await self.begin(method, params).json()


@contextlib.asynccontextmanager
async def closing(app: HttpApp) -> AsyncIterator[HttpApp]:
    try:
        yield app
    finally:
        await app.aclose()
