"""An answer while it comes in: its head at once, its body piece by piece and never more than was agreed."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping

from aiohttp import ClientResponse

from plait.outbound.decoding import PIECE, decoder
from plait.outbound.faults import TooLarge
from plait.outbound.parsing import ParsedUrl
from plait.outbound.requests import Limits
from plait.outbound.transport import FAULTS, translate


class Response:
    """The answer to one request; valid inside its `async with`."""

    def __init__(self, answer: ClientResponse, url: ParsedUrl, limits: Limits) -> None:
        self._answer = answer
        self._host = url.host.name
        self._limits = limits
        self.url = url.text
        """Where the answer comes from, after all redirects."""
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers
        """Looked up without regard to case; of several with one name, the first."""

    def check_head(self) -> None:
        if sum(len(name) + len(value) for name, value in self._answer.raw_headers) > self._limits.head_bytes:
            raise TooLarge(f"the headers of {self._host} are longer than {self._limits.head_bytes} bytes")

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The body, unpacked, as it comes. Raises TooLarge after the last byte that fits."""
        codings = self._answer.headers.getall("Content-Encoding", [])
        unpacking = decoder(", ".join(codings))
        room = self._limits.body_bytes
        async for data in self._wire():
            for piece in unpacking.feed(data):
                if room is not None and len(piece) > room:
                    yield piece[:room]
                    raise TooLarge(
                        f"the body from {self._host} is longer than {self._limits.body_bytes} bytes"
                    )
                room = None if room is None else room - len(piece)
                yield piece
                if len(piece) == PIECE:
                    await asyncio.sleep(0)  # a bomb keeps us busy without any I/O: let others run
        unpacking.finish()

    async def _wire(self) -> AsyncIterator[bytes]:
        """The body as it comes, still packed."""
        room = self._limits.wire_bytes
        while data := await self._receive():
            if room is not None and len(data) > room:
                yield data[:room]
                raise TooLarge(f"{self._host} sent more than {self._limits.wire_bytes} bytes")
            room = None if room is None else room - len(data)
            yield data

    async def _receive(self) -> bytes:
        try:
            return await self._answer.content.readany()
        except FAULTS as problem:
            raise translate(problem, self._host) from None

    async def read(self) -> bytes:
        """The whole body. Raises TooLarge if it does not fit."""
        return b"".join([piece async for piece in self.pieces()])

    def close(self) -> None:
        """Let the connection be used again if the body is at its end, and cut it if not."""
        if self._answer.content.at_eof():
            self._answer.release()
        else:
            self._answer.close()
