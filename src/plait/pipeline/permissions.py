"""Who may see and call what."""

from collections.abc import Mapping, Sequence

from msgspec import MsgspecError
from msgspec.json import decode

from plait.pipeline.compose import Stage
from plait.pipeline.rules import Rules, Subject, subject_of
from plait.session.exchange import Caller, Exchange, Handler, Reply, Verdict, refuse
from plait.wire.address import as_raw
from plait.wire.content import error_result
from plait.wire.spec import INVALID_PARAMS

HIDDEN = Verdict("denied", "permissions", "hidden from this caller")


class PermissionFilter:
    """What a caller may never call it does not see, and a name it does not see is an unknown name.

    The router asks `visible` for lists, lookups and suggestions alike; what is left to this layer is
    the call whose arguments decide.
    """

    stage = Stage.PERMISSIONS

    def __init__(self, allowed_tools: Sequence[str] | None = None, rules: Rules | None = None) -> None:
        self.rules = rules if rules is not None else Rules.of_allowed(allowed_tools)

    @property
    def hides(self) -> bool:
        return bool(self.rules)

    def visible(self, caller: Caller, subject: Subject) -> bool:
        return self.rules.visible(subject, caller.identity)

    async def __call__(self, exchange: Exchange, call_next: Handler) -> Reply:
        if not self.rules:
            return await call_next(exchange)
        if exchange.destination is None:
            return self._noted(exchange, await call_next(exchange))
        arguments: Mapping[str, object] = {}
        if self.rules.conditional and "arguments" in exchange.params:
            try:
                arguments = decode(exchange.params["arguments"], type=dict[str, object] | None) or {}
            except (MsgspecError, RecursionError):
                return refuse(INVALID_PARAMS, f"the 'arguments' of {exchange.method} must be an object")
            # What was judged is what is forwarded: of two equal keys a server might read the other.
            exchange.params["arguments"] = as_raw(arguments)
        decision = self.rules.decide(subject_of(exchange.destination), exchange.caller.identity, arguments)
        if decision.allowed:
            return await call_next(exchange)
        return denied(exchange, Verdict("denied", decision.rule, decision.reason))

    def _noted(self, exchange: Exchange, reply: Reply) -> Reply:
        """The answer is that of an unknown name; the record says that this one would have been hidden."""
        if exchange.address and not self.rules.visible(named(exchange.address), exchange.caller.identity):
            reply.verdict = HIDDEN
        return reply


def named(address: str) -> Subject:
    """What a name would be about, if there were something of that name."""
    left, _, right = address.partition("__")
    return Subject(address, right or left, left if right else "")


def denied(exchange: Exchange, verdict: Verdict) -> Reply:
    """The answer to a call that may not be made."""
    why = f": {verdict.reason}" if verdict.reason else ""
    text = f"denied[P001]: {exchange.address} by {verdict.rule}{why}"
    if exchange.method == "tools/call":
        return Reply(result=error_result(text), verdict=verdict)
    reply = refuse(INVALID_PARAMS, text)
    reply.verdict = verdict
    return reply
