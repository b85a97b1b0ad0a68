"""Commands and URLs that no tool may be given.

A policy is bound to parameters, never chosen by a tool's name: whoever writes a tool names it. By
default a policy covers, on every server, the parameters that are called as below, at any depth; a
configuration can say more or less, and the tool's own schema (`"x-plait-policy": "command" | "url"`)
more. It is a guard rail: what a server really does with an argument only its own sandbox can bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import MsgspecError, Struct
from msgspec.json import decode

from plait.outbound.urls import Refusal as UrlRefusal
from plait.outbound.urls import UrlPolicy
from plait.pipeline.commands import CommandPolicy, Refusal
from plait.pipeline.compose import Stage
from plait.session.exchange import Exchange, Handler, Reply, Verdict, refuse
from plait.wire.address import as_raw
from plait.wire.content import error_result
from plait.wire.spec import INVALID_PARAMS

COVERED = {
    **dict.fromkeys(("command", "cmd", "argv", "script"), "command"),
    **dict.fromkeys(("url", "uri", "endpoint"), "url"),
}
DEEPEST = 64


class Denied(Exception):
    """An argument that the policy refuses."""

    def __init__(self, parameter: str, rule: str, reason: str) -> None:
        super().__init__(reason)
        self.parameter = parameter
        self.rule = rule


class Binding(Struct, frozen=True):
    """Which parameters of which tools are what; the first that fits counts."""

    tool: str
    """A pattern on exposed names."""
    parameter: str
    kind: str
    """`command`, `url` or `none`."""


class SecurityGuard:
    """Judges commands and URLs in the arguments of calls; what was judged is what is forwarded."""

    stage = Stage.SECURITY

    def __init__(
        self,
        command_policy: CommandPolicy | None = None,
        url_policy: UrlPolicy | None = None,
        *,
        commands_of: Sequence[str] | None = None,
        urls_of: Sequence[str] | None = None,
        bindings: Sequence[Binding] = (),
    ) -> None:
        """`commands_of`, `urls_of`: the prefixes of the servers that a policy covers; None is all of them."""
        self._commands = command_policy
        self._urls = url_policy
        self._commands_of = commands_of
        self._urls_of = urls_of
        self._bindings = tuple(bindings)

    async def __call__(self, exchange: Exchange, call_next: Handler) -> Reply:
        destination = exchange.destination
        if exchange.method != "tools/call" or destination is None:
            return await call_next(exchange)
        covered = self.covered(destination.server)
        if not covered:
            return await call_next(exchange)
        try:
            arguments = decode(exchange.params.get("arguments", b"{}"), type=dict[str, object] | None) or {}
        except (MsgspecError, RecursionError):
            return refuse(INVALID_PARAMS, "the 'arguments' of tools/call must be an object")
        # A server may name more of its parameters; what a user covers it cannot take out again.
        declared = {name: kind for name, kind in destination.declared().items() if kind in ("command", "url")}
        judging = _Judging(self, exchange.address, covered, {**COVERED, **declared})
        try:
            exchange.params["arguments"] = as_raw(await judging.fields(arguments, "", 0))
        except Denied as denied:
            return _refusal(exchange.address, denied)
        return await call_next(exchange)

    def covered(self, server: str) -> frozenset[str]:
        """Which kinds of arguments are judged on this server."""
        commands = self._commands is not None and (self._commands_of is None or server in self._commands_of)
        urls = self._urls is not None and (self._urls_of is None or server in self._urls_of)
        return frozenset(kind for kind, judged in (("command", commands), ("url", urls)) if judged)

    def kind(self, tool: str, parameter: str, kinds: Mapping[str, str]) -> str:
        for binding in self._bindings:
            if fnmatchcase(tool, binding.tool) and fnmatchcase(parameter, binding.parameter):
                return binding.kind
        return kinds.get(parameter.lower(), "none")

    def judge_command(self, place: str, value: object, siblings: Mapping[str, object]) -> None:
        """A text, or a list of words; a program with its arguments beside it is one command."""
        assert self._commands is not None
        beside = siblings.get("args")
        command: object = value
        if isinstance(value, str) and isinstance(beside, list) and beside:
            command = [value, *beside]
        if isinstance(command, list) and not all(isinstance(word, str) for word in command):
            raise Denied(place, "command", "a command is a text or a list of texts")
        if not isinstance(command, str | list):
            raise Denied(place, "command", "a command is a text or a list of texts")
        verdict = self._commands.judge(command)
        if isinstance(verdict, Refusal):
            raise Denied(place, verdict.rule, f"command rejected: {verdict.reason}")

    async def judge_url(self, place: str, value: object) -> object:
        if isinstance(value, list):
            return [await self.judge_url(place, each) for each in value]
        if not isinstance(value, str):
            raise Denied(place, "url", "URL rejected: a URL is a text")
        assert self._urls is not None
        verdict = await self._urls.judge_resolved(value)
        if isinstance(verdict, UrlRefusal):
            raise Denied(place, verdict.rule, f"URL rejected: {verdict.reason}")
        return verdict.url


class _Judging:
    """One call's arguments, judged at every depth."""

    def __init__(
        self, guard: SecurityGuard, tool: str, covered: frozenset[str], kinds: Mapping[str, str]
    ) -> None:
        self._guard = guard
        self._tool = tool
        self._covered = covered
        self._kinds = kinds

    async def fields(self, value: Mapping[str, object], path: str, depth: int) -> dict[str, object]:
        """The same object, as it may be forwarded."""
        judged: dict[str, object] = {}
        for name, inner in value.items():
            place = f"{path}.{name}" if path else name
            kind = self._guard.kind(self._tool, name, self._kinds)
            if kind not in self._covered or inner is None:
                judged[name] = await self._inside(inner, place, depth + 1)
            elif kind == "command":
                self._guard.judge_command(place, inner, value)
                judged[name] = inner
            else:
                judged[name] = await self._guard.judge_url(place, inner)
        return judged

    async def _inside(self, value: object, path: str, depth: int) -> object:
        if not isinstance(value, dict | list):
            return value
        if depth > DEEPEST:
            raise Denied(path, "depth", f"arguments nested deeper than {DEEPEST} are not judged")
        if isinstance(value, dict):
            return await self.fields(value, path, depth)
        return [await self._inside(each, path, depth + 1) for each in value]


def _refusal(tool: str, denied: Denied) -> Reply:
    text = f"denied[P002]: permission denied for tool '{tool}': {denied}\n  = argument {denied.parameter}"
    return Reply(result=error_result(text), verdict=Verdict("denied", denied.rule, str(denied)))
