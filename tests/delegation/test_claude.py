"""Claude by the official client, against a server that speaks its API and misbehaves."""

import asyncio
import logging

import pytest
from msgspec.structs import replace

from messages_api import (
    KEY,
    Cut,
    Events,
    Hang,
    MessagesApi,
    Scripted,
    Status,
    events,
    message,
    noting,
    said,
    uses,
)
from plait.config.delegation import BudgetSettings, DelegationConfig
from plait.delegation.claude import API_VERSION, ClaudeDelegator, Tool, absence
from plait.errors import DelegationFailed
from plait.wire.tools import ToolDefinition

CONFIG = DelegationConfig(claude_enabled=True, claude_model="claude-test")
ECHO = ToolDefinition(
    "echo", "Says it again.", {"type": "object", "properties": {"text": {"type": "string"}}}
)
SHELL = ToolDefinition("exec_shell", "Runs it.")
OPENAI = {
    "type": "function",
    "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object"}},
}
PATIENCE = 30


class Desk:
    """Where delegated tasks are done: the tools, what was called, and what was said meanwhile."""

    def __init__(self, api: MessagesApi, config: DelegationConfig = CONFIG) -> None:
        self.calls: list[tuple[str, dict[str, object]]] = []
        self.words: list[str] = []
        self.pauses: list[float] = []
        self.delegator = ClaudeDelegator(config, KEY, base_url=api.url, sleep=noting(self.pauses))

    async def call(self, name: str, arguments: dict[str, object]) -> object:
        self.calls.append((name, arguments))
        if arguments.get("fail"):
            raise ValueError("it broke")
        return {"echoed": arguments}

    async def do(self, task: str = "do it", *tools: Tool, model: str | None = None) -> str:
        given = tools or (ECHO, SHELL)
        async with asyncio.timeout(PATIENCE):
            return await self.delegator.delegate(
                task,
                given,
                self.call,
                say=self.words.append,
                model=model,
            )


async def failure(*script: Scripted, config: DelegationConfig = CONFIG) -> str:
    """What a task fails with."""
    async with MessagesApi(*script) as api:
        with pytest.raises(DelegationFailed) as failed:
            await Desk(api, config).do()
        return str(failed.value)


@pytest.mark.requirement("S1-T11.1", "S1-054")
async def test_a_text_is_the_answer() -> None:
    async with MessagesApi(said("All done.")) as api:
        assert await Desk(api).do() == "All done."


@pytest.mark.requirement("S1-051", "S1-R3")
async def test_the_request_is_what_the_official_client_sends_field_by_field() -> None:
    async with MessagesApi(said("ok")) as api:
        await Desk(api).do("do it", ECHO, OPENAI)
        [request] = api.requests
        [received] = api.received
    assert request == {
        "model": "claude-test",
        "max_tokens": 4096,
        "stream": True,
        "messages": [{"role": "user", "content": "do it"}],
        "tools": [
            {"name": "echo", "description": "Says it again.", "input_schema": ECHO.input_schema},
            {"name": "add", "description": "Adds.", "input_schema": {"type": "object", "properties": {}}},
        ],
    }
    assert (received.method, received.target) == ("POST", "/v1/messages")
    # The official client says these two otherwise than the seed (x-api-key, 2023-06-01): it knows its server.
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.headers["anthropic-version"] == API_VERSION
    assert received.headers["content-type"] == "application/json"


@pytest.mark.requirement("S1-R3")
async def test_the_official_client_used_by_hand_sends_the_same() -> None:
    async with MessagesApi(said("ok")) as api:
        import anthropic

        await Desk(api).do("do it", ECHO)
        tool = {"name": "echo", "description": "Says it again.", "input_schema": ECHO.input_schema}
        async with (
            anthropic.AsyncAnthropic(api_key=KEY, base_url=api.url, max_retries=0, timeout=120.0) as client,
            client.messages.stream(
                model="claude-test",
                max_tokens=4096,
                tools=[tool],  # type: ignore[list-item]
                messages=[{"role": "user", "content": "do it"}],
            ) as stream,
        ):
            await stream.until_done()
        ours, theirs = api.received
    assert ours.headers == theirs.headers
    assert ours.body == theirs.body


@pytest.mark.requirement("S1-015", "S1-T11.2", "S1-052", "S1-053")
async def test_a_tool_is_called_and_its_result_goes_back_with_what_the_model_said_verbatim() -> None:
    first = uses(("echo", {"text": "hi"}), text="Let me see.")
    async with MessagesApi(first, said("It said hi.")) as api:
        desk = Desk(api)
        assert await desk.do() == "It said hi."
        task, assistant, user = api.messages()
    assert desk.calls == [("echo", {"text": "hi"})]
    assert task == {"role": "user", "content": "do it"}
    assert assistant == {"role": "assistant", "content": first["content"]}
    result = {"type": "tool_result", "tool_use_id": "toolu_0", "content": '{"echoed":{"text":"hi"}}'}
    assert user == {"role": "user", "content": [result]}


