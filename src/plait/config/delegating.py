"""Read how tasks are handed on; a mistake in it switches it off, since it says what a model may do."""

from __future__ import annotations

import re

from plait.config import fields
from plait.config.codes import IMPOSSIBLE_VALUE
from plait.config.delegation import (
    CLAUDE_FLOW,
    BudgetSettings,
    ComplexitySettings,
    DelegationConfig,
    DelegationRule,
    DelegationTarget,
    FlowTask,
)
from plait.config.expand import Variables
from plait.config.layering import Changes, Joined
from plait.config.masking import quoted
from plait.config.reading import Expanding, Option, read_options, section
from plait.config.spot import Findings, Spot

_OFF: dict[str, object] = dict.fromkeys(("claude_enabled", "claude_flow_enabled", "host_enabled"), False)
_HTTP = re.compile(r"https?://[^\s/]+[^\s]*", re.IGNORECASE)


def delegation(spot: Spot, findings: Findings, variables: Variables) -> Changes:
    """Whatever can be read; with nothing enabled where something could not."""
    errors_before = findings.errors
    values = read_options(spot, DELEGATION_OPTIONS, findings, variables)
    return Changes(DelegationConfig, {**values, **_OFF} if findings.errors > errors_before else values)


def flow_entry(root: Spot) -> Spot | None:
    """The entry of a server that stands in the delegation itself, if one does."""
    own = root.member("plait")
    for place in (root, own):
        section_ = None if place is None else place.member("delegation")
        entry = None if section_ is None else section_.member("claude_flow_server", "claudeFlowServer")
        if entry is not None and isinstance(entry.node.value, dict):
            return entry
    return None


def _target(spot: Spot, findings: Findings) -> DelegationTarget | None:
    found = fields.text(spot, findings)
    if found is None:
        return None
    try:
        return DelegationTarget.of(found)
    except ValueError:
        choices = ", ".join(f"'{each.value}'" for each in DelegationTarget)
        findings.report(IMPOSSIBLE_VALUE, spot, f"{quoted(found)} is none of {choices}")
        return None


def _rules(spot: Spot, findings: Findings, variables: Variables) -> Joined | None:
    """In order; they go behind those of the files before."""
    if not isinstance(spot.node.value, tuple):
        findings.wrong_type(spot, "a list of rules")
        return None
    found = [_rule(item, findings, variables) for item in spot.items()]
    return Joined(tuple(rule for rule in found if rule is not None))


def _rule(spot: Spot, findings: Findings, variables: Variables) -> DelegationRule | None:
    values = read_options(spot, RULE_OPTIONS, findings, variables)
    if "pattern" not in values:
        if isinstance(spot.node.value, dict) and spot.member("pattern") is None:
            message = "a rule without a pattern"
            findings.report(IMPOSSIBLE_VALUE, spot, message, 'an empty one, "", fits every task')
        return None
    try:
        re.compile(str(values["pattern"]))
    except re.error as problem:
        # As in the seeds (S1-062): the rule is skipped, and everything else goes on.
        message = f"the pattern is no regular expression ({problem.msg}), so this rule is skipped"
        findings.report(IMPOSSIBLE_VALUE, spot, message, severity="warning")
        return None
    return DelegationRule(**values)  # type: ignore[arg-type]  # what the table says


def _key(spot: Spot, findings: Findings, variables: Variables) -> str | None:
    source = fields.text(spot, findings)
    if source is not None and "${" not in source:
        hint = "leave it out to use ANTHROPIC_API_KEY, or write ${NAME_OF_A_VARIABLE}"
        findings.report(IMPOSSIBLE_VALUE, spot, "a key does not belong in a file", hint)
        return None
    return fields.expanded(spot, findings, variables) or None


def _url(spot: Spot, findings: Findings, variables: Variables) -> str | None:
    found = fields.expanded(spot, findings, variables)
    if found is None or _HTTP.fullmatch(found):
        return found
    findings.report(IMPOSSIBLE_VALUE, spot, "expected a URL that begins with https:// or http://")
    return None


