"""Web sites on loopback, a resolver that says what a test wants, and a spy on every connect()."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv6Address, ip_address
from types import TracebackType
from typing import Self

import pytest

from plait.outbound.addresses import Address
from plait.outbound.client import HttpClient
from plait.outbound.requests import Limits
from plait.outbound.urls import UrlPolicy


class Received:
    """One request as it came in."""

    def __init__(self, head: bytes, body: bytes) -> None:
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = lines[0].split(" ")
        self.headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)
        }
        self.body = body


def words(text: str) -> list[str]:
    """Many short cases in few lines."""
    return text.split()


Handler = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


def plain(body: bytes = b"hello", status: int = 200, **headers: str) -> bytes:
    """The bytes of a whole answer."""
    fields = {"Content-Type": "text/plain", "Content-Length": str(len(body))}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} Whatever\r\n{head}\r\n".encode() + body


def always(data: bytes) -> Handler:
    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return answer


class Site:
    """A server on loopback that counts who connects and remembers what was asked."""

    def __init__(self, handler: Handler, host: str = "127.0.0.1", port: int = 0) -> None:
        self._handler = handler
        self._address = (host, port)
        self.connections = 0
        self.received: list[Received] = []
        self._running: set[asyncio.Task[object]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, *self._address)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._running:
            task.cancel()
        await self._server.wait_closed()
        if self._running:
            await asyncio.wait(self._running)

    def url(self, target: str = "/", host: str = "site.test") -> str:
        return f"http://{host}:{self.port}{target}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        self.connections += 1
        try:
            while True:
                received = await _read(reader)
                self.received.append(received)
                await self._handler(received, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client is gone, or the test is over
        finally:
            self._running.discard(task)
            writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> Received:
    head = await reader.readuntil(b"\r\n\r\n")
    received = Received(head.removesuffix(b"\r\n\r\n"), b"")
    received.body = await reader.readexactly(int(received.headers.get("content-length", "0")))
    return received


class Names:
    """A resolver with one answer per question: the last one is given again and again."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {name.replace("_", "."): list(given) for name, given in answers.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str) -> Sequence[Address]:
        self.asked.append(host)
        answers = self._answers.get(host)
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return [ip_address(text) for text in answer]


class ConnectSpy:
    """Every address that a socket of this process was told to connect to."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.addresses: list[str] = []
        real = socket.socket.connect

        def connect(sock: socket.socket, address: tuple[str, int]) -> None:
            self.addresses.append(str(address[0]))
            if not _is_here(str(address[0])):
                raise ConnectionRefusedError(111, "the tests stay on loopback")
            real(sock, address)

        patch.setattr(socket.socket, "connect", connect)


def _is_here(text: str) -> bool:
    address = ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback or (mapped or address).is_unspecified


LOCAL: Sequence[Sequence[str]] = (("127.0.0.1",),)
"""The answer of a resolver for a site of ours."""


# ---- a client to visit them with

OURS = UrlPolicy(allowed_domains=("site.test",))
PATIENCE = 10.0


@asynccontextmanager
async def client(
    policy: UrlPolicy = OURS, names: Names | None = None, limits: Limits | None = None
) -> AsyncIterator[HttpClient]:
    made = HttpClient(policy, resolver=names or Names(site_test=LOCAL, other_test=LOCAL), limits=limits)
    async with asyncio.timeout(PATIENCE):
        try:
            yield made
        finally:
            await made.aclose()


async def fetch(client: HttpClient, url: str, method: str = "GET", **more: object) -> tuple[int, bytes]:
    async with client.open(method, url, **more) as response:  # type: ignore[arg-type]
        return response.status, await response.read()


def moved(location: str, status: int = 302) -> bytes:
    return plain(b"", status, Location=location)
