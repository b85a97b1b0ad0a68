"""A raw MCP server over HTTP with one tool, `echo`: asyncio and httptools, no SDK; the floor for gateways.

It speaks the handshake era, keeps one session for everybody, answers with plain JSON, and listens on the
loopback port it is given until its input ends.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import cast

import httptools
import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent))  # it is run as a script
from bench.echo_server import answer

ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: bench\r\n"
    b"Content-Length: %d\r\n\r\n%b"
)
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
REFUSED = b"HTTP/1.1 405 Method Not Allowed\r\nAllow: POST, DELETE\r\nContent-Length: 0\r\n\r\n"
GONE = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Wire(asyncio.Protocol):
    """One connection: whatever it asks is answered at once, in the order of asking."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own class is not a subclass
        self._parser = httptools.HttpRequestParser(self)
        self._body = b""

    def data_received(self, data: bytes) -> None:
        """Let httptools find the requests in it."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.abort()

    def on_body(self, body: bytes) -> None:
        """A part of a body."""
        self._body += body

    def on_message_complete(self) -> None:
        """One request is whole."""
        body, self._body = self._body, b""
        self._transport.write(reply(self._parser.get_method(), body))


def reply(method: bytes, body: bytes) -> bytes:
    """The whole HTTP answer."""
    if method == b"POST":
        text = answer(body)
        return ANSWER % (len(text), text) if text else ACCEPTED
    return GONE if method == b"DELETE" else REFUSED


async def serve(port: int) -> None:
    """Answer until our input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Wire, "127.0.0.1", port)
    async with server:
        await loop.run_in_executor(None, os.read, 0, 1)


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
