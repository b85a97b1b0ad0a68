"""Streams over HTTP that end too early, are found again, or stand for what a server says unasked."""

import asyncio

import pytest

from clock import jumping, now
from loopback import plain
from mcp_site import (
    END,
    STREAM,
    McpSite,
    Message,
    Script,
    answer,
    as_json,
    chunk,
    cut,
    event,
    in_turn,
    reply,
    sends,
    silence,
    streams,
    visiting,
)
from plait.errors import SessionLost, UpstreamBroken, UpstreamUnavailable
from plait.upstream.client import Listener
from plait.wire.envelope import Fields

CHANGED: Message = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


AGES = 1e6
"""Seconds on a clock that jumps."""


class Ear(Listener):
    """Remembers what is said unasked."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.end = ""
        self.told = asyncio.Event()

    def heard(self, method: str, params: Fields) -> None:
        self.notes.append(method)
        self.told.set()

    def ended(self, reason: str) -> None:
        self.end = reason
        self.told.set()


class Timed:
    """Notes when a script was asked, and with which Last-Event-ID."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.times: list[float] = []
        self.ids: list[object] = []

    async def __call__(self, message: Message, writer: asyncio.StreamWriter) -> None:
        self.times.append(now())
        self.ids.append(message.get("last-event-id"))
        await self._script(message, writer)

    def waits(self) -> list[float]:
        return [later - earlier for earlier, later in zip(self.times, self.times[1:], strict=False)]


# ---- the stream of a request


def stored(*parts: bytes) -> Script:
    """What a server says on a stream that is found again: the reply to the first call."""
    late = event({"jsonrpc": "2.0", "id": 2, "result": {"late": True}}, "id: 9")

    return streams(*parts, late, END)


@jumping
async def test_a_stream_that_breaks_off_is_found_again_behind_the_last_event() -> None:
    async def half(message: Message, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + event(None, "id: 7") + event(CHANGED, "id: 8"))
        await writer.drain()
        writer.transport.abort()

    again = Timed(in_turn(sends(plain(b"", 405)), stored()))
    ear = Ear()
    async with (
        McpSite({"tools/call": half, "GET": again}) as site,
        visiting(site, patience=AGES, listener=ear) as session,
    ):
        await site.until_asked("GET")
        assert await session.call_tool("x") == {"late": True}
        assert again.ids == [None, "8"]
        assert len(site.sent("tools/call")) == 1
        assert ear.notes == ["notifications/tools/list_changed"]


@jumping
async def test_a_server_that_hangs_up_to_be_asked_again_is_asked_when_it_says() -> None:
    """2025-11-25: it may close a stream after its first event, and say when to come back."""
    again = Timed(in_turn(sends(plain(b"", 405)), streams(event(None, "id: b"), END), stored()))
    call = streams(event(None, "id: a", "retry: 7000"), END)
    async with (
        McpSite({"tools/call": call, "GET": again}) as site,
        visiting(site, patience=AGES, timeout=60) as session,
    ):
        await site.until_asked("GET")
        begun = now()
        assert await session.call_tool("x") == {"late": True}
        assert again.ids == [None, "a", "b"]
        assert again.times[1] - begun > 6.9
        assert again.waits()[1] > 6.9


@jumping
async def test_a_server_that_always_hangs_up_at_once_is_not_stormed() -> None:
    again = Timed(in_turn(sends(plain(b"", 405)), streams(END)))
    call = streams(event(None, "id: a", "retry: 0"), END)
    async with (
        McpSite({"tools/call": call, "GET": again}) as site,
        visiting(site, patience=AGES, timeout=120) as session,
    ):
        await site.until_asked("GET")
        with pytest.raises(Exception, match="did not answer"):
            async with asyncio.timeout(200):
                await session.call_tool("x")
        assert len(again.times) < 15


