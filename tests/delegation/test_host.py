"""The client's own model does the task: asked while the call runs, or from call to call."""

import asyncio

from msgspec.structs import replace

from clients import Client, error_of, result_of
from clock import jumping
from delegated import TOOL, alone, delegating, server
from fakes import Held, Message, words
from modern_fakes import ModernClient
from plait.compositor import Compositor
from plait.config.delegation import BudgetSettings, DelegationConfig, DelegationTarget
from plait.delegation.conversation import Conversation
from plait.delegation.job import Job, Task
from plait.delegation.schema import Toolset
from plait.delegation.suspended import LIFETIME, MOST, Waiting
from plait.session.exchange import Exchange
from plait.upstream.client import Answer
from plait.wire.envelope import Fields

HOST = DelegationConfig(host_enabled=True)
SAMPLING: Message = {"sampling": {"tools": {}}}
ASK = "sampling/createMessage"


def spoken(text: str, stop: str = "endTurn") -> Message:
    return {"role": "assistant", "model": "m", "stopReason": stop, "content": {"type": "text", "text": text}}


def wants(name: str, **given: object) -> Message:
    block = {"type": "tool_use", "id": "u1", "name": name, "input": given}
    return {"role": "assistant", "model": "m", "stopReason": "toolUse", "content": [block]}


class Thinking(Client):
    """A client whose model gives these answers, one after the other."""

    def __init__(self, compositor: Compositor, *answers: Message, capabilities: Message = SAMPLING) -> None:
        super().__init__(compositor, capabilities)
        self._given = list(answers)

    def consulted(
        self, id: bytes, method: str, params: Fields, answer: Answer, exchange: Exchange | None
    ) -> None:
        self.answers[method] = self._given.pop(0)
        super().consulted(id, method, params, answer, exchange)


async def told(client: Client, **arguments: object) -> Message:
    result = await client.call(TOOL, task="knit", target="host", **arguments)
    assert result.get("isError") is not True, words(result)
    structured = result["structuredContent"]
    assert isinstance(structured, dict)
    return structured


async def test_a_client_that_takes_no_tools_answers_with_text() -> None:
    capabilities: Message = {"sampling": {}}
    async with (
        delegating(HOST, server("fs", "read")) as compositor,
        Thinking(compositor, spoken("Knitted."), capabilities=capabilities) as client,
    ):
        done = await told(client)
        [asked] = client.questions(ASK)
    assert (done["target"], done["response"], done["turns"]) == ("host", "Knitted.", 1)
    content = {"type": "text", "text": "knit"}
    assert asked == {"messages": [{"role": "user", "content": content}], "maxTokens": 4096}


async def test_its_calls_are_made_and_their_results_go_back() -> None:
    files = server("fs", "read")
    async with (
        delegating(HOST, files) as compositor,
        Thinking(compositor, wants("fs__read", path="/a"), spoken("Read.")) as client,
    ):
        done = await told(client)
        first, second = client.questions(ASK)
    assert (done["response"], done["tool_calls"]) == ("Read.", 1)
    assert [tool["name"] for tool in first["tools"]] == ["fs__read"]  # type: ignore[attr-defined]
    text = {"type": "text", "text": "read did {'path': '/a'}"}
    last = {"type": "tool_result", "toolUseId": "u1", "content": [text]}
    assert second["messages"][1:] == [  # type: ignore[index]
        {"role": "assistant", "content": wants("fs__read", path="/a")["content"]},
        {"role": "user", "content": [last]},
    ]


async def test_auto_asks_the_client_where_that_is_enabled() -> None:
    async with delegating(HOST) as compositor, Thinking(compositor, spoken("ok")) as client:
        result = await client.call(TOOL, task="analyze and compare", target="auto")
    assert result["structuredContent"]["target"] == "host"  # type: ignore[index]


async def test_a_message_that_is_none_is_told() -> None:
    async with delegating(HOST) as compositor, Thinking(compositor, {"content": 7}) as client:
        result = await client.call(TOOL, task="x", target="host")
    assert "the client's model gave no message" in words(result)


@jumping
async def test_a_person_who_thinks_too_long_ends_the_task() -> None:
    config = replace(HOST, budget=BudgetSettings(seconds=60))
    async with Compositor(alone(config)) as compositor, Client(compositor, SAMPLING) as client:
        client.answers[ASK] = Held()
        result = await client.call(TOOL, task="x", target="host")
    assert "delegation.budget.seconds" in words(result)


# ---- the modern era

CALL: Message = {"name": TOOL, "arguments": {"task": "knit", "target": "host"}, "capabilities": SAMPLING}


async def asked(client: ModernClient, id: int, **more: object) -> Message:
    result = result_of(await client.send("tools/call", id, **{**CALL, **more}))
    assert result["resultType"] == "input_required", result
    return result


async def test_a_modern_client_is_asked_by_the_result_and_calls_again() -> None:
    files = server("fs", "read")
    async with delegating(HOST, files) as compositor, ModernClient(compositor) as client:
        first = await asked(client, 1)
        question = first["inputRequests"]["model"]  # type: ignore[index]
        assert question["method"] == ASK
        assert [tool["name"] for tool in question["params"]["tools"]] == ["fs__read"]
        wanted: Message = {"model": wants("fs__read", path="/a")}
        second = await asked(client, 2, requestState=first["requestState"], inputResponses=wanted)
        messages = second["inputRequests"]["model"]["params"]["messages"]  # type: ignore[index]
        assert [each["role"] for each in messages] == ["user", "assistant", "user"]
        answer: Message = {"model": spoken("Read.")}
        last = await client.send(
            "tools/call", 3, **CALL, requestState=second["requestState"], inputResponses=answer
        )
    done = result_of(last)
    assert done["resultType"] == "complete"
    assert done["structuredContent"]["response"] == "Read."  # type: ignore[index]
    assert done["structuredContent"]["turns"] == 2  # type: ignore[index]
    assert [each["arguments"] for each in files.asked("tools/call")] == [{"path": "/a"}]


async def test_a_round_that_is_sent_twice_runs_no_tool_twice() -> None:
    files = server("fs", "read")
    async with delegating(HOST, files) as compositor, ModernClient(compositor) as client:
        first = await asked(client, 1)
        again: Message = {
            **CALL,
            "requestState": first["requestState"],
            "inputResponses": {"model": wants("fs__read")},
        }
        await client.send("tools/call", 2, **again)
        repeated = result_of(await client.send("tools/call", 3, **again))
        assert repeated["isError"] is True
        assert "answered already" in words(repeated)
        forged = await client.send("tools/call", 4, **{**CALL, "requestState": "guess"})
        assert error_of(forged)["code"] == -32602
    assert len(files.asked("tools/call")) == 1


async def test_a_round_without_the_answer_is_asked_again() -> None:
    async with delegating(HOST) as compositor, ModernClient(compositor) as client:
        first = await asked(client, 1)
        second = await asked(client, 2, requestState=first["requestState"], inputResponses={})
        assert second["inputRequests"] == first["inputRequests"]


@jumping
async def test_a_client_that_never_comes_back_is_forgotten() -> None:
    def job() -> Job:
        return Job(Task("x"), DelegationTarget.HOST, "", Conversation("x", HOST), Toolset({}))

    waiting = Waiting()
    old = waiting.put(job())
    await asyncio.sleep(LIFETIME + 1)
    assert waiting.take(old) is None
    ids = [waiting.put(job()) for _ in range(MOST + 1)]
    assert waiting.take(ids[0]) is None
    assert waiting.take(ids[-1]) is not None
