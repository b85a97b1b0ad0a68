"""One HTTP request as ASGI gives it, and the answers to it.

Everything here reads the parsed parts of the scope. Nobody puts a URL together again from them: what is
judged and what is served would then be two things.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from typing import cast

from msgspec import Struct

from plait.wire.envelope import encode, error_body, failure
from plait.wire.spec import INVALID_REQUEST

Scope = MutableMapping[str, object]
Message = MutableMapping[str, object]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

JSON = (b"content-type", b"application/json")
CLOSE = (b"connection", b"close")
"""The rest of a body that we do not want is still on its way: this connection cannot be used again."""
EVENTS: Headers = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


class Answer(Struct, frozen=True, gc=False):
    """A whole response."""

    status: int
    body: bytes = b""
    headers: Headers = ()


def as_json(status: int, value: object, headers: Headers = ()) -> Answer:
    return Answer(status, encode(value), (JSON, *headers))


def refusal(status: int, message: str, headers: Headers = (), code: int = INVALID_REQUEST) -> Answer:
    """Why a request is not served, as a JSON-RPC error without an id: whatever asks can read that."""
    return Answer(status, failure(None, error_body(code, message)), (JSON, *headers))


class Request:
    """One request. Its head is there; its body is read when it is wanted, and no more of it than that."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method = str(scope["method"])
        self.root = str(scope.get("root_path") or "")
        """Where in somebody's application we are mounted."""
        self.path = str(scope["path"]).removeprefix(self.root).rstrip("/") or "/"
        self.query = cast(bytes, scope.get("query_string") or b"").decode("latin-1")
        self._headers = [
            (bytes(n).lower(), bytes(v)) for n, v in cast(Iterable[tuple[bytes, bytes]], scope["headers"])
        ]
        self._receive = receive
        self._send = send
        self.extra: Headers = ()
        """Headers that every answer to this request has."""

    # ---- its head

    def pairs(self) -> list[tuple[str, str]]:
        """All headers, one pair for each line."""
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self._headers]

    def values(self, name: bytes) -> list[str]:
        return [value.decode("latin-1").strip() for given, value in self._headers if given == name]

    def header(self, name: bytes) -> str | None:
        """The value of a header; of one that is there twice, nobody should ask which."""
        for given, value in self._headers:
            if given == name:
                return value.decode("latin-1").strip()
        return None

    def repeats(self, names: Collection[bytes]) -> bool:
        """Is one of these headers there more than once?"""
        given = [name for name, _ in self._headers if name in names]
        return len(given) != len(set(given))

    def accepts(self, kind: str) -> bool:
        """Does the client take this media type? One that says nothing takes anything (RFC 9110 §12.5.1)."""
        listed = self.values(b"accept")
        if not listed:
            return True
        ranges = {entry.partition(";")[0].strip().lower() for entry in ",".join(listed).split(",")}
        return bool(ranges & {kind, f"{kind.partition('/')[0]}/*", "*/*"})

    # ---- its body

    async def body(self, limit: int, seconds: float) -> bytes | Answer:
        """The whole body, or why there is none: it is too long, or comes too slowly."""
        length = self.header(b"content-length") or "0"
        if not length.isdecimal() or int(length) > limit:
            return _too_long(limit)
        try:
            async with asyncio.timeout(seconds):
                return await self._collect(limit)
        except TimeoutError:
            return refusal(408, f"the body was not there within {seconds:g} s", (CLOSE,))

    async def _collect(self, limit: int) -> bytes | Answer:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                return refusal(400, "the body ended in the middle", (CLOSE,))
            part = cast(bytes, message.get("body", b""))
            size += len(part)
            if size > limit:
                return _too_long(limit)
            parts.append(part)
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    async def until_gone(self) -> None:
        """Wait until the client has closed its connection."""
        while (await self._receive())["type"] != "http.disconnect":
            continue

    # ---- the answer

    async def respond(self, answer: Answer) -> None:
        length = (b"content-length", str(len(answer.body)).encode())
        await self.begin(answer.status, (*answer.headers, length))
        await self._say({"type": "http.response.body", "body": answer.body})

    async def begin(self, status: int, headers: Headers) -> None:
        await self._say({"type": "http.response.start", "status": status, "headers": [*headers, *self.extra]})

    async def write(self, data: bytes) -> None:
        """A piece of the answer. Waits while the client does not read."""
        await self._say({"type": "http.response.body", "body": data, "more_body": True})

    async def finish(self) -> None:
        await self._say({"type": "http.response.body", "body": b""})

    async def _say(self, message: Message) -> None:
        """Some hosts raise OSError where nobody listens any more (ASGI 2.4), others keep silent."""
        with contextlib.suppress(OSError):
            await self._send(message)


def _too_long(limit: int) -> Answer:
    return refusal(413, f"a message has at most {limit} bytes", (CLOSE,))
