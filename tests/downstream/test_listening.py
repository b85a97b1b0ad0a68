"""Real sockets: clients that send slowly, read slowly, send too much, leave, or come in crowds."""

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import AsyncIterator

import pytest

from clients import compositor
from fakes import FakeServer, Held, Message
from fronts import CALL, OPEN
from plait.downstream.http import HttpApp
from plait.downstream.http_limits import HttpLimits
from plait.downstream.listening import Listener, bind
from processes import until

PATIENCE = 30.0
SHORT = 0.2
"""Seconds of a limit that a test runs into."""
POST = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
FINE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Line:
    """A connection of a client that writes what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def say(self, data: bytes) -> "Line":
        self.writer.write(data)
        with contextlib.suppress(ConnectionError):
            await self.writer.drain()
        return self

    async def status(self) -> int:
        """The status of the next answer, whose body is read and forgotten; 0 at the end."""
        async with asyncio.timeout(PATIENCE):
            try:
                head = await self.reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                return 0
        headers = head.lower().split(b"\r\n")
        length = next((int(line[15:]) for line in headers if line.startswith(b"content-length:")), 0)
        await self.reader.readexactly(length)
        return int(head.split(b" ")[1])

    async def rest(self) -> bytes:
        """Everything up to the end that the other side makes."""
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                return await self.reader.read()
        return b""

    def close(self) -> None:
        self.writer.transport.abort()


class Place:
    """A gateway that listens."""

    def __init__(self, app: HttpApp, listener: Listener, port: int, server: FakeServer) -> None:
        self.app = app
        self.listener = listener
        self.port = port
        self.server = server
        self._lines: list[Line] = []

    async def line(self) -> Line:
        made = Line(*await asyncio.open_connection("127.0.0.1", self.port))
        self._lines.append(made)
        return made

    async def ask(self, data: bytes) -> int:
        return await (await (await self.line()).say(data)).status()

    def hang_up(self) -> None:
        for line in self._lines:
            line.close()

    async def session(self) -> str:
        line = await (await self.line()).say(post(json.dumps(HELLO).encode()))
        head = await line.reader.readuntil(b"\r\n\r\n")
        return next(
            part[16:].decode() for part in head.split(b"\r\n") if part.startswith(b"mcp-session-id: ")
        )


HELLO: Message = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25"},
}


def post(body: bytes, session: str = "", length: int | None = None) -> bytes:
    lines = [
        "POST /mcp HTTP/1.1",
        "Host: localhost",
        "Accept: application/json, text/event-stream",
        "Content-Type: application/json",
        f"Content-Length: {len(body) if length is None else length}",
        *([f"Mcp-Session-Id: {session}"] if session else []),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def call(session: str) -> bytes:
    return post(
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALL}).encode(), session
    )


@contextlib.asynccontextmanager
async def place(**limits: float) -> AsyncIterator[Place]:
    made_limits = HttpLimits(**limits)  # type: ignore[arg-type]
    server = FakeServer("fs", tools=["t"])
    async with asyncio.timeout(PATIENCE * 2), compositor(server) as made:
        app = HttpApp(made, OPEN, limits=made_limits)
        listener = Listener(app, made_limits)
        with bind("127.0.0.1", 0) as listening:
            await listener.open(listening)
            at = Place(app, listener, listening.getsockname()[1], server)
            try:
                yield at
            finally:
                at.hang_up()
                await app.aclose()
                await listener.aclose(PATIENCE)
    assert listener.connections == 0


async def test_one_connection_serves_many_requests_and_says_when() -> None:
    async with place() as at:
        line = await at.line()
        for _ in range(5):
            assert await (await line.say(FINE)).status() == 200
        await line.say(FINE)
        assert b"\r\ndate: " in await line.reader.readuntil(b"\r\n\r\n")
        assert at.listener.connections == 1


async def test_requests_that_are_sent_in_one_piece_are_answered_in_order() -> None:
    async with place() as at:
        line = await (await at.line()).say(FINE + FINE.replace(b"/healthz", b"/nothing") + FINE)
        assert [await line.status() for _ in range(3)] == [200, 404, 200]


# ---- slow ones


@pytest.mark.parametrize("data", [b"", b"G", b"GET /mcp HTTP/1.1\r\n", FINE[:-2], FINE + b"GET"])
async def test_a_head_that_does_not_come_to_its_end_is_not_waited_for(data: bytes) -> None:
    async with place(head_time=SHORT) as at:
        line = await (await at.line()).say(data)
        assert b"HTTP/1.1 408" in await line.rest()


async def test_many_who_never_finish_their_head_delay_nobody() -> None:
    async with place(head_time=SHORT) as at:
        slow = [await (await at.line()).say(b"GET /mcp HTTP/1.1\r\nHost: ") for _ in range(200)]
        assert await at.ask(FINE) == 200
        for line in slow:
            assert b" 408 " in await line.rest()


async def test_a_body_that_does_not_come_to_its_end_is_not_waited_for() -> None:
    async with place(body_time=SHORT) as at:
        session = await at.session()
        line = await (await at.line()).say(post(b"{", session, length=100))
        answer = await line.rest()
        assert answer.startswith(b"HTTP/1.1 408")
        assert await at.ask(FINE) == 200


async def test_a_body_that_nobody_wants_is_not_waited_for_either() -> None:
    async with place(body_time=SHORT) as at:
        line = await (await at.line()).say(post(b"{", length=100).replace(b"/mcp", b"/nothing"))
        assert await line.status() == 404
        assert await line.status() in (0, 408)


async def test_a_connection_that_does_nothing_is_closed() -> None:
    async with place(keep_alive=1) as at:
        line = await (await at.line()).say(FINE)
        assert await line.status() == 200
        assert await line.rest() == b""


async def test_a_client_that_does_not_read_is_cut_off_and_the_others_are_served() -> None:
    async with place(stalled=SHORT) as at:
        session = await at.session()
        at.server.answers["tools/call"] = lambda params: {
            "content": [{"type": "text", "text": "x" * 50_000_000}]
        }
        stubborn = socket.socket()
        stubborn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stubborn.setblocking(False)
        with stubborn:
            loop = asyncio.get_running_loop()
            await loop.sock_connect(stubborn, ("127.0.0.1", at.port))
            await loop.sock_sendall(stubborn, call(session))
            await until(lambda: bool(at.server.asked("tools/call")))
            assert await at.ask(FINE) == 200
            at.hang_up()
            await until(lambda: at.listener.connections == 0, PATIENCE)
        assert await at.ask(FINE) == 200


# ---- large ones


@pytest.mark.parametrize("step", [1000, 1_000_000])
async def test_a_head_that_is_too_long_is_refused(step: int) -> None:
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"
    async with place() as at:
        line = await at.line()
        for start in range(0, len(head), step):
            await line.say(head[start : start + step])
        assert b"HTTP/1.1 431" in await line.rest()


async def test_many_small_headers_are_too_long_together() -> None:
    many = b"".join(b"X-%d: y\r\n" % number for number in range(5000))
    async with place() as at:
        assert await at.ask(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + many + b"\r\n") == 431


async def test_a_hundred_megabytes_are_refused_before_they_are_sent() -> None:
    async with place() as at:
        session = await at.session()
        line = await (await at.line()).say(post(b"", session, length=100_000_000))
        assert await line.status() == 413
        assert await line.rest() == b""


async def test_a_hundred_megabytes_that_were_not_announced_are_cut_off() -> None:
    async with place() as at:
        session = await at.session()
        head = post(b"", session).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        line = await (await at.line()).say(head)
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        sent = 0
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE):
                while sent < 100_000_000 and not line.reader.at_eof():
                    line.writer.write(chunk * 16)
                    await line.writer.drain()
                    sent += len(chunk) * 16
        assert sent < 50_000_000
        assert await at.ask(FINE) == 200


# ---- odd ones


@pytest.mark.parametrize(
    "data",
    [
        POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
        POST + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
        POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        POST + b"Content-Length: -1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_refused_and_nothing_behind_it_is_read(data: bytes) -> None:
    async with place() as at:
        line = await (await at.line()).say(data)
        assert await line.status() == 400
        assert await at.ask(FINE) == 200


@pytest.mark.parametrize("host", ["localhost/?x=", "evil.example", "localhost@evil.example"])
async def test_the_host_is_judged_on_real_connections_too(host: str) -> None:
    async with place() as at:
        assert await at.ask(FINE.replace(b"localhost", host.encode())) == 421


async def test_a_path_cannot_be_told_as_a_whole_url() -> None:
    async with place() as at:
        assert await at.ask(b"GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") == 200
        assert await at.ask(b"GET @evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") == 400


async def test_an_upgrade_that_is_not_offered_is_an_ordinary_request() -> None:
    upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    async with place() as at:
        line = await (await at.line()).say(FINE[:-2] + upgrade)
        assert await line.status() == 200


# ---- crowds, and leaving


async def test_more_connections_than_there_may_be_are_turned_away() -> None:
    async with place(connections=20) as at:
        crowd = [await at.line() for _ in range(20)]
        await until(lambda: at.listener.connections == 20)
        assert b"HTTP/1.1 503" in await (await at.line()).rest()
        crowd[0].close()
        await until(lambda: at.listener.connections == 19)
        assert await at.ask(FINE) == 200


async def test_a_crowd_that_comes_and_goes_leaves_nothing_behind() -> None:
    async with place() as at:
        for _ in range(5):
            crowd = [await (await at.line()).say(FINE) for _ in range(100)]
            assert {await line.status() for line in crowd} == {200}
            at.hang_up()
            await until(lambda: at.listener.connections == 0)


async def test_a_client_that_stops_sending_in_the_middle_of_a_call_takes_nothing_down() -> None:
    """Half closed: it has said all it will say. In the handshake era its call goes on."""
    async with place() as at:
        session = await at.session()
        held = Held()
        at.server.answers["tools/call"] = lambda params: held
        line = await (await at.line()).say(call(session))
        await until(lambda: bool(at.server.asked("tools/call")))
        line.writer.write_eof()
        await line.rest()
        assert at.server.told("notifications/cancelled") == []
        held.answer({"content": []})
        at.server.answers.clear()
        assert await at.ask(call(session)) == 200


async def test_stopping_ends_open_streams_at_once() -> None:
    async with place() as at:
        session = await at.session()
        head = FINE.replace(b"/healthz", b"/mcp")[:-2]
        lines = [
            await (await at.line()).say(
                head + b"Mcp-Session-Id: %b\r\nAccept: text/event-stream\r\n\r\n" % id
            )
            for id in [session.encode(), (await at.session()).encode()]
        ]
        for line in lines:
            assert await line.status() == 200
        at.listener.stop()
        await at.app.aclose()
        for line in lines:
            assert (await line.rest()).endswith(b"0\r\n\r\n")
        await at.listener.aclose(PATIENCE)
        with pytest.raises(ConnectionError):
            await at.line()


@pytest.mark.requirement("K-16")
async def test_no_header_is_ever_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with place() as at:
            secret = b"Authorization: Bearer canary-in-a-header\r\nCookie: canary-in-a-cookie\r\n\r\n"
            assert await at.ask(FINE[:-2] + secret) == 200
            assert await at.ask(FINE.replace(b"/healthz", b"/mcp?token=canary")[:-2] + secret) == 401
            assert await at.ask(b"BROKEN canary\r\n" + secret) == 400
    assert "canary" not in caplog.text


async def test_a_port_that_is_taken_is_an_error_of_the_operating_system() -> None:
    with bind("127.0.0.1", 0) as first:
        first.listen()
        with pytest.raises(OSError, match="in use"):
            bind("127.0.0.1", first.getsockname()[1])
