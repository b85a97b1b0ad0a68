"""`plait delegate`: hand a task on, and see the turns as they happen; or only see who would do it."""

import argparse

import msgspec

from plait.cli.exits import CONFIG, OK, TOOL_ERROR
from plait.cli.files import find
from plait.cli.loop import run as run_loop
from plait.cli.policy import Pretender
from plait.cli.screen import Screen
from plait.cli.session import Looking, looking
from plait.config.delegation import DelegationTarget
from plait.constants import DELEGATE_MOUNT_PREFIX
from plait.delegation.engine import estimate_complexity
from plait.delegation.job import Task
from plait.delegation.targets import BRAINS
from plait.delegation.tool import NAME, DelegateTaskTool
from plait.errors import DelegationFailed, UpstreamRefused
from plait.upstream.decoded import unwrap
from plait.wire.address import as_raw
from plait.wire.content import extract_tool_result
from plait.wire.envelope import Fields

OFF = (
    "error: nothing is configured to hand tasks on to\n"
    '  = for example: "delegation": {"claude_enabled": true}, and ANTHROPIC_API_KEY in the environment'
)


def run(options: argparse.Namespace) -> int:
    return run_loop(_delegate(options, Screen()))


async def _delegate(options: argparse.Namespace, screen: Screen) -> int:
    config = find(options.config)
    if config is None or not config.delegation.enabled:
        screen.note(OFF)
        return CONFIG
    async with looking(config, screen) as seen:
        if options.dry_run:
            return _plan(seen, Task(options.task, options.to), screen, as_json=options.json)
        return await _run(seen, options, screen)


# ---- who would do it


def _plan(seen: Looking, given: Task, screen: Screen, *, as_json: bool) -> int:
    told = plan(seen, given)
    if as_json:
        screen.json(told)
    else:
        for line in _lines(told):
            screen.say(line)
    return TOOL_ERROR if "error" in told else OK


def plan(seen: Looking, given: Task) -> dict[str, object]:
    """Who would do it, which rule says so, how complex it looks, and who is not there."""
    tool = seen.compositor.registry.find(DELEGATE_MOUNT_PREFIX).server
    assert isinstance(tool, DelegateTaskTool)
    caller, config = Pretender("anonymous"), seen.compositor.settings.delegation
    absent = {target.value: tool.targets.absence(target, caller) for target in BRAINS}
    told: dict[str, object] = {
        "complexity": round(estimate_complexity(given.task, config.complexity), 3),
        "absent": {target: why for target, why in absent.items() if why is not None},
    }
    try:
        decision = tool.decide(given, caller)
    except DelegationFailed as problem:
        return {"error": str(problem), **told}
    tools = tool.targets.tools(caller, decision.target, (decision.tools,)).definitions
    offered = [] if decision.target is DelegationTarget.LOCAL else [each.name for each in tools.values()]
    rule = None if decision.rule is None else decision.rule.pattern
    return {
        "target": decision.target.value,
        "reason": decision.reason,
        "rule": rule,
        **told,
        "tools": offered,
    }


def _lines(told: dict[str, object]) -> list[str]:
    absent, tools = told["absent"], told.get("tools")
    assert isinstance(absent, dict)
    head = f"error: {told['error']}" if "error" in told else f"{told['target']}: {told['reason']}"
    lines = [head, f"  complexity {told['complexity']}"]
    if isinstance(tools, list) and tools:
        lines.append(f"  {len(tools)} tools: {', '.join(tools)}")
    return [*lines, *(f"  not {target}: {why}" for target, why in absent.items())]


# ---- doing it


async def _run(seen: Looking, options: argparse.Namespace, screen: Screen) -> int:
    def show(progress: Fields) -> None:
        words = msgspec.json.decode(progress.get("message", b'""'))
        if isinstance(words, str) and words.startswith("["):
            screen.note(words)

    arguments = {"task": options.task} | ({} if options.to is None else {"target": options.to})
    name = seen.compositor.tool_name(DELEGATE_MOUNT_PREFIX, NAME)
    params = {"name": as_raw(name), "arguments": as_raw(arguments)}
    try:
        result = unwrap(await seen.client.client.request("tools/call", params, on_progress=show))
    except UpstreamRefused as refused:
        screen.note(f"error: {refused}")
        return TOOL_ERROR
    return _show(result, screen, as_json=options.json)


def _show(result: object, screen: Screen, *, as_json: bool) -> int:
    if not isinstance(result, dict) or result.get("isError") is True:
        output = result.get("content") if isinstance(result, dict) else result
        screen.note(f"error: {_text(output)}")
        return TOOL_ERROR
    told = result.get("structuredContent")
    assert isinstance(told, dict), "our own tool says it in both forms"
    if as_json:
        screen.json(told)
        return OK
    screen.whole(str(told.get("response", told.get("message", ""))))
    if "turns" in told:
        costs = f"{told['turns']} turns, {told['tool_calls']} tool calls, {told['tokens']} tokens"
        screen.note(f"{told['target']}: {told['reason']}; {costs}{', cut' if told['truncated'] else ''}")
    return OK


def _text(content: object) -> str:
    found = extract_tool_result({"content": content})
    return str(found["output"]) if isinstance(found, dict) and "output" in found else str(found)
