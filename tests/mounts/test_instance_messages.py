"""What a server says unasked, and what we tell it."""

import asyncio

from clock import jumping, quiet
from fakes import FakeServer, Refusal
from life import life
from plait.mounts.state import MountState
from plait.session.exchange import Reply
from plait.wire.address import as_raw
from plait.wire.envelope import EMPTY

PENDING, ACTIVE, FAILED, CLOSED = MountState


# ---- levels


@jumping
async def test_a_level_is_sent_now_and_after_every_start_but_only_where_there_is_logging() -> None:
    loud, silent = FakeServer(capabilities={"logging": {}}), FakeServer(capabilities={})
    for server, expected in ((loud, [{"level": "error"}] * 2), (silent, [])):
        async with life(server) as made:
            await made.start()
            made.instance.set_level("error", made)
            await quiet()
            await made.end()
            made.instance.standing.become(FAILED, "x")
            made.instance.standing.become(PENDING, "x")
            await made.start()
            await quiet()
            assert server.asked("logging/setLevel") == expected


@jumping
async def test_a_level_set_while_the_server_is_away_is_sent_once_it_is_there() -> None:
    server = FakeServer(capabilities={"logging": {}})
    async with life(server) as made:
        await made.start()
        await made.end()
        made.instance.set_level("debug", made)
        made.instance.standing.become(FAILED, "x")
        made.instance.standing.become(PENDING, "x")
        await asyncio.sleep(1)
        await made.start()
        await quiet()
        assert server.asked("logging/setLevel") == [{"level": "debug"}]


@jumping
async def test_a_server_that_refuses_the_level_is_none_the_worse() -> None:
    server = FakeServer(capabilities={"logging": {}})
    server.answers["logging/setLevel"] = lambda params: Refusal()
    async with life(server) as made:
        made.instance.level = "info"
        await made.start()
        await quiet()
        assert made.instance.state is ACTIVE


# ---- notifications and questions


@jumping
async def test_other_notifications_are_passed_on_as_they_are() -> None:
    server = FakeServer()
    async with life(server) as made:
        await made.start()
        server.notify("notifications/message", {"level": "info", "data": [1]})
        server.notify("notifications/made/up")
        await quiet()
        assert made.around.heard_of == [
            ("notifications/message", {"level": "info", "data": [1]}),
            ("notifications/made/up", {}),
        ]


@jumping
async def test_what_we_tell_the_server_reaches_it_or_is_missed() -> None:
    server = FakeServer()
    async with life(server) as made:
        made.instance.notify("notifications/roots/list_changed")
        await made.start()
        made.instance.notify("notifications/roots/list_changed", {"x": as_raw(1)})
        assert server.told("notifications/roots/list_changed") == [{"x": 1}]


@jumping
async def test_a_question_is_put_to_whom_it_concerns_and_the_answer_goes_back() -> None:
    server = FakeServer()
    async with life(server) as made:
        await made.start()
        server.ask("q1", "roots/list", {"x": 1})
        await quiet()
        assert made.around.questions == [("roots/list", {"x": 1})]
        assert server.wire.replies == {}
        made.around.answer.set_result(Reply(result=as_raw({"roots": []})))
        await quiet()
        assert server.wire.replies["q1"]["result"] == {"roots": []}


@jumping
async def test_progress_on_a_question_goes_to_the_server_under_its_own_token() -> None:
    server = FakeServer()
    async with life(server) as made:
        await made.start()
        server.ask("q1", "sampling/createMessage", {"_meta": {"progressToken": "mine"}})
        await quiet()
        made.around.on_progress({"progressToken": as_raw(7), "progress": as_raw(0.5)})
        assert server.told("notifications/progress") == [{"progressToken": "mine", "progress": 0.5}]


@jumping
async def test_progress_that_the_server_did_not_ask_for_is_not_sent() -> None:
    server = FakeServer()
    async with life(server) as made:
        await made.start()
        server.ask("q1", "sampling/createMessage")
        await quiet()
        made.around.on_progress({"progressToken": as_raw(7), "progress": as_raw(0.5)})
        assert server.told("notifications/progress") == []


@jumping
async def test_a_question_that_the_server_takes_back_is_dropped_without_an_answer() -> None:
    server = FakeServer()
    async with life(server) as made:
        await made.start()
        server.ask("q1", "roots/list")
        await quiet()
        server.notify("notifications/cancelled", {"requestId": "other"})
        server.notify("notifications/cancelled", {"requestId": "q1"})
        await quiet()
        made.around.answer.set_result(Reply(result=EMPTY))
        await quiet()
        assert server.wire.replies == {}


@jumping
async def test_a_question_of_a_server_that_ends_ends_with_it() -> None:
    server = FakeServer()
    async with life(server) as made:
        await made.start()
        server.ask("q1", "roots/list")
        await quiet()
        await made.end()
        await quiet()
        assert len(made.instance._questions) == 0


@jumping
async def test_what_is_dropped_is_counted() -> None:
    server = FakeServer()
    async with life(server) as made:
        await made.start()
        for _ in range(3):
            server.wire.say({"jsonrpc": "2.0", "id": 99, "result": {}})
        await quiet()
        assert made.instance.counters == {"reply to nobody": 3}
