"""What a program answers when it is asked, and does when it is told."""

import asyncio
from collections.abc import Callable

import pytest
from msgspec.json import decode

from clock import jumping, quiet
from fakes import Message
from plait.errors import ConfigError
from plait.handlers import Handlers, Params
from plait.notices import Notices, NotificationsBuffer
from plait.session.exchange import Reply, refuse
from plait.wire.address import as_raw
from plait.wire.envelope import Fields

SAMPLE = "sampling/createMessage"


def fields(**values: object) -> Fields:
    return {key: as_raw(value) for key, value in values.items()}


def answered(replies: list[Reply]) -> list[object]:
    return [decode(reply.result or reply.error or b"") for reply in replies]


async def consult(handlers: Handlers, method: str, **params: object) -> list[object]:
    """The answers to one question, once everything is quiet."""
    replies: list[Reply] = []
    handlers.consulted(b"1", method, fields(**params), replies.append, None)
    await quiet()
    return answered(replies)


async def test_what_there_is_a_handler_for_is_declared_and_nothing_else() -> None:
    assert Handlers().capabilities() == {}
    handlers = Handlers(sampling=dict, roots=[])
    declared = {key: decode(value) for key, value in handlers.capabilities().items()}
    assert declared == {"roots": {"listChanged": True}, "sampling": {}}


async def test_details_can_be_declared_of_what_there_is_a_handler_for() -> None:
    details: Message = {"sampling": {"tools": {}}, "experimental": {"x": {}}}
    declared = Handlers(sampling=dict).capabilities(details)
    assert {key: decode(value) for key, value in declared.items()} == details
    with pytest.raises(ConfigError, match="elicitation is declared without a handler"):
        Handlers(sampling=dict).capabilities({"elicitation": {}})


@jumping
async def test_a_handler_may_be_sync_or_async() -> None:
    async def later(params: Params) -> Params:
        await asyncio.sleep(1e-7)
        return {"later": params}

    handlers = Handlers(sampling=lambda params: {"now": params}, elicitation=later)
    assert await consult(handlers, SAMPLE, x=1) == [{"now": {"x": 1}}]
    assert await consult(handlers, "elicitation/create", x=2) == [{"later": {"x": 2}}]


async def given() -> list[str]:
    return ["file:///b"]


@pytest.mark.parametrize(
    ("roots", "listed"),
    [
        ([], []),
        (
            ["file:///a", {"uri": "file:///b", "name": "b"}],
            [{"uri": "file:///a"}, {"uri": "file:///b", "name": "b"}],
        ),
        (lambda: ["file:///a"], [{"uri": "file:///a"}]),
        (given, [{"uri": "file:///b"}]),
    ],
)
@jumping
async def test_roots_are_a_list_or_a_function_that_gives_one(
    roots: list[str | Message] | Callable[[], list[str]], listed: list[object]
) -> None:
    assert await consult(Handlers(roots=roots), "roots/list") == [{"roots": listed}]


@jumping
async def test_a_handler_may_say_no() -> None:
    handlers = Handlers(sampling=lambda params: refuse(-1, "User rejected sampling request"))
    assert await consult(handlers, SAMPLE) == [{"code": -1, "message": "User rejected sampling request"}]


def failing(params: Params) -> Params:
    raise ZeroDivisionError("the password is hunter2")


async def failing_later(params: Params) -> Params:
    return failing(params)


@pytest.mark.parametrize(
    "handler", [failing, failing_later, lambda params: 7, lambda params: {"x": object()}]
)
@jumping
async def test_a_handler_that_fails_answers_with_an_error_that_tells_no_secrets(
    handler: Callable[[Params], Params],
) -> None:
    [error] = await consult(Handlers(sampling=handler), SAMPLE)
    assert isinstance(error, dict)
    assert error["code"] == -32603
    assert error["message"].startswith("sampling/createMessage: the client's handler failed (")
    assert "hunter2" not in error["message"]


@jumping
async def test_what_there_is_no_handler_for_is_refused() -> None:
    [error] = await consult(Handlers(), SAMPLE)
    assert error == {"code": -32601, "message": "nobody here answers sampling/createMessage"}


@jumping
async def test_a_question_that_is_taken_back_or_left_behind_ends_its_handler() -> None:
    ended: list[object] = []

    async def never(params: Params) -> Params:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(params["number"])
        return {}

    handlers = Handlers(sampling=never)
    replies: list[Reply] = []
    for number in (1, 2):
        handlers.consulted(b"%d" % number, SAMPLE, fields(number=number), replies.append, None)
    await quiet()
    handlers.retracted(b"1")
    handlers.retracted(b"1")
    await quiet()
    assert ended == [1]
    await handlers.aclose()
    assert (ended, replies) == ([1, 2], [])


@jumping
async def test_log_messages_and_notifications_go_where_they_are_wanted() -> None:
    logged: list[object] = []
    heard: list[object] = []

    async def listener(method: str, params: Params) -> None:
        heard.append((method, params))

    handlers = Handlers(logging=logged.append, listener=listener)
    handlers.heard("notifications/message", fields(level="info", data="x"))
    handlers.heard("notifications/x", {})
    await quiet()
    assert logged == [{"level": "info", "data": "x"}]
    assert heard == [("notifications/message", logged[0]), ("notifications/x", {})]


@jumping
async def test_a_listener_that_fails_is_logged_and_the_conversation_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def now(method: str, params: Params) -> None:
        raise ZeroDivisionError

    async def later(params: Params) -> None:
        raise KeyError

    Handlers(listener=now, logging=later).heard("notifications/message", {})
    await quiet()
    assert caplog.text.count("a handler failed") == 2


@jumping
async def test_progress_is_told_in_numbers_and_words() -> None:
    told: list[object] = []
    report = Handlers().reporting(lambda *what: told.append(what))
    report(fields(progressToken=1, progress=1, total=2, message="half"))
    report(fields(progressToken=1, progress=1.5, total="two", message=None))
    assert told == [(1, 2, "half"), (1.5, None, None)]


async def test_changes_are_noted_where_nobody_else_notes_them() -> None:
    handlers = Handlers()
    handlers.heard("notifications/tools/list_changed", {})
    handlers.buffer = buffer = NotificationsBuffer()
    handlers.heard("notifications/resources/updated", fields(uri="x:1"))
    assert buffer.poll() == {"": Notices(frozenset({"x:1"}))}
    handlers.heard("notifications/prompts/list_changed", {})
    handlers.heard("notifications/message", {})
    assert buffer.poll() == {"": Notices(list_changed=True)}
