"""Feed lines to an McpServerShell through streams in memory, and read what it answers."""

import asyncio
import json
from collections.abc import Sequence

from plait.pipeline.compose import Layer
from plait.pipeline.middleware import Middleware
from plait.providers.calling import Provider
from plait.shell import McpServerShell

HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}},
}


class Output:
    """A writer that keeps what it is given."""

    def __init__(self) -> None:
        self.data = b""
        self._more = asyncio.Event()

    def write(self, data: bytes) -> None:
        self.data += data
        self._more.set()

    async def drain(self) -> None: ...

    async def grown(self, wanted: bytes) -> None:
        """Wait until this was written."""
        while wanted not in self.data:
            self._more.clear()
            await self._more.wait()


async def converse(
    provider: Provider, *messages: object, middleware: Sequence[Layer | Middleware] = ()
) -> dict[object, dict[str, object]]:
    """Every answer by its id, to `initialize` and these messages."""
    reader, output = asyncio.StreamReader(), Output()
    for message in (HELLO, *messages):
        reader.feed_data(json.dumps(message).encode() + b"\n")
    reader.feed_eof()
    async with asyncio.timeout(20):
        await McpServerShell(provider, middleware).run(reader, output)
    return {answer["id"]: answer for answer in map(json.loads, output.data.splitlines()) if "id" in answer}


def listing(id: object = 1) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/list"}


def call(name: str, arguments: object = None, id: object = 2) -> dict[str, object]:
    return {
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments or {}},
    }


def text(answer: dict[str, object]) -> str:
    result = answer["result"]
    assert isinstance(result, dict)
    return "".join(block.get("text", "") for block in result["content"])


def is_error(answer: dict[str, object]) -> bool:
    result = answer["result"]
    assert isinstance(result, dict)
    return result.get("isError") is True


def names(answer: dict[str, object]) -> list[str]:
    result = answer["result"]
    assert isinstance(result, dict)
    return [tool["name"] for tool in result["tools"]]
