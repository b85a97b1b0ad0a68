"""`delegate_task` as clients see it: who does a task, with which tools, and as whom."""

import asyncio
import logging
import os

import pytest
from msgspec.json import decode
from msgspec.structs import replace

from clients import Client
from delegated import TOOL, delegating, server
from fakes import Message, words
from messages_api import Hang, MessagesApi, said, uses
from plait.compositor import Compositor
from plait.config.delegation import DelegationConfig, DelegationRule, DelegationTarget, FlowTask
from plait.config.model import Config, Settings
from plait.outbound.urls import UrlPolicy
from plait.pipeline.audit import AuditLog
from plait.pipeline.audit_records import Intent
from plait.pipeline.commands import CommandPolicy
from plait.pipeline.limits import ResultGuard
from plait.pipeline.permissions import PermissionFilter
from plait.pipeline.policy import SecurityGuard
from plait.pipeline.rules import Rule, Rules
from plait.routing.naming import MountPrefix
from plait.wire.address import as_raw

CLAUDE = DelegationConfig(claude_enabled=True, claude_model="claude-test", retries=0)
FLOW = replace(CLAUDE, claude_enabled=False, claude_flow_enabled=True, claude_flow_server="flow")


async def outcome(compositor: Compositor, **arguments: object) -> Message:
    """The structured result of handing a task on."""
    async with Client(compositor) as client:
        result = await client.call(TOOL, **arguments)
    assert result.get("isError") is not True, words(result)
    told = result["structuredContent"]
    assert isinstance(told, dict)
    assert decode(words(result)) == told
    return told


async def failure(compositor: Compositor, **arguments: object) -> str:
    async with Client(compositor) as client:
        result = await client.call(TOOL, **arguments)
    assert result["isError"] is True
    return words(result)


# ---- the tool itself


@pytest.mark.requirement("S1-T12.1", "S1-T12.2", "X-30")
async def test_it_has_a_name_and_a_schema() -> None:
    async with delegating(CLAUDE) as compositor, Client(compositor) as client:
        [tool] = await client.session.list_tools()
    assert tool["name"] == TOOL
    schema = tool["inputSchema"]
    assert isinstance(schema, dict)
    assert (schema["type"], schema["required"]) == ("object", ["task"])
    assert set(schema["properties"]) == {"task", "target", "model", "tools", "max_turns"}


@pytest.mark.requirement("X-31", "S1-E13")
async def test_it_is_not_there_where_nothing_is_configured() -> None:
    async with (
        delegating(DelegationConfig(rules=(DelegationRule(""),))) as compositor,
        Client(compositor) as client,
    ):
        assert await client.names() == []


@pytest.mark.requirement("S1-T12.3")
@pytest.mark.parametrize(
    "wrong", [{}, {"task": ""}, {"task": 1}, {"task": "x", "max_turns": 0}, {"task": "x", "y": 1}]
)
async def test_wrong_arguments_are_told(wrong: dict[str, object]) -> None:
    async with delegating(CLAUDE) as compositor:
        assert "invalid arguments" in await failure(compositor, **wrong)
        assert "invalid target: 'mars' is none of local" in await failure(compositor, task="x", target="mars")


@pytest.mark.requirement("S1-T12.4")
async def test_a_task_for_claude_is_done_by_claude() -> None:
    answer = said("Done.", cache_read_input_tokens=100)
    async with MessagesApi(answer) as api, delegating(CLAUDE, api=api) as compositor:
        told = await outcome(compositor, task="do it", target="claude")
    assert told == {
        "status": "delegated",
        "target": "claude",
        "response": "Done.",
        "task": "do it",
        "reason": "it was asked for",
        "turns": 1,
        "tool_calls": 0,
        "tokens": 115,
        "truncated": False,
    }


@pytest.mark.requirement("X-32")
async def test_an_answer_that_was_cut_is_marked() -> None:
    async with MessagesApi(said("Half", "max_tokens")) as api, delegating(CLAUDE, api=api) as compositor:
        told = await outcome(compositor, task="do it", target="claude")
    assert (told["response"], told["truncated"]) == ("Half", True)


@pytest.mark.requirement("S1-T12.6", "X-31")
async def test_without_a_target_and_with_auto_the_engine_decides() -> None:
    config = replace(CLAUDE, rules=(DelegationRule("^knit", DelegationTarget.CLAUDE),))
    async with MessagesApi(said("ok")) as api, delegating(config, api=api) as compositor:
        assert (await outcome(compositor, task="knit it"))["target"] == "claude"
        told = await outcome(compositor, task="hello", target="auto")
        assert told == {"status": "local", "task": "hello", "message": told["message"]}
        assert "complexity is 0.00" in str(told["message"])
        assert (await outcome(compositor, task="analyze and compare", target="auto"))["target"] == "claude"
        assert (await outcome(compositor, task="analyze and compare"))["status"] == "local"
        assert (await outcome(compositor, task="knit it", target="local"))["status"] == "local"
    async with delegating(config) as compositor:
        assert (await outcome(compositor, task="knit it"))["status"] == "local"


