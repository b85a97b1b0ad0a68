"""Any JSON text passes unchanged, as arguments and as a result: in this process, and through a real one."""

import asyncio
from collections.abc import Awaitable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import Raw

import json_texts
from gateway import PATIENCE, Gateway
from plait.compositor import Compositor
from plait.routing.naming import MountPrefix
from plait.session.exchange import Exchange, Reply
from plait.upstream.client import Listener
from plait.upstream.opening import Behalf
from plait.wire.envelope import Fields
from raw_peer import RawPeer, raw_at

pytestmark = pytest.mark.e2e

TOOLS = Raw(b'{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}')
HELLO = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}'


class Echo:
    """A server in this process that gives back its arguments' bytes; it stands for any transport."""

    instructions = ""
    warning: str | None = None

    async def open(self, listener: Listener, behalf: Awaitable[Behalf]) -> "Echo":
        return self

    async def request(self, method: str, params: Fields | None, exchange: Exchange | None = None) -> Reply:
        if method == "tools/list" or params is None:
            return Reply(result=TOOLS)
        return Reply(result=Raw(b'{"content":[],"structuredContent":%b}' % bytes(params["arguments"])))

    def notify(self, method: str, params: Fields | None = None) -> None: ...

    def supports(self, capability: str, detail: str | None = None) -> bool:
        return capability == "tools"

    def working_for(self) -> list[Exchange]:
        return []

    async def aclose(self) -> None: ...


class Answers:
    """A client's ear: the messages, as they come."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()

    def write(self, message: bytes, within: bytes | None = None) -> None:
        self._queue.put_nowait(message)

    def backlog(self) -> int:
        return 0

    async def next(self) -> bytes:
        async with asyncio.timeout(PATIENCE):
            return await self._queue.get()


def call(id: int, arguments: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"raw__echo","arguments":%b}}' % (
        id,
        arguments,
    )


@given(texts=st.lists(json_texts.objects, min_size=1, max_size=3))
@settings(deadline=None, max_examples=100)
async def test_any_object_passes_a_compositor_both_ways_byte_for_byte(texts: list[bytes]) -> None:
    async with Compositor() as compositor:
        await compositor.mount(MountPrefix("raw"), Echo(), name="raw")
        answers = Answers()
        connection = compositor.connect(answers)
        connection.receive(HELLO)
        await answers.next()
        for id, text in enumerate(texts):
            connection.receive(call(id, text))
        lines = [await answers.next() for _ in texts]
    arrived = {int(raw_at(line, "id")): line for line in lines}
    for id, text in enumerate(texts):
        assert raw_at(arrived[id], "result", "structuredContent") == text


@given(texts=st.lists(st.tuples(json_texts.objects, json_texts.values), min_size=10, max_size=10))
# Each example starts processes: one that fails is shown as it is, the test above finds the smallest.
@settings(deadline=None, max_examples=3, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
async def test_any_json_passes_real_processes_both_ways(
    tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[bytes, bytes]]
) -> None:
    """On a pipe a carriage return between tokens may become a space; nothing else may change."""
    peer = RawPeer(tmp_path_factory.mktemp("any"))
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands()
        for id, (arguments, structured) in enumerate(texts):
            peer.says("tools/call", "result", b'{"content":[],"structuredContent":%b}' % structured)
            await gateway.send_bytes(call(id, arguments) + b"\n")
            line = await gateway.read_line() if id else await first_answer(gateway)
            assert raw_at(line, "result", "structuredContent") == structured.replace(b"\r", b" ")
    sent = [raw_at(line, "params", "arguments") for line in peer.heard("tools/call")]
    assert sent == [arguments.replace(b"\r", b" ") for arguments, _ in texts]


async def first_answer(gateway: Gateway) -> bytes:
    while b'"id":0,' not in (line := await gateway.read_line()):
        assert line, "the gateway closed its output"
    return line
