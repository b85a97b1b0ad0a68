"""In which era a server is greeted, whatever it says to the first question."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest
from msgspec.json import decode

from clock import jumping, now
from fakes import Message
from plait.errors import UpstreamBroken, UpstreamRefused, UpstreamTimeout
from plait.session.eras.verdict import EraMemory
from plait.upstream.base import Immediate, Link, Receiver
from plait.upstream.client import McpClient
from plait.upstream.greeting import PROBE, EndedByProbe, greet
from plait.upstream.handshake import McpSession
from plait.upstream.modern import ModernSession
from plait.wire.envelope import encode
from plait.wire.spec import Era

OLD, NEW = "2025-11-25", "2026-07-28"
HELLO: Message = {"result": {"protocolVersion": OLD, "capabilities": {}}}
FOUND: Message = {"result": {"supportedVersions": [NEW], "capabilities": {}, "resultType": "complete"}}
UNKNOWN: Message = {"error": {"code": -32601, "message": "no"}}
LOCKED: Message = {"error": {"code": -32022, "message": "no", "data": {"supported": [NEW]}}}
SILENCE: Message = {}
END: Message = {"end": True}


class Scripted(Immediate):
    """Answers each method from a list; the last answer stays."""

    def __init__(self, **answers: list[Message]) -> None:
        self._answers = answers
        self.sent: list[str] = []

    async def open(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def write(self, message: bytes) -> None:
        decoded = decode(message)
        self.sent.append(decoded["method"])
        if "id" not in decoded:
            return
        script = self._answers.get(decoded["method"].replace("server/", ""), [UNKNOWN])
        answer = script.pop(0) if len(script) > 1 else script[0]
        if answer is END:
            self.abort("it exited with code 1")
        elif answer is not SILENCE:
            line = encode({"jsonrpc": "2.0", "id": decoded["id"], **answer})
            assert self._receiver is not None
            asyncio.get_running_loop().call_soon(self._receiver.received, line)

    async def aclose(self) -> None:
        self.abort("closed")


@contextlib.asynccontextmanager
async def greeted(
    server: Scripted, revision: str, era: str = "auto", memory: EraMemory | None = None
) -> AsyncIterator[Link]:
    client = McpClient(server, name="s")
    await server.open(client)
    link = await greet(client, {}, revision, era=era, memory=memory)
    try:
        yield link
    finally:
        await link.aclose()


def both() -> Scripted:
    return Scripted(initialize=[HELLO], discover=[FOUND])


@jumping
async def test_a_server_that_speaks_both_is_greeted_as_the_client_speaks() -> None:
    async with greeted(both(), OLD) as link:
        assert isinstance(link, McpSession)
    async with greeted(both(), NEW) as link:
        assert isinstance(link, ModernSession)


@jumping
async def test_a_handshake_client_costs_a_handshake_server_no_probe() -> None:
    server = both()
    async with greeted(server, OLD):
        assert server.sent == ["initialize", "notifications/initialized"]


@jumping
async def test_each_era_reaches_servers_of_the_other() -> None:
    memory = EraMemory()
    async with greeted(Scripted(initialize=[HELLO]), NEW, memory=memory) as link:
        assert isinstance(link, McpSession)
        assert link.protocol_version == OLD
    assert memory.recall(now()) is Era.HANDSHAKE
    async with greeted(Scripted(discover=[FOUND]), OLD, memory=memory) as link:
        assert isinstance(link, ModernSession)
    assert memory.recall(now()) is Era.MODERN


@jumping
async def test_a_remembered_handshake_server_is_not_asked_again() -> None:
    memory = EraMemory()
    for expected in (["server/discover", "initialize"], ["initialize"]):
        server = Scripted(initialize=[HELLO])
        async with greeted(server, NEW, memory=memory):
            assert server.sent == [*expected, "notifications/initialized"]


@jumping
async def test_silence_means_to_try_the_handshake_and_to_remember_nothing() -> None:
    memory, server = EraMemory(), Scripted(initialize=[HELLO], discover=[SILENCE])
    async with greeted(server, NEW, memory=memory) as link:
        assert isinstance(link, McpSession)
        assert now() == PROBE
    assert memory.recall(now()) is None
    assert server.sent == ["server/discover", "initialize", "notifications/initialized"]


@jumping
async def test_silence_of_a_server_known_to_be_modern_is_a_failure() -> None:
    memory = EraMemory()
    memory.learn(Era.MODERN, 0)
    with pytest.raises(UpstreamTimeout):
        async with greeted(Scripted(initialize=[HELLO], discover=[SILENCE]), NEW, memory=memory):
            pass


@jumping
async def test_a_slow_server_that_bound_itself_to_the_modern_era_is_asked_once_more() -> None:
    server = Scripted(initialize=[LOCKED], discover=[SILENCE, FOUND])
    async with greeted(server, NEW) as link:
        assert isinstance(link, ModernSession)


@jumping
async def test_a_server_that_ends_at_the_probe_is_known_for_the_next_time() -> None:
    memory = EraMemory()
    with pytest.raises(EndedByProbe):
        async with greeted(Scripted(discover=[END]), NEW, memory=memory):
            pass
    async with greeted(Scripted(initialize=[HELLO], discover=[END]), NEW, memory=memory) as link:
        assert isinstance(link, McpSession)


@pytest.mark.parametrize("revision", [OLD, NEW])
@jumping
async def test_a_modern_server_of_another_revision_is_told_apart(revision: str) -> None:
    unknown: Message = {"error": {"code": -32022, "message": "no", "data": {"supported": ["2031-01-01"]}}}
    with pytest.raises(UpstreamRefused, match="2031-01-01"):
        async with greeted(Scripted(discover=[unknown]), revision):
            pass


@jumping
async def test_a_server_that_refuses_our_revision_and_names_it_is_asked_once_more() -> None:
    server = Scripted(initialize=[HELLO], discover=[LOCKED, FOUND])
    async with greeted(server, NEW) as link:
        assert isinstance(link, ModernSession)
        assert server.sent == ["server/discover", "server/discover"]
    server = Scripted(initialize=[HELLO], discover=[LOCKED])
    with pytest.raises(UpstreamRefused, match="no"):
        async with greeted(server, NEW):
            pass
    assert server.sent == ["server/discover", "server/discover"]


@jumping
async def test_a_modern_server_that_refuses_the_probe_is_not_fallen_back_from() -> None:
    refused: Message = {"error": {"code": -32021, "message": "sign here"}}
    server = Scripted(initialize=[HELLO], discover=[refused])
    with pytest.raises(UpstreamRefused, match="sign here"):
        async with greeted(server, NEW):
            pass
    assert "initialize" not in server.sent


@jumping
async def test_a_refused_handshake_is_what_counts_if_nothing_better_comes() -> None:
    refused: Message = {"error": {"code": -32603, "message": "no licence"}}
    for discover in ([UNKNOWN], [SILENCE]):
        with pytest.raises(UpstreamRefused, match="no licence"):
            async with greeted(Scripted(initialize=[refused], discover=discover), OLD):
                pass


@pytest.mark.parametrize(
    ("era", "make"),
    [("handshake", McpSession), ("modern", ModernSession)],
)
@jumping
async def test_a_pinned_era_is_the_only_one_tried(era: str, make: Callable[..., Link]) -> None:
    for revision in (OLD, NEW):
        server = both()
        async with greeted(server, revision, era) as link:
            assert isinstance(link, make)  # type: ignore[arg-type]
        assert ("initialize" in server.sent) == (era == "handshake")
    with pytest.raises((UpstreamRefused, UpstreamBroken)):
        async with greeted(Scripted(), OLD, era):
            pass
