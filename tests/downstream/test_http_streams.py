"""The standing stream, and streams that break and go on."""

import asyncio
import json

import pytest

from asgi import HttpClient
from clock import jumping, quiet
from fakes import Message, words
from fronts import CALL, DONE, Front, front
from plait.downstream.connection import MAX_BACKLOG
from plait.downstream.http_limits import HttpLimits


def log(at: Front, data: object) -> None:
    """The server says something that belongs to no request."""
    at.server.notify("notifications/message", {"level": "info", "data": data})


def data_of(message: Message) -> object:
    params = message["params"]
    assert isinstance(params, dict)
    return params["data"]


@jumping
async def test_what_belongs_to_no_request_comes_on_the_standing_stream() -> None:
    async with front() as at:
        client = await at.client()
        await client.request("tools/list")
        standing = client.listen()
        first = await standing.event()
        assert (first["id"], first["data"].strip()) == ("0-0", "")
        log(at, "one")
        log(at, "two")
        assert [data_of(await standing.message()) for _ in range(2)] == ["one", "two"]
        await standing.close()


@jumping
async def test_what_came_before_the_standing_stream_was_opened_is_not_lost() -> None:
    async with front() as at:
        client = await at.client("2025-06-18")
        await client.request("tools/list")
        log(at, "early")
        await quiet()
        standing = client.listen()
        event = await standing.event()
        assert (event["id"], data_of(json.loads(event["data"]))) == ("0-1", "early")
        await standing.close()


@jumping
async def test_a_standing_stream_shows_that_it_lives() -> None:
    async with front() as at:
        standing = (await at.client()).listen()
        assert [(await standing.block()).split("\n")[0] for _ in range(3)] == ["id: 0-0", ": ping", ": ping"]
        await standing.close()


@jumping
async def test_a_session_has_one_standing_stream() -> None:
    async with front() as at:
        client = await at.client()
        first = await client.listen().head()
        second = client.listen()
        await second.body()
        assert second.status == 409
        await first.close()
        third = await client.listen().head()
        assert third.status == 200
        await third.close()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"accept": "application/json"}, 406),
        ({"mcp-session-id": "x"}, 404),
        ({"mcp-protocol-version": "0"}, 400),
    ],
)
@jumping
async def test_a_get_is_judged(headers: dict[str, str], status: int) -> None:
    async with front() as at:
        client = await at.client()
        visit, _ = await client.ask("GET", "/mcp", b"", {**client.session, **headers})
        assert visit.status == status


@jumping
async def test_without_a_session_there_is_no_stream_and_nothing_to_end() -> None:
    async with front() as at:
        for method in ("GET", "DELETE"):
            visit, _ = await HttpClient(at.app).ask(method, "/mcp")
            assert visit.status == 400


# ---- going on


@jumping
async def test_a_stream_that_broke_goes_on_after_the_last_event_that_was_seen() -> None:
    async with front() as at:
        held, client = at.hold(), await at.client()
        visit = client.begin("tools/call", {**CALL, "_meta": {"progressToken": 1}})
        await quiet()
        for value in (1, 2, 3):
            at.progress(value)
        await quiet()
        await visit.event()
        seen = (await visit.event())["id"]
        await visit.close()
        at.progress(4)
        again = client.listen(seen)
        values = []
        for _ in range(3):
            params = (await again.message())["params"]
            assert isinstance(params, dict)
            values.append(params["progress"])
        held[0].answer(DONE)
        assert (await again.message())["result"] == DONE
        assert await again.event() == {}
        assert values == [2, 3, 4]


@jumping
async def test_a_reply_that_came_while_nobody_listened_is_there_when_the_client_comes_back() -> None:
    async with front() as at:
        held, client = at.hold(), await at.client()
        visit = client.begin("tools/call", CALL)
        primed = (await visit.event())["id"]
        await visit.close()
        held[0].answer(DONE)
        await quiet()
        for _ in range(2):
            again = client.listen(primed)
            assert (await again.message())["result"] == DONE
            assert await again.event() == {}


@jumping
async def test_only_the_stream_that_broke_is_replayed() -> None:
    async with front() as at:
        held, client = at.hold(), await at.client()
        visits = [client.begin("tools/call", CALL) for _ in range(2)]
        primed = [(await visit.event())["id"] for visit in visits]
        for visit in visits:
            await visit.close()
        for place, each in enumerate(held):
            each.answer({"content": [{"type": "text", "text": str(place)}]})
        log(at, "for the standing stream")
        await quiet()
        for place, id in enumerate(primed):
            again = client.listen(id)
            assert words((await again.message())["result"]) == str(place)
            assert await again.event() == {}