@pytest.mark.requirement("S1-T12.7", "X-31", "S1-017")
async def test_who_was_asked_for_and_is_not_there_is_an_error() -> None:
    async with delegating(replace(CLAUDE, host_enabled=True)) as compositor:
        told = await failure(compositor, task="x", target="claude")
        assert "claude was asked for and is not there: there is no key: set ANTHROPIC_API_KEY" in told
        assert "claude_flow_enabled is not set" in await failure(compositor, task="x", target="claude-flow")
        assert "did not declare sampling" in await failure(compositor, task="x", target="host")


# ---- tools


@pytest.mark.requirement("S1-R5")
async def test_the_tools_on_offer_are_those_of_the_moment() -> None:
    async with MessagesApi(said("ok")) as api, delegating(CLAUDE, server("a", "x"), api=api) as compositor:
        await outcome(compositor, task="1", target="claude")
        await compositor.mount(MountPrefix("b"), server("b", "y"))
        await outcome(compositor, task="2", target="claude")
        names = [api.tools(0), api.tools(1)]
    assert names == [["a__x"], ["a__x", "b__y"]], "and never our own"


async def test_a_rule_and_the_caller_narrow_them_and_what_is_excluded_is_excluded_by_any_name() -> None:
    rule = DelegationRule("", DelegationTarget.CLAUDE, ("a__*",))
    config = replace(CLAUDE, rules=(rule,), excluded_tools=("danger",))
    servers = server("a", "read", "write", "danger"), server("b", "read")
    async with MessagesApi(uses(("a__danger", {}), ("danger", {})), said("ok")) as api:
        async with delegating(config, *servers, api=api) as compositor:
            await outcome(compositor, task="x", tools=["*read", "*danger"])
        assert api.tools() == ["a__read"]
        assert [each["is_error"] for each in api.results()] == [True, True]
    assert servers[0].asked("tools/call") == []


async def test_calls_reach_the_server_and_results_the_model() -> None:
    files = server("fs", "read")
    async with MessagesApi(uses(("fs__read", {"path": "/a"})), said("read")) as api:
        async with delegating(CLAUDE, files, api=api) as compositor:
            told = await outcome(compositor, task="x", target="claude")
        assert [each["content"] for each in api.results()] == ["read did {'path': '/a'}"]
    assert (told["turns"], told["tool_calls"], told["response"]) == (2, 1, "read")


async def test_what_happens_is_progress_for_who_asked_for_it() -> None:
    told: list[Message] = []
    params = {"name": as_raw(TOOL), "arguments": as_raw({"task": "x", "target": "claude"})}
    async with (
        MessagesApi(uses(("fs__read", {})), said("Hello")) as api,
        delegating(CLAUDE, server("fs", "read"), api=api) as compositor,
        Client(compositor) as client,
    ):
        await client.session.client.request(
            "tools/call",
            params,
            on_progress=lambda progress: told.append({key: decode(each) for key, each in progress.items()}),
        )
    assert [each["message"] for each in told] == ["[calls fs__read]", "[fs__read answered]", "He", "llo"]
    assert [each["progress"] for each in told] == [1, 2, 3, 4]


async def test_a_caller_who_gives_up_ends_it() -> None:
    async with (
        MessagesApi(Hang()) as api,
        delegating(CLAUDE, api=api) as compositor,
        Client(compositor) as client,
    ):
        call = asyncio.get_running_loop().create_task(client.call(TOOL, task="x", target="claude"))
        await api.asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await client.names() == [TOOL]


# ---- no privilege is gained (row 54)


@pytest.mark.requirement("S1-020", "K-15")
async def test_a_delegated_call_is_judged_and_recorded_as_the_callers_own() -> None:
    audit = AuditLog()
    rules = Rules([Rule("deny", "fs__write", reason="read only"), Rule("allow", "*")])
    security = SecurityGuard(CommandPolicy(), UrlPolicy())
    guards = (audit, PermissionFilter(rules=rules), security, ResultGuard(max_bytes=400))
    wanted = uses(
        ("fs__write", {"path": "/a"}),
        ("fs__run", {"command": "rm -rf /"}),
        ("fs__fetch", {"url": "http://169.254.169.254/"}),
        ("fs__read", {"path": "x" * 5000}),
    )
    files = server("fs", "write", "run", "fetch", "read")
    async with MessagesApi(wanted, said("ok")) as api:
        async with delegating(CLAUDE, files, api=api, guards=guards) as compositor:
            await outcome(compositor, task="x", target="claude")
        assert "fs__write" not in api.tools(), "what the caller does not see, the model does not see"
        denied = api.results()
    assert [each.get("is_error", False) for each in denied] == [True, True, True, False]
    assert len(str(denied[3]["content"])) < 1000
    assert [params["name"] for params in files.asked("tools/call")] == ["read"]
    intents = [each for each in audit.records if isinstance(each, Intent)]
    assert {each.identity for each in intents} == {"anonymous"}
    assert {"fs__run", "fs__fetch", "fs__read", TOOL} <= {each.name for each in intents}