@pytest.mark.requirement("S1-053")
async def test_tools_run_side_by_side_and_a_failure_is_told_to_the_model() -> None:
    together = asyncio.Barrier(2)
    async with MessagesApi(uses(("echo", {"text": "a"}), ("echo", {"fail": True})), said("fine")) as api:
        desk = Desk(api)

        async def meet(name: str, arguments: dict[str, object]) -> object:
            await together.wait()  # neither comes back before both have begun
            return await desk.call(name, arguments)

        async with asyncio.timeout(PATIENCE):
            assert await desk.delegator.delegate("do it", [ECHO], meet) == "fine"
        last = api.results()
    assert [block["tool_use_id"] for block in last] == ["toolu_0", "toolu_1"]
    assert last[1] == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "it broke",
        "is_error": True,
    }


@pytest.mark.requirement("S1-T11.3", "S1-055")
async def test_a_model_that_never_ends_is_ended() -> None:
    async with MessagesApi(uses(("echo", {}))) as api:
        desk = Desk(api, replace(CONFIG, max_turns=3))
        with pytest.raises(DelegationFailed, match="max turns: the model was not done after 3"):
            await desk.do()
        assert len(api.requests) == 3
    assert len(desk.calls) == 2, "what nobody would see the result of is not called"


@pytest.mark.requirement("S1-T11.4", "S1-056", "S1-D3")
async def test_a_key_that_is_refused_is_told_and_not_shown() -> None:
    told = await failure(Status(401, "authentication_error", f"invalid x-api-key {KEY}"))
    assert "does not take the key: invalid x-api-key *** (401)" in told
    assert KEY not in told


@pytest.mark.requirement("S1-T11.5", "K-15")
async def test_an_excluded_tool_is_not_in_the_request_and_refused_if_it_is_named_all_the_same() -> None:
    async with MessagesApi(uses(("exec_shell", {"command": "ls"})), said("I may not.")) as api:
        desk = Desk(api, replace(CONFIG, excluded_tools=("exec_*",)))
        assert await desk.do() == "I may not."
        assert api.tools() == ["echo"]
        [result] = api.results()
    assert desk.calls == []
    assert result["is_error"] is True
    assert "there is no tool 'exec_shell' for this task" in str(result["content"])


@pytest.mark.requirement("S1-057", "S1-E11")
async def test_without_tools_the_list_is_empty_and_the_model_answers_with_text() -> None:
    async with MessagesApi(said("Hello.")) as api:
        async with asyncio.timeout(PATIENCE):
            assert await Desk(api).delegator.delegate("hi", [], Desk(api).call) == "Hello."
        assert api.requests[0]["tools"] == []


# ---- faults


@pytest.mark.parametrize(
    "fault",
    [
        Status(429, "rate_limit_error", headers={"Retry-After": "7"}),
        Status(529, "overloaded_error"),
        Status(500),
        Cut(said("half an answer")),
        Cut(said("half an answer"), silently=True),
        Events([{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}]),
        Events(events(uses(("echo", '{"text": nonsense')))),
    ],
    ids=["429", "529", "500", "cut", "cut-silently", "overloaded-in-the-stream", "malformed-json"],
)
@pytest.mark.requirement("K-15")
async def test_what_may_pass_is_asked_again_and_no_tool_runs_twice(fault: Scripted) -> None:
    async with MessagesApi(uses(("echo", {"text": "once"})), fault, fault, said("at last")) as api:
        desk = Desk(api)
        assert await desk.do() == "at last"
        assert len(api.requests) == 4
        assert api.requests[1] == api.requests[2] == api.requests[3]
    assert desk.calls == [("echo", {"text": "once"})]
    assert len(desk.pauses) == 2


async def test_retry_after_is_how_long_we_wait_but_not_for_ever() -> None:
    patient = Status(429, headers={"Retry-After": "7"}), Status(429, headers={"Retry-After": "86400"})
    async with MessagesApi(*patient, said("ok")) as api:
        desk = Desk(api)
        await desk.do()
    assert desk.pauses == [7.0, 60.0]


async def test_what_does_not_pass_fails_after_so_many_times() -> None:
    told = await failure(Status(529, "overloaded_error", "Overloaded"), config=replace(CONFIG, retries=2))
    assert told == "Anthropic did not answer: Overloaded (529); asked 3 times"


async def test_nobody_there_is_told() -> None:
    async with MessagesApi(said("")) as api:
        url = api.url
    delegator = ClaudeDelegator(replace(CONFIG, retries=0), KEY, base_url=url)
    with pytest.raises(DelegationFailed, match="Anthropic cannot be reached"):
        async with asyncio.timeout(PATIENCE):
            await delegator.delegate("x", [], Desk(api).call)


