"""One client, from its first line to its end, without a transport."""

import asyncio
import json

import pytest
from msgspec import Raw

from plait.downstream.connection import MAX_BACKLOG, Connection
from plait.session.exchange import Exchange, Reply
from plait.wire.envelope import Fields


class Paper:
    """A writer that keeps what it is given."""

    def __init__(self) -> None:
        self.lines: list[dict[str, object]] = []
        self.unread = 0
        self._more = asyncio.Event()

    def write(self, message: bytes, within: bytes | None = None) -> None:
        self.lines.append(json.loads(message))
        self._more.set()

    def backlog(self) -> int:
        return self.unread

    async def grown(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.lines) < count:
                self._more.clear()
                await self._more.wait()


class Desk:
    """Where the compositor stands."""

    def __init__(self) -> None:
        self.paper = Paper()
        self.joined: list[Connection] = []
        self.told: list[str] = []
        self.started = asyncio.Event()
        self.cancelled: list[str] = []
        self.connection = Connection(
            self.handle, lambda revision: Raw(b"{}"), self.paper, joined=self.joined.append, told=self._hear
        )

    def _hear(self, connection: Connection, method: str, params: Fields) -> None:
        self.told.append(method)

    async def handle(self, exchange: Exchange) -> Reply:
        if exchange.method == "bug":
            raise RuntimeError("secret detail")
        if exchange.method == "slow":
            self.started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.append(exchange.id.decode())
                raise
        return Reply(result=Raw(b'{"method":"%b"}' % exchange.method.encode()))

    def say(self, message: object) -> None:
        self.connection.receive(json.dumps(message).encode())

    def shake_hands(self, **capabilities: object) -> None:
        params = {"protocolVersion": "2025-11-25", "capabilities": capabilities}
        self.say({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        self.paper.lines.clear()


async def test_a_client_joins_once_with_its_handshake_and_after_its_answer() -> None:
    desk = Desk()
    desk.say({"jsonrpc": "2.0", "id": 0, "method": "ping"})
    assert desk.joined == []
    desk.say({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
    desk.say({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {}})
    assert desk.joined == [desk.connection]
    await desk.connection.aclose()


@pytest.mark.requirement("S0-22")
async def test_requests_run_side_by_side_and_each_is_answered_once() -> None:
    desk = Desk()
    desk.shake_hands()
    desk.say({"jsonrpc": "2.0", "id": 1, "method": "slow"})
    desk.say({"jsonrpc": "2.0", "id": "two", "method": "x"})
    desk.say({"jsonrpc": "2.0", "method": "notifications/whatever"})
    await desk.paper.grown(1)
    assert desk.paper.lines == [{"jsonrpc": "2.0", "id": "two", "result": {"method": "x"}}]
    assert desk.told == ["notifications/whatever"]
    await desk.connection.aclose()


async def test_a_cancelled_request_stops_and_is_never_answered() -> None:
    desk = Desk()
    desk.shake_hands()
    desk.say({"jsonrpc": "2.0", "id": 1, "method": "slow"})
    async with asyncio.timeout(5):
        await desk.started.wait()
    desk.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    desk.say({"jsonrpc": "2.0", "id": 2, "method": "x"})
    await desk.paper.grown(1)
    assert desk.cancelled == ["1"]
    assert [line["id"] for line in desk.paper.lines] == [2]
    await desk.connection.aclose()


async def test_a_bug_of_ours_is_an_error_for_that_request_and_tells_no_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
    desk.shake_hands()
    desk.say({"jsonrpc": "2.0", "id": 1, "method": "bug"})
    await desk.paper.grown(1)
    error = desk.paper.lines[0]["error"]
    assert isinstance(error, dict)
    assert error["code"] == -32603
    assert "secret" not in json.dumps(desk.paper.lines)
    assert "secret detail" in caplog.text
    await desk.connection.aclose()


async def test_when_the_client_is_gone_everything_that_ran_for_it_stops() -> None:
    desk = Desk()
    desk.shake_hands(roots={})
    desk.say({"jsonrpc": "2.0", "id": 1, "method": "slow"})
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        await desk.started.wait()
        question = group.create_task(desk.connection.ask("roots/list", None))
        await desk.paper.grown(1)
        await desk.connection.aclose()
        reply = await question
    assert desk.cancelled == ["1"]
    assert reply.error is not None


async def test_at_the_end_of_input_what_was_read_is_still_answered() -> None:
    desk = Desk()
    desk.shake_hands()
    for id in range(10):
        desk.say({"jsonrpc": "2.0", "id": id, "method": "x"})
    await desk.connection.finish(5)
    assert sorted(str(line["id"]) for line in desk.paper.lines) == [str(id) for id in range(10)]


async def test_whoever_still_waits_when_we_give_up_is_told_why_and_nothing_else() -> None:
    desk = Desk()
    desk.shake_hands()
    desk.say({"jsonrpc": "2.0", "id": 1, "method": "slow"})
    async with asyncio.timeout(5):
        await desk.started.wait()
    desk.connection.give_up("plait was told to stop")
    await desk.connection.aclose()
    error = {"code": -32603, "message": "plait was told to stop"}
    assert desk.paper.lines == [{"jsonrpc": "2.0", "id": 1, "error": error}]
    assert desk.cancelled == ["1"]


async def test_a_client_that_does_not_read_misses_notifications_and_they_are_counted() -> None:
    desk = Desk()
    desk.shake_hands()
    desk.paper.unread = MAX_BACKLOG + 1
    desk.connection.notify("notifications/x", None)
    desk.say({"jsonrpc": "2.0", "id": 1, "method": "x"})
    await desk.paper.grown(1)
    assert [line["id"] for line in desk.paper.lines] == [1], "an answer is never dropped"
    assert desk.connection.dropped == 1


async def test_a_question_is_asked_answered_and_taken_back() -> None:
    desk = Desk()
    desk.shake_hands(roots={})
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        first = group.create_task(desk.connection.ask("roots/list", None))
        second = group.create_task(desk.connection.ask("roots/list", None))
        await desk.paper.grown(2)
        desk.say({"jsonrpc": "2.0", "id": 1, "result": {"roots": []}})
        assert await first == Reply(result=Raw(b'{"roots": []}'))
        second.cancel()
        await desk.paper.grown(3)
    assert desk.paper.lines[-1] == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 2},
    }


async def test_a_message_that_is_too_long_is_refused_under_its_id() -> None:
    desk = Desk()
    desk.shake_hands()
    desk.connection.oversized(b'{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"x":"')
    assert desk.paper.lines[0]["id"] == 77