@pytest.mark.parametrize("ending", [END, b""], ids=["ended", "cut"])
async def test_a_stream_without_ids_that_is_over_fails_its_call_at_once(ending: bytes) -> None:
    async def half(message: Message, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + event(CHANGED) + ending)
        await writer.drain()
        writer.close()

    async with McpSite({"tools/call": half}) as site, visiting(site) as session:
        with pytest.raises(UpstreamBroken, match=r"server 'far', tools/call: .*without the reply"):
            await session.call_tool("x")
        assert len(site.sent("tools/call")) == 1
        assert await session.list_tools() == []


@jumping
@pytest.mark.parametrize("status", [400, 405, 500])
async def test_a_stream_that_cannot_be_found_again_fails_its_call(status: int) -> None:
    call = streams(event(None, "id: a"), END)
    refusing = {"tools/call": call, "GET": sends(plain(b"", status))}
    async with McpSite(refusing) as site, visiting(site, patience=AGES) as session:
        with pytest.raises(UpstreamBroken, match=f"HTTP {status}"):
            await session.call_tool("x")


@jumping
async def test_a_server_that_is_away_for_a_moment_is_asked_again() -> None:
    get = in_turn(sends(plain(b"", 405)), sends(plain(b"", 503)), sends(plain(b"", 502)), stored())
    call = streams(event(None, "id: a"), END)
    async with (
        McpSite({"tools/call": call, "GET": get}) as site,
        visiting(site, patience=AGES, timeout=60) as session,
    ):
        await site.until_asked("GET")
        assert await session.call_tool("x") == {"late": True}


@jumping
async def test_a_server_that_stays_away_fails_the_call() -> None:
    get = in_turn(sends(plain(b"", 405)), sends(plain(b"", 503)))
    call = streams(event(None, "id: a"), END)
    async with (
        McpSite({"tools/call": call, "GET": get}) as site,
        visiting(site, patience=AGES, timeout=600) as session,
    ):
        await site.until_asked("GET")
        with pytest.raises(UpstreamUnavailable, match="HTTP 503"):
            await session.call_tool("x")


@jumping
async def test_a_session_that_is_lost_during_a_call_does_not_invite_to_send_it_again() -> None:
    ear = Ear()
    call = streams(event(None, "id: a"), END)
    get = in_turn(sends(plain(b"", 405)), sends(plain(b"", 404)))
    async with (
        McpSite({"tools/call": call, "GET": get}) as site,
        visiting(site, patience=AGES, listener=ear) as session,
    ):
        await site.until_asked("GET")
        with pytest.raises(UpstreamUnavailable) as caught:
            await session.call_tool("x")
        assert not isinstance(caught.value, SessionLost)
        assert ear.end == "the server forgot the session"


# ---- the standing stream


@pytest.mark.parametrize("status", [405, 404, 400, 200])
@jumping
async def test_a_standing_stream_that_is_not_offered_is_asked_for_once(status: int) -> None:
    async with (
        McpSite({"GET": sends(plain(b"", status))}) as site,
        visiting(site, patience=AGES, timeout=1e4) as session,
    ):
        await site.until_asked("GET")
        await asyncio.sleep(600)
        assert len(site.asked("GET")) == 1
        assert await session.call_tool("x") == {"content": []}


async def test_what_a_server_says_of_its_own_accord_is_heard() -> None:
    ear = Ear()

    async def stand(message: Message, writer: asyncio.StreamWriter) -> None:
        assert message["accept"] == "text/event-stream"
        assert message["mcp-session-id"] == "s-1"
        assert message["mcp-protocol-version"] == "2025-11-25"
        writer.write(STREAM + event(CHANGED))
        await writer.drain()
        await silence(message, writer)

    async with McpSite({"GET": stand}) as site, visiting(site, listener=ear):
        await ear.told.wait()
        assert ear.notes == ["notifications/tools/list_changed"]
        methods = [str(received.method) for received in site.received]
        assert methods == ["POST", "POST", "GET"], "after `initialized`, and not before"


@jumping
async def test_a_standing_stream_is_opened_again_behind_the_last_event() -> None:
    get = Timed(
        in_turn(
            streams(event(CHANGED, "id: 1", "retry: 3000"), END), streams(event(CHANGED, "id: 2")), silence
        )
    )
    ear = Ear()
    async with McpSite({"GET": get}) as site, visiting(site, patience=AGES, listener=ear):
        await site.until_asked("GET", 2)
        assert get.ids == [None, "1"]
        assert get.waits()[0] > 2.9
        assert ear.notes[0] == "notifications/tools/list_changed"