async def test_a_retired_model_is_an_error_that_names_the_setting() -> None:
    told = await failure(Status(404, "not_found_error", "model: claude-test"))
    assert "has no model 'claude-test'" in told
    assert "delegation.claude_model" in told


async def test_a_model_that_will_be_gone_is_told_once_with_the_setting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with MessagesApi(uses(("echo", {})), said("ok")) as api:
        await Desk(api, DelegationConfig()).do()
    [told] = [record.getMessage() for record in caplog.records if record.name == "plait.delegation"]
    assert "'claude-sonnet-4-20250514' is deprecated" in told
    assert "delegation.claude_model" in told


@pytest.mark.requirement("X-32")
@pytest.mark.parametrize(
    ("reason", "expected"),
    [("refusal", "the model refused the task"), ("something_new", "plait does not know: something_new")],
)
async def test_a_refusal_and_a_reason_that_nobody_knows_are_errors(reason: str, expected: str) -> None:
    assert expected in await failure(said("no", reason))


@pytest.mark.requirement("X-32")
async def test_a_pause_goes_on_where_it_was() -> None:
    async with MessagesApi(said("Thinking…", "pause_turn"), said("Done.", "stop_sequence")) as api:
        assert await Desk(api).do() == "Done."
        roles = [each["role"] for each in api.messages()]
    assert roles == ["user", "assistant"]


async def test_several_texts_are_joined_by_line_breaks() -> None:
    blocks: list[dict[str, object]] = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    async with MessagesApi(message(blocks, "end_turn")) as api:
        assert await Desk(api).do() == "a\nb"


# ---- budgets, models, cancellation


async def test_tokens_of_all_turns_count_and_the_last_answer_may_only_use_what_is_left() -> None:
    config = replace(CONFIG, budget=BudgetSettings(tokens=100))
    expensive = uses(("echo", {}))
    expensive["usage"] = {"input_tokens": 50, "output_tokens": 40}
    async with MessagesApi(expensive, expensive) as api:
        desk = Desk(api, config)
        with pytest.raises(DelegationFailed, match=r"180 tokens, and may use 100; see delegation\.budget"):
            await desk.do()
        assert [each["max_tokens"] for each in api.requests] == [100, 10]


async def test_too_many_tool_calls_end_it_before_they_are_made() -> None:
    config = replace(CONFIG, budget=BudgetSettings(tool_calls=1))
    async with MessagesApi(uses(("echo", {}), ("echo", {}))) as api:
        desk = Desk(api, config)
        with pytest.raises(DelegationFailed, match=r"delegation\.budget\.tool_calls"):
            await desk.do()
    assert desk.calls == []


@pytest.mark.requirement("K-15")
async def test_a_task_has_a_time() -> None:
    config = replace(CONFIG, budget=BudgetSettings(seconds=0.05))
    assert "delegation.budget.seconds" in await failure(Hang(), config=config)


async def test_only_models_that_are_allowed_may_be_asked_for() -> None:
    async with MessagesApi(said("ok")) as api:
        desk = Desk(api, replace(CONFIG, allowed_models=("claude-fast-*",)))
        await desk.do(model="claude-fast-1")
        assert api.requests[0]["model"] == "claude-fast-1"
        with pytest.raises(
            DelegationFailed, match=r"'claude-dear' may not be asked for; delegation\.allowed"
        ):
            await desk.do(model="claude-dear")
        assert len(api.requests) == 1


async def test_who_gives_up_ends_the_question() -> None:
    async with MessagesApi(Hang()) as api:
        desk = Desk(api)
        task = asyncio.get_running_loop().create_task(desk.do())
        async with asyncio.timeout(PATIENCE):
            await api.asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task


async def test_text_is_said_while_it_comes() -> None:
    async with MessagesApi(uses(("echo", {})), said("Hello you")) as api:
        desk = Desk(api)
        await desk.do()
    assert desk.words == ["[calls echo]", "[echo answered]", "Hell", "o you"]


# ---- the key


@pytest.mark.requirement("S1-R6")
async def test_the_key_is_in_no_log_and_no_representation(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with MessagesApi(Status(500), said("ok")) as api:
            desk = Desk(api)
            await desk.do()
    assert KEY not in caplog.text
    assert KEY not in repr(desk.delegator)
    assert KEY not in repr(DelegationConfig(api_key=KEY))


def test_without_a_key_there_is_no_delegator_and_why_is_told() -> None:
    with pytest.raises(DelegationFailed, match="ANTHROPIC_API_KEY"):
        ClaudeDelegator(CONFIG, "")
    assert "ANTHROPIC_API_KEY" in str(absence(CONFIG, {"ANTHROPIC_API_KEY": ""}))
    pytest.importorskip("anthropic")
    assert absence(replace(CONFIG, api_key=KEY), {"ANTHROPIC_API_KEY": ""}) is None
