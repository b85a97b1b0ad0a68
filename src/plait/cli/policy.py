"""`plait policy test`: what the guards would say to a call, without making it."""

import argparse

from msgspec import Raw

from plait.cli.exits import DENIED, OK, UNEXPECTED
from plait.cli.files import find
from plait.cli.loop import run as run_loop
from plait.cli.screen import Screen
from plait.cli.session import Looking, looking
from plait.cli.signature import read_pair
from plait.pipeline.compose import arrange, compose
from plait.session.exchange import Exchange, OnProgress, Reply
from plait.wire.address import as_raw
from plait.wire.envelope import Fields

ALLOWED = Reply(result=Raw(b'{"content":[]}'))


class Pretender:
    """A caller for whom nothing is really done."""

    revision = "2025-11-25"

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self.capabilities: Fields = {}

    def notify(self, method: str, params: Fields | None, within: bytes | None = None) -> None:
        """Nobody listens."""

    async def ask(
        self,
        method: str,
        params: Fields | None,
        on_progress: OnProgress | None = None,
        within: bytes | None = None,
    ) -> Reply:
        raise AssertionError("a guard asks nobody")


def run(options: argparse.Namespace) -> int:
    return run_loop(_test(options, Screen()))


async def _test(options: argparse.Namespace, screen: Screen) -> int:
    async with looking(find(options.config), screen) as seen:
        schemas = {tool["name"]: tool.get("inputSchema") for tool in await seen.client.list_tools()}
        try:
            arguments = dict(read_pair(pair, schemas.get(options.tool)) for pair in options.pairs)
        except ValueError as problem:
            screen.note(f"error: {problem}")
            return UNEXPECTED
        told = await judge(seen, options.tool, arguments, options.client)
        if options.json:
            screen.json(told)
        else:
            screen.say(" ".join(str(part) for part in told.values() if part))
        return OK if told["decision"] == "allowed" else DENIED


async def judge(seen: Looking, tool: str, arguments: dict[str, object], identity: str) -> dict[str, object]:
    """The verdict of the guards: which one, and why."""
    params = {"name": as_raw(tool), "arguments": as_raw(arguments)}
    exchange = Exchange(b"0", "tools/call", params, tool, Pretender(identity))
    await seen.compositor.resolver.resolve(exchange)
    if exchange.destination is None:
        return {
            "decision": "unknown",
            "tool": tool,
            "rule": "",
            "reason": "hidden from this client, or not there",
        }

    async def would_call(_: Exchange) -> Reply:
        return ALLOWED

    reply = await compose(arrange(seen.guards), would_call)(exchange)
    if reply is ALLOWED or reply.verdict is None:
        return {"decision": "allowed", "tool": exchange.address, "rule": "", "reason": ""}
    verdict = reply.verdict
    return {
        "decision": verdict.decision,
        "tool": exchange.address,
        "rule": verdict.rule,
        "reason": verdict.reason,
    }