# ---- claude-flow


@pytest.mark.requirement("S1-T12.5")
async def test_a_task_for_claude_flow_is_done_by_claude_with_its_tools_only() -> None:
    config = replace(FLOW, claude_flow_tools=("task_*",))
    servers = server("flow", "task_create", "agent_spawn"), server("fs", "task_x")
    async with MessagesApi(uses(("flow__task_create", {})), said("ok")) as api:
        async with delegating(config, *servers, api=api) as compositor:
            told = await outcome(compositor, task="x", target="claude_flow")
        assert api.tools() == ["flow__task_create"]
    assert (told["target"], told["tool_calls"]) == ("claude_flow", 1)


@pytest.mark.requirement("S1-T12.5")
async def test_without_a_key_its_task_tool_is_called_once() -> None:
    task = FlowTask(tool="task_create", arguments={"description": "do: {task}", "tags": ["{task}", 1]})
    flow = server("flow", "task_create")
    async with delegating(replace(FLOW, claude_flow_task=task), flow) as compositor:
        told = await outcome(compositor, task="knit", target="flow")
    expected = {"description": "do: knit", "tags": ["knit", 1]}
    assert told["response"] == f"task_create did {expected}"
    assert [params["arguments"] for params in flow.asked("tools/call")] == [expected]


@pytest.mark.requirement("S1-017", "S1-R4")
async def test_a_claude_flow_that_is_not_there_disables_only_itself() -> None:
    config = replace(FLOW, claude_enabled=True, default_target=DelegationTarget.CLAUDE_FLOW)
    async with (
        MessagesApi(said("ok")) as api,
        delegating(config, server("fs", "read"), api=api) as compositor,
    ):
        assert "'flow' is not up" in await failure(compositor, task="x", target="claude_flow")
        assert (await outcome(compositor, task="x"))["status"] == "local"
        assert (await outcome(compositor, task="x", target="claude"))["response"] == "ok"
    async with delegating(FLOW, server("flow", "a")) as compositor:
        assert "delegation.claude_flow_task" in await failure(compositor, task="x", target="claude_flow")


# ---- recursion


async def test_a_task_is_not_handed_on_for_ever() -> None:
    async with MessagesApi(said("ok")) as api:
        deep = {"PLAIT_DELEGATION_DEPTH": "3"}
        async with delegating(CLAUDE, api=api, environ=deep) as compositor:
            told = await failure(compositor, task="x", target="claude")
            assert "within 3 delegations already; see delegation.max_depth" in told
        async with delegating(CLAUDE, api=api) as compositor, Client(compositor) as client:
            call = {"name": TOOL, "arguments": {"task": "x"}, "_meta": {"plait/delegation-depth": 3}}
            assert (await client.send("tools/call", **call))["isError"] is True
        assert api.requests == []


async def test_a_delegated_call_says_how_deep_it_is() -> None:
    files, deep = server("fs", "read"), {"PLAIT_DELEGATION_DEPTH": "1"}
    async with (
        MessagesApi(uses(("fs__read", {})), said("ok")) as api,
        delegating(CLAUDE, files, api=api, environ=deep) as compositor,
    ):
        await outcome(compositor, task="x", target="claude")
    [params] = files.asked("tools/call")
    assert params["_meta"] == {"plait/delegation-depth": 2}


# ---- what is missing is said once


@pytest.mark.requirement("S1-017")
async def test_a_target_that_cannot_be_used_is_one_line_and_everything_else_goes_on(
    caplog: pytest.LogCaptureFixture, tmp_path: os.PathLike[str]
) -> None:
    config = replace(FLOW, claude_enabled=True)
    settings = Settings(delegation=config, builtin=False)
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    with caplog.at_level(logging.WARNING, "plait.delegation"):
        async with Compositor(Config(settings=settings), environ=environ) as compositor:
            assert compositor.complaints == []
    assert [record.getMessage() for record in caplog.records] == [
        "no task is handed on to claude: there is no key: set ANTHROPIC_API_KEY or delegation.api_key",
        "no task is handed on to claude_flow: there is no server 'flow'; see delegation.claude_flow_server",
    ]