@jumping
async def test_whoever_goes_on_with_a_stream_takes_it_over() -> None:
    async with front() as at:
        client = await at.client()
        await client.request("tools/list")
        first = client.listen()
        seen = (await first.event())["id"]
        second = client.listen(seen)
        await second.head()
        assert await first.event() == {}
        log(at, "news")
        assert data_of(await second.message()) == "news"
        await second.close()


@pytest.mark.parametrize("id", ["7-1", "x", "1", "-", "0-", "-0", "0-1-2", "9" * 50 + "-1", "٣-1"])
@jumping
async def test_an_event_that_nobody_knows_cannot_be_gone_on_from(id: str) -> None:
    async with front() as at:
        client = await at.client()
        visit = client.open(
            "GET", "/mcp", b"", [*client.session.items(), ("last-event-id", id.encode().decode("latin-1"))]
        )
        await visit.body()
        assert visit.status == 400


@jumping
async def test_an_event_of_the_future_changes_nothing() -> None:
    async with front() as at:
        client = await at.client()
        await client.request("tools/list")
        standing = client.listen("0-99")
        await standing.head()
        log(at, "news")
        assert data_of(await standing.message()) == "news"
        await standing.close()


@jumping
async def test_a_stream_of_another_session_cannot_be_gone_on_with() -> None:
    async with front() as at:
        held, one, other = at.hold(), await at.client(), await at.client()
        visit = one.begin("tools/call", CALL)
        primed = (await visit.event())["id"]
        attempt = other.listen(primed)
        await attempt.body()
        assert attempt.status == 400
        held[0].answer(DONE)
        assert (await visit.message())["result"] == DONE


# ---- what is kept, and what a slow reader costs


@jumping
async def test_what_is_kept_for_replay_is_bounded() -> None:
    async with front(HttpLimits(replay_each=10_000)) as at:
        client = await at.client()
        await client.request("tools/list")
        for number in range(1000):
            log(at, f"{number:04} {'x' * 100}")
        await quiet()
        standing = client.listen()
        await standing.event()
        first = data_of(await standing.message())
        assert isinstance(first, str)
        assert int(first[:4]) > 900
        session = next(iter(at.app._sessions._by_id.values()))
        assert sum(stream.held for stream in session._streams.values()) <= 10_000
        await standing.close()


@jumping
async def test_streams_that_are_over_are_forgotten_in_the_end() -> None:
    async with front() as at:
        held, client = at.hold(), await at.client()
        for number in range(200):
            visit = client.begin("tools/call", {**CALL, "_meta": {"progressToken": 1}})
            await quiet()
            at.progress(1, number)
            await visit.event()
            held[number].answer(DONE)
            await visit.body()
        session = next(iter(at.app._sessions._by_id.values()))
        assert len(session._streams) <= 66


@jumping
async def test_of_what_a_client_does_not_read_notifications_are_dropped_and_replies_never() -> None:
    async with front() as at:
        held, client = at.hold(), await at.client()
        visit = client.begin("tools/call", {**CALL, "_meta": {"progressToken": 1}})
        await quiet()
        at.progress(1)
        await visit.event()
        await visit.event()
        visit.reads.clear()
        for _ in range(100):
            log(at, "x" * 1000)
        big = "x" * (MAX_BACKLOG // 4)
        meta = at.server.asked("tools/call")[0]["_meta"]
        assert isinstance(meta, dict)
        for value in range(2, 22):
            told = {"progressToken": meta["progressToken"], "progress": value, "message": big}
            at.server.notify("notifications/progress", told)
        await quiet()
        held[0].answer(DONE)
        await quiet()
        session = next(iter(at.app._sessions._by_id.values()))
        assert session.connection.dropped > 10
        visit.reads.set()
        message = await visit.message()
        while "method" in message:
            message = await visit.message()
        assert message["result"] == DONE


@jumping
async def test_one_client_that_does_not_read_delays_no_other() -> None:
    async with front() as at:
        client, other = await at.client(), await at.client()
        await client.request("tools/list")
        standing = await client.listen().head()
        standing.reads.clear()
        log(at, "x" * 1000)
        await quiet()
        assert words((await other.request("tools/call", **CALL))["result"]) == "fs: t {}"
        await standing.close()


@jumping
async def test_several_clients_at_once_are_served_side_by_side() -> None:
    async with front() as at:
        clients = [await at.client() for _ in range(20)]
        held = at.hold()
        visits = [client.begin("tools/call", CALL, 1) for client in clients]
        await quiet()
        for place, each in reversed(list(enumerate(held))):
            each.answer({"content": [{"type": "text", "text": str(place)}]})
            await asyncio.sleep(0)
        answers = [words((await visit.json())["result"]) for visit in visits]
        assert answers == [str(place) for place in range(20)]