def _flow_server(spot: Spot, findings: Findings) -> str | None:
    """A name; an entry is read with the servers, under a name of its own."""
    return CLAUDE_FLOW if isinstance(spot.node.value, dict) else fields.filled_text(spot, findings)


def _flow_task(spot: Spot, findings: Findings, variables: Variables) -> FlowTask | None:
    values = read_options(spot, FLOW_TASK_OPTIONS, findings, variables)
    if "tool" not in values:
        if spot.member("tool") is None:
            findings.report(IMPOSSIBLE_VALUE, spot, "no tool", 'for example {"tool": "task_create"}')
        return None
    return FlowTask(**values)  # type: ignore[arg-type]  # what the table says


def _fraction(spot: Spot, findings: Findings) -> float | None:
    value = spot.node.value
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    findings.report(IMPOSSIBLE_VALUE, spot, "expected a number from 0 to 1")
    return None


RULE_OPTIONS = (
    Option("pattern", ("pattern",), fields.text),
    Option("target", ("target",), _target),
    Option("tools", ("tools",), fields.texts),
)

FLOW_TASK_OPTIONS = (
    Option("tool", ("tool",), fields.filled_text),
    Option("arguments", ("arguments",), fields.data),
)

COMPLEXITY_OPTIONS = (
    Option("keywords", ("keywords",), fields.texts),
    Option("keyword_weight", ("keywordWeight", "keyword_weight"), _fraction),
    Option("keyword_limit", ("keywordLimit", "keyword_limit"), _fraction),
    Option("question_weight", ("questionWeight", "question_weight"), _fraction),
    Option("length_weight", ("lengthWeight", "length_weight"), _fraction),
    Option("local_below", ("localBelow", "local_below"), _fraction),
    Option("claude_flow_above", ("claudeFlowAbove", "claude_flow_above"), _fraction),
)

BUDGET_OPTIONS = (
    Option("tokens", ("tokens",), fields.whole(1)),
    Option("seconds", ("seconds",), fields.seconds()),
    Option("tool_calls", ("toolCalls", "tool_calls"), fields.whole(0)),
)

DELEGATION_OPTIONS = (
    Option("claude_enabled", ("claude_enabled", "claudeEnabled"), fields.truth),
    Option("claude_model", ("claude_model", "claudeModel"), fields.filled_text),
    Option("allowed_models", ("allowed_models", "allowedModels"), fields.texts),
    Option("max_turns", ("max_turns", "maxTurns"), fields.whole(1)),
    Option("max_tokens", ("max_tokens", "maxTokens"), fields.whole(1)),
    Option("api_key", ("api_key", "apiKey"), Expanding(_key)),
    Option("base_url", ("base_url", "baseUrl"), Expanding(_url)),
    Option("retries", ("retries",), fields.whole(0)),
    Option("claude_flow_enabled", ("claude_flow_enabled", "claudeFlowEnabled"), fields.truth),
    Option("claude_flow_server", ("claude_flow_server", "claudeFlowServer"), _flow_server),
    Option("claude_flow_tools", ("claude_flow_tools", "claudeFlowTools"), fields.texts),
    Option("claude_flow_task", ("claude_flow_task", "claudeFlowTask"), Expanding(_flow_task)),
    Option("host_enabled", ("host_enabled", "hostEnabled"), fields.truth),
    Option("rules", ("rules",), Expanding(_rules)),
    Option("default_target", ("default_target", "defaultTarget"), _target),
    Option("fallback", ("fallback",), fields.one_of(("local", "chain"))),
    Option("excluded_tools", ("excluded_tools", "excludedTools"), fields.texts),
    Option("complexity", ("complexity",), section(ComplexitySettings, COMPLEXITY_OPTIONS)),
    Option("budget", ("budget",), section(BudgetSettings, BUDGET_OPTIONS)),
    Option("max_depth", ("max_depth", "maxDepth"), fields.whole(1)),
)
