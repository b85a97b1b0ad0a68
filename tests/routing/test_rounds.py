"""A modern server's questions to a modern client, round by round."""

import asyncio

import pytest
from msgspec import Raw
from msgspec.json import decode

from clients import compositor, error_of, result_of
from clock import jumping
from fakes import Message, text
from modern_fakes import ModernClient, ModernServer
from plait.routing.rounds import LIFETIME, Rounds
from plait.session.exchange import Exchange, Reply
from plait.wire.address import as_raw
from seams import FakeCaller

QUESTION: Message = {
    "method": "elicitation/create",
    "params": {"mode": "form", "message": "Which?", "requestedSchema": {"type": "object"}},
}
ABLE: Message = {"elicitation": {"form": {}}}


def asking(state: str | None = "the server's own ünd exact") -> ModernServer:
    """It asks once, and then answers with what it was told."""
    server = ModernServer("s", tools=["t", "u"], prompts=["p"], resources=["x:1"])

    def answer(params: Message) -> Message:
        if "inputResponses" in params:
            return text(f"{params.get('requestState')}: {params['inputResponses']}")
        asked: Message = {"resultType": "input_required", "inputRequests": {"q": QUESTION}, "odd": 1}
        return asked if state is None else {**asked, "requestState": state}

    server.answers["tools/call"] = server.answers["prompts/get"] = answer
    return server


ANSWERS: Message = {"q": {"action": "accept", "content": {}}}


@jumping
async def test_a_question_goes_to_the_client_and_its_answer_to_the_server() -> None:
    server = asking()
    async with compositor(server) as made, ModernClient(made) as client:
        call: Message = {"name": "s__t", "arguments": {"b": 1, "a": [2]}, "capabilities": ABLE}
        asked = result_of(await client.send("tools/call", 1, **call))
        assert asked["resultType"] == "input_required"
        assert asked["odd"] == 1
        assert asked["inputRequests"]["q"]["params"]["message"] == "[s] Which?"  # type: ignore[index]
        state = asked["requestState"]
        assert "exact" not in str(state)
        again: Message = {**call, "arguments": {"a": [2], "b": 1}}
        done = result_of(
            await client.send("tools/call", 2, **again, requestState=state, inputResponses=ANSWERS)
        )
        assert done["resultType"] == "complete"
        assert "the server's own ünd exact" in str(done["content"])
    assert [params.get("requestState") for params in server.asked("tools/call")] == [
        None,
        "the server's own ünd exact",
    ]


@jumping
async def test_a_server_without_a_state_gets_none() -> None:
    server = asking(None)
    async with compositor(server) as made, ModernClient(made) as client:
        asked = result_of(await client.send("prompts/get", 1, name="s__p", capabilities=ABLE))
        assert "requestState" not in asked
        await client.send("prompts/get", 2, name="s__p", inputResponses=ANSWERS, capabilities=ABLE)
    assert "requestState" not in server.asked("prompts/get")[1]


@jumping
async def test_a_state_is_good_for_its_own_request_only_and_not_for_ever() -> None:
    server = asking()
    async with compositor(server) as made, ModernClient(made) as client:
        call: Message = {"name": "s__t", "arguments": {"a": 1}, "capabilities": ABLE}
        state = str(result_of(await client.send("tools/call", 1, **call))["requestState"])
        wrong: list[Message] = [
            {**call, "arguments": {"a": 2}},
            {**call, "name": "s__u"},
            {**call, "requestState": state[:-4] + "AAAA"},
            {**call, "requestState": f"{state}\n"},
            {**call, "requestState": "nonsense"},
            {**call, "requestState": 7},
        ]
        for number, params in enumerate(wrong, 2):
            answer = await client.send("tools/call", number, **{"requestState": state, **params})
            assert error_of(answer)["code"] == -32602
        await asyncio.sleep(LIFETIME + 1)
        late = await client.send("tools/call", 20, **call, requestState=state)
        assert "expired" in str(error_of(late)["message"])
    assert len(server.asked("tools/call")) == 1


@jumping
async def test_a_state_of_one_identity_is_nothing_in_the_hands_of_another() -> None:
    rounds = Rounds()
    ann, bob = (FakeCaller(name, ABLE, "2026-07-28") for name in ("ann", "bob"))
    asked = Raw(b'{"resultType":"input_required","requestState":"s"}')

    sealed = rounds.asked(ann.exchange("tools/call", name="t"), Reply(result=asked, asks=True))
    assert sealed.result is not None
    state = decode(sealed.result)["requestState"]

    def again(caller: FakeCaller) -> Exchange:
        return caller.exchange("tools/call", name="t", requestState=state)

    assert rounds.resume(again(bob)) is not None
    assert Rounds().resume(again(ann)) is not None
    exchange = again(ann)
    assert rounds.resume(exchange) is None
    assert exchange.params["requestState"] == as_raw("s")


@jumping
async def test_a_server_that_asks_what_the_client_cannot_answer_fails_the_call() -> None:
    async with compositor(asking()) as made, ModernClient(made) as client:
        error = error_of(await client.send("tools/call", name="s__t"))
        assert "the client did not declare elicitation" in str(error["message"])


@pytest.mark.parametrize("state", [7, None])
@jumping
async def test_a_state_that_is_no_string_fails_the_call(state: object) -> None:
    server = asking()
    server.answers["tools/call"] = lambda params: {"resultType": "input_required", "requestState": state}
    async with compositor(server) as made, ModernClient(made) as client:
        assert "no string" in str(error_of(await client.send("tools/call", name="s__t"))["message"])
