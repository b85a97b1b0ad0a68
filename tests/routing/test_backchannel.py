"""Servers asking clients: whom to ask, and may they be asked?"""

import asyncio
from collections.abc import Sequence

import pytest

from clock import jumping, now, quiet
from fakes import Message
from plait.routing import backchannel
from plait.routing.backchannel import PATIENCE, Question
from plait.session.exchange import Exchange, Reply, refuse
from plait.wire.address import as_raw
from plait.wire.spec import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from seams import FakeCaller, error_of, result_of

ALL: Message = {"sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}, "roots": {}}


async def ask(
    method: str,
    clients: Sequence[FakeCaller],
    params: Message | None = None,
    working_for: Sequence[Exchange] = (),
    prefix: str = "fs",
    declared: Message | None = None,
) -> Reply:
    fields = {key: as_raw(value) for key, value in (params or {}).items()}
    able = {key: as_raw(value) for key, value in (ALL if declared is None else declared).items()}
    question = Question(prefix, method, fields, able)
    return await backchannel.ask(question, working_for, clients, lambda progress: None)


def call(client: FakeCaller) -> Exchange:
    return client.exchange("tools/call", name="t")


async def test_a_server_that_was_told_of_no_client_can_ask_none() -> None:
    # As one that everybody shares: whose answer would it be?
    ann = FakeCaller("ann", ALL)
    reply = await ask("roots/list", [ann], None, [call(ann)], declared={})
    assert error_of(reply)["code"] == METHOD_NOT_FOUND
    assert ann.asked == []


# ---- whom to ask


async def test_the_client_whose_call_the_server_works_on_is_asked() -> None:
    ann, bob = FakeCaller("ann", ALL), FakeCaller("bob", ALL)
    bob.answer = Reply(result=as_raw({"roots": []}))
    assert result_of(await ask("roots/list", [ann, bob], None, [call(bob)])) == {"roots": []}
    assert (ann.asked, bob.asked) == ([], [("roots/list", {})])


async def test_several_calls_of_one_client_are_still_one_client() -> None:
    ann, bob = FakeCaller("ann", ALL), FakeCaller("bob", ALL)
    await ask("roots/list", [ann, bob], None, [call(ann), call(ann)])
    assert ann.asked


async def test_between_two_clients_nobody_is_asked() -> None:
    ann, bob = FakeCaller("ann", ALL), FakeCaller("bob", ALL)
    reply = await ask("roots/list", [ann, bob], None, [call(ann), call(bob)])
    assert error_of(reply)["code"] == INVALID_REQUEST
    assert "cannot tell which client" in str(error_of(reply)["message"])
    assert ann.asked == bob.asked == []


async def test_a_server_that_works_for_nobody_asks_the_one_client_there_is() -> None:
    ann = FakeCaller("ann", ALL)
    await ask("roots/list", [ann])
    assert ann.asked


@pytest.mark.parametrize("count", [0, 2, 3])
async def test_a_server_that_works_for_nobody_never_gets_a_guess(count: int) -> None:
    clients = [FakeCaller(str(number), ALL) for number in range(count)]
    assert error_of(await ask("roots/list", clients))["code"] == INVALID_REQUEST
    assert all(not client.asked for client in clients)


# ---- may they be asked?


@pytest.mark.parametrize("method", ["sampling/createMessage", "elicitation/create", "roots/list"])
async def test_what_the_client_did_not_declare_is_not_asked(method: str) -> None:
    ann = FakeCaller("ann", {key: value for key, value in ALL.items() if not method.startswith(key)})
    reply = await ask(method, [ann], {"message": "m"})
    assert error_of(reply)["code"] == METHOD_NOT_FOUND
    assert "the client did not declare" in str(error_of(reply)["message"])
    assert ann.asked == []


@pytest.mark.parametrize("method", ["tools/call", "ping", "made/up", "elicitation/crate"])
async def test_what_no_client_answers_is_an_unknown_method(method: str) -> None:
    ann = FakeCaller("ann", ALL)
    assert error_of(await ask(method, [ann]))["code"] == METHOD_NOT_FOUND
    assert ann.asked == []


@pytest.mark.parametrize(
    ("declared", "mode", "asked"),
    [
        ({}, None, True),
        ({}, "form", True),
        ({}, "url", False),
        ({"form": {}}, "form", True),
        ({"form": {}}, "url", False),
        ({"url": {}}, "url", True),
        ({"url": {}}, None, False),
        ({"url": {}}, "form", False),
        ({"form": {}, "url": {}}, "url", True),
    ],
)
async def test_an_elicitation_goes_to_a_client_that_declared_its_mode(
    declared: Message, mode: str | None, asked: bool
) -> None:
    ann = FakeCaller("ann", {"elicitation": declared})
    params: Message = {"message": "m"} if mode is None else {"message": "m", "mode": mode}
    reply = await ask("elicitation/create", [ann], params)
    assert bool(ann.asked) is asked
    if not asked:
        assert error_of(reply)["code"] == INVALID_PARAMS


@pytest.mark.parametrize(("declared", "asked"), [({}, False), ({"tools": {}}, True)])
async def test_sampling_with_tools_needs_a_client_that_declared_them(declared: Message, asked: bool) -> None:
    ann = FakeCaller("ann", {"sampling": declared})
    reply = await ask("sampling/createMessage", [ann], {"messages": [], "tools": [{"name": "t"}]})
    assert bool(ann.asked) is asked
    if not asked:
        assert error_of(reply)["code"] == INVALID_PARAMS


# ---- what is asked


async def test_a_person_sees_which_server_asks() -> None:
    ann = FakeCaller("ann", ALL)
    params: Message = {"message": "Your name?", "requestedSchema": {"type": "object"}}
    await ask("elicitation/create", [ann], params)
    assert ann.asked == [("elicitation/create", {**params, "message": "[fs] Your name?"})]


async def test_a_server_without_a_prefix_and_a_question_without_words_are_passed_as_they_are() -> None:
    ann = FakeCaller("ann", ALL)
    await ask("elicitation/create", [ann], {"message": "Your name?"}, prefix="")
    await ask("elicitation/create", [ann])
    await ask("elicitation/create", [ann], {"message": 7})
    assert [params for _, params in ann.asked] == [{"message": "Your name?"}, {}, {"message": 7}]


async def test_sampling_passes_unchanged() -> None:
    ann = FakeCaller("ann", ALL)
    params: Message = {"messages": [{"role": "user"}], "message": "not shown", "unknown": [1, 2]}
    await ask("sampling/createMessage", [ann], params)
    assert ann.asked == [("sampling/createMessage", params)]


async def test_what_the_client_answers_goes_back_as_it_is() -> None:
    ann = FakeCaller("ann", ALL)
    ann.answer = refuse(-1, "the user said no", {"why": "secret"})
    assert error_of(await ask("sampling/createMessage", [ann])) == {
        "code": -1,
        "message": "the user said no",
        "data": {"why": "secret"},
    }


@jumping
async def test_a_person_who_never_answers_is_given_up_on() -> None:
    ann = FakeCaller("ann", ALL)
    ann.answer = None
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(ask("elicitation/create", [ann], {"message": "m"}))
        await quiet()
        assert ann.asked
    assert "did not answer within 600 s" in str(error_of(asking.result())["message"])
    assert now() == pytest.approx(PATIENCE)