@pytest.mark.parametrize("script", [streams(END), cut, sends(plain(b"", 503))], ids=["end", "cut", "503"])
@jumping
async def test_a_standing_stream_that_never_lasts_is_tried_ever_more_rarely(script: Script) -> None:
    get = Timed(in_turn(streams(event(CHANGED), END), script))
    async with McpSite({"GET": get}) as site, visiting(site, patience=AGES, timeout=1e6) as session:
        await site.until_asked("GET")
        await asyncio.sleep(600)
        assert 5 < len(get.times) < 90  # aiohttp asks twice where a connection is cut
        assert max(get.waits()) <= 31
        assert await session.call_tool("x") == {"content": []}


@jumping
async def test_a_standing_stream_whose_place_is_forgotten_is_opened_without_it() -> None:
    get = Timed(in_turn(streams(event(CHANGED, "id: 1"), END), sends(plain(b"", 400)), silence))
    async with McpSite({"GET": get}) as site, visiting(site, patience=AGES, timeout=1e6):
        await site.until_asked("GET", 3)
        assert get.ids == [None, "1", None]


@jumping
async def test_a_standing_stream_that_is_gone_with_its_session_ends_the_conversation() -> None:
    ear = Ear()
    get = in_turn(streams(event(CHANGED), END), sends(plain(b"", 404)))
    async with McpSite({"GET": get}) as site, visiting(site, patience=AGES, listener=ear):
        await site.until_asked("GET", 2)
        await asyncio.sleep(1)
        assert ear.end == "the server forgot the session"
    assert site.asked("DELETE") == []


# ---- odd streams


async def test_an_event_past_the_limit_fails_its_call_and_the_conversation_goes_on() -> None:
    def big(message: Message) -> bytes:
        return event(reply(message, {"text": "x" * 5000}))

    async with McpSite({"tools/call": streams(big)}) as site, visiting(site, limit=1000) as session:
        with pytest.raises(UpstreamBroken, match="longer than 1000 bytes"):
            await session.call_tool("x")
        assert await session.list_tools() == []


async def test_an_event_without_end_is_left_and_costs_no_memory() -> None:
    async def pour(message: Message, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + chunk(b"data: "))
        while True:
            writer.write(chunk(b"x" * 65536))
            await writer.drain()

    async with McpSite({"tools/call": pour}) as site, visiting(site, limit=10_000) as session:
        with pytest.raises(UpstreamBroken, match="an event without end"):
            await session.call_tool("x")
        assert await session.list_tools() == []


async def test_events_that_are_broken_or_none_of_ours_are_passed_over() -> None:
    broken = chunk(b"data: {not json\n\n" + b"event: other\ndata: {}\n\n" + b": comment\n\n")
    async with McpSite({"tools/call": streams(broken, answer, END)}) as site, visiting(site) as session:
        assert await session.call_tool("x") == {"content": []}


async def test_endless_comments_do_not_outlive_the_deadline() -> None:
    async def chatter(message: Message, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM)
        while True:
            writer.write(chunk(b":\n\n"))
            await writer.drain()
            await asyncio.sleep(0.001)

    async with McpSite({"tools/call": chatter}) as site, visiting(site, timeout=0.1) as session:
        with pytest.raises(Exception, match="did not answer"):
            await session.call_tool("x")


async def test_a_flood_of_notifications_is_heard_before_the_reply() -> None:
    ear = Ear()
    async with (
        McpSite({"tools/call": streams(event(CHANGED) * 5000, answer, END)}) as site,
        visiting(site, listener=ear) as session,
    ):
        assert await session.call_tool("x") == {"content": []}
        assert len(ear.notes) == 5000


async def test_an_answer_in_json_to_a_get_is_no_stream() -> None:
    async with McpSite({"GET": sends(as_json({}))}) as site, visiting(site) as session:
        await site.until_asked("GET")
        assert await session.call_tool("x") == {"content": []}
