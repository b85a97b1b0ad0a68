"""What a file says about handing tasks on."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.json import decode, encode

from plait.config.delegation import (
    BudgetSettings,
    ComplexitySettings,
    DelegationConfig,
    DelegationRule,
    DelegationTarget,
    FlowTask,
)
from plait.config.environment import server_environment
from plait.config.load import load
from plait.config.model import Config, Settings, StdioServer

Read = Callable[..., Config]
FIXTURE = Path(__file__).resolve().parent.parent / "fixtures" / "config.json"


@pytest.mark.requirement("S1-T8.1", "S1-026", "X-27")
def test_an_empty_section_is_all_defaults_and_nothing_is_enabled(read: Read) -> None:
    config = read('{"delegation": {}}').delegation
    assert config == DelegationConfig()
    assert (config.claude_enabled, config.claude_flow_enabled, config.enabled) == (False, False, False)
    assert config.claude_model == "claude-sonnet-4-20250514"
    assert (config.max_turns, config.max_tokens) == (10, 4096)
    assert (config.rules, config.excluded_tools) == ((), ())


@pytest.mark.requirement("S1-T8.2")
def test_every_target_survives_being_written_and_read() -> None:
    for target in DelegationTarget:
        assert decode(encode(target), type=DelegationTarget) is target


@pytest.mark.requirement("S1-T8.2")
@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("ClaudeFlow", DelegationTarget.CLAUDE_FLOW),
        ("claude-flow", DelegationTarget.CLAUDE_FLOW),
        ("flow", DelegationTarget.CLAUDE_FLOW),
        ("Local", DelegationTarget.LOCAL),
        ("AUTO", DelegationTarget.AUTO),
    ],
)
def test_a_target_may_be_spelled_in_other_ways(text: str, target: DelegationTarget) -> None:
    assert DelegationTarget.of(text) is target


@pytest.mark.requirement("S1-T8.3")
def test_a_rule_survives_being_written_and_read() -> None:
    rule = DelegationRule("x", DelegationTarget.CLAUDE, ("fs__*",))
    assert encode(rule) == b'{"pattern":"x","target":"claude","tools":["fs__*"]}'
    assert decode(encode(rule), type=DelegationRule) == rule


@pytest.mark.requirement("S1-027", "S1-T8.4", "S1-AC11", "S1-D6")
def test_a_whole_file_with_a_section_is_read() -> None:
    config = load([FIXTURE], os.environ)
    assert config.problems == ()
    assert config.delegation.claude_enabled
    assert config.delegation.excluded_tools == ("exec_shell",)
    assert [rule.target.value for rule in config.delegation.rules] == ["claude_flow", "auto"]
    assert [server.name for server in config.servers] == ["claude-code", "claude-flow"]


@pytest.mark.requirement("S1-T8.5", "S1-028", "S1-E13")
def test_a_file_without_a_section_has_the_defaults(read: Read) -> None:
    assert read('{"mcpServers": {}}').delegation == DelegationConfig()


EVERYTHING = """{"delegation": {
  "claudeEnabled": true, "claudeModel": "claude-x", "allowedModels": ["claude-*"], "maxTurns": 3,
  "maxTokens": 100, "apiKey": "${K}", "baseUrl": "http://127.0.0.1:9", "retries": 0,
  "claudeFlowEnabled": true, "claudeFlowServer": "flow", "claudeFlowTools": ["task_*"],
  "claudeFlowTask": {"tool": "task_create", "arguments": {"description": "{task}"}},
  "hostEnabled": true, "rules": [{"pattern": "x", "target": "flow", "tools": ["a"]}],
  "defaultTarget": "Auto", "fallback": "chain", "excludedTools": ["exec_*"],
  "complexity": {"keywords": ["knit"], "keywordWeight": 0.1, "localBelow": 0.2},
  "budget": {"tokens": 1, "seconds": 2, "toolCalls": 3}, "maxDepth": 1}}"""


@pytest.mark.requirement("S1-026")
def test_every_setting_has_two_spellings(read: Read) -> None:
    config = read(EVERYTHING, K="hush")
    assert config.problems == ()
    assert config.delegation == DelegationConfig(
        claude_enabled=True,
        claude_model="claude-x",
        allowed_models=("claude-*",),
        max_turns=3,
        max_tokens=100,
        api_key="hush",
        base_url="http://127.0.0.1:9",
        retries=0,
        claude_flow_enabled=True,
        claude_flow_server="flow",
        claude_flow_tools=("task_*",),
        claude_flow_task=FlowTask(tool="task_create", arguments={"description": "{task}"}),
        host_enabled=True,
        rules=(DelegationRule("x", DelegationTarget.CLAUDE_FLOW, ("a",)),),
        default_target=DelegationTarget.AUTO,
        fallback="chain",
        excluded_tools=("exec_*",),
        complexity=ComplexitySettings(keywords=("knit",), keyword_weight=0.1, local_below=0.2),
        budget=BudgetSettings(tokens=1, seconds=2.0, tool_calls=3),
        max_depth=1,
    )
    assert "hush" not in repr(config)


@pytest.mark.parametrize(
    "mistake",
    [
        '"excluded_tools": "exec_shell"',
        '"max_turns": 0',
        '"exclude_tools": []',
        '"rules": [{"pattern": "x", "target": "nobody"}]',
        '"rules": [{}]',
        '"api_key": "sk-literal"',
        '"api_key": "${UNSET_AND_UNKNOWN}"',
        '"base_url": "ftp://x"',
        '"claude_flow_task": {}',
        '"complexity": {"keywordWeight": 7}',
    ],
)
def test_a_mistake_switches_it_off_and_nothing_else(mistake: str, read: Read) -> None:
    config = read(
        f'{{"delegation": {{"claude_enabled": true, {mistake}}}, "mcpServers": {{"a": {{"command": "x"}}}}}}'
    )
    assert [problem.severity for problem in config.problems] == ["error"]
    assert not config.delegation.enabled
    assert len(config.servers) == 1
    assert config.settings.rules == ()
    assert "sk-literal" not in config.problems[0].render()


@pytest.mark.requirement("S1-062")
def test_a_pattern_that_is_none_is_a_warning_and_its_rule_is_skipped(read: Read) -> None:
    config = read('{"delegation": {"claude_enabled": true, "rules": [{"pattern": "["}, {"pattern": ""}]}}')
    assert [problem.severity for problem in config.problems] == ["warning"]
    assert config.delegation.rules == (DelegationRule(""),)
    assert config.delegation.enabled


def test_claude_flow_whose_entry_stands_in_the_section_is_a_server_where_it_is_enabled(read: Read) -> None:
    text = '{"delegation": {"claude_flow_enabled": %s, "claude_flow_server": {"command": "npx"}}}'
    [server] = read(text % "true").servers
    assert (server.name, read(text % "true").delegation.claude_flow_server) == ("claude-flow", "claude-flow")
    assert read(text % "false").servers == ()


def test_processes_below_a_plait_that_hands_tasks_on_are_told_how_deep_they_are() -> None:
    server, on = StdioServer(command="x"), Settings(delegation=DelegationConfig(claude_enabled=True))
    name = "PLAIT_DELEGATION_DEPTH"
    assert name not in server_environment(server, Settings(), {})
    assert server_environment(server, on, {})[name] == "1"
    assert server_environment(server, on, {name: "1"})[name] == "2"
    assert server_environment(server, Settings(), {name: "1"})[name] == "1"
    assert server_environment(server, on, {name: "many"})[name] == "1"
