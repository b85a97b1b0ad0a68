"""A server of the revision 2024-11-05 on loopback: HTTP+SSE, and nothing else."""

import asyncio
import json
from collections.abc import Mapping

from loopback import Received, Site, plain
from mcp_site import STREAM, WELCOME, Message, chunk, event, reply

ENDPOINT = b"event: endpoint\ndata: /messages?session=7\n\n"


class OldSite(Site):
    """Speaks HTTP+SSE: a stream at /sse, and messages to whatever it names there."""

    def __init__(self, first: bytes = ENDPOINT, refusals: Mapping[str, int] | None = None) -> None:
        super().__init__(self._answer)
        self._first = first
        self._refusals = dict(refusals or {})
        self.stream: asyncio.StreamWriter | None = None

    @property
    def sse(self) -> str:
        return self.url("/sse", host="127.0.0.1")

    async def _answer(self, received: Received, writer: asyncio.StreamWriter) -> None:
        if received.method == "GET":
            self.stream = writer
            writer.write(STREAM + chunk(self._first))
            await writer.drain()
            await asyncio.Event().wait()
        if received.target == "/sse":
            writer.write(plain(b"", 405))
            return
        message: Message = json.loads(received.body)
        status = self._refusals.get(str(message.get("method")), 202)
        writer.write(plain(b"Accepted", status))
        await writer.drain()
        if status == 202 and "id" in message and self.stream is not None:
            result = {**WELCOME, "protocolVersion": "2024-11-05"} if message["method"] == "initialize" else {}
            self.stream.write(event(reply(message, result)))
            await self.stream.drain()

    def messages(self) -> list[tuple[str, object]]:
        posts = [received for received in self.received if received.method == "POST"]
        return [(received.target, json.loads(received.body)["method"]) for received in posts]
