"""What became of a call, read off its reply without decoding what it carries."""

import time
from datetime import UTC, datetime

from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType, field
from msgspec.json import Decoder

from plait.pipeline.audit_records import Outcome, Outcomes
from plait.pipeline.redaction import redact_uri
from plait.session.exchange import Exchange, Reply
from plait.wire.content import FAULT

_MAX_NAME = 256
_MAX_URI = 8192
_MAX_KIND = 20


class Call(Struct, gc=False):
    """A call while it is made."""

    exchange: Exchange
    number: int
    started: int
    name: str


def name_of(exchange: Exchange) -> str:
    """The exposed name as it came, or the URI of a resource without its secrets."""
    if exchange.method == "resources/read":
        return redact_uri(exchange.address[:_MAX_URI])[0][:_MAX_NAME]
    return exchange.address[:_MAX_NAME]


class _Result(Struct, gc=False):
    """What says whether a tool failed. The rest of the result is passed over, not decoded."""

    is_error: Raw | UnsetType = field(default=UNSET, name="isError")
    meta: Raw | UnsetType = field(default=UNSET, name="_meta")


class _Fault(Struct, gc=False):
    kind: str = ""


class _Meta(Struct, gc=False):
    fault: _Fault = field(default_factory=_Fault, name=FAULT)


class _Error(Struct, gc=False):
    code: int = 0


class _ErrorData(Struct, gc=False):
    data: _Fault = field(default_factory=_Fault)


_read_result = Decoder(_Result).decode
_read_meta = Decoder(_Meta).decode
_read_error = Decoder(_Error).decode
_read_error_data = Decoder(_ErrorData).decode
_UNREADABLE = (MsgspecError, UnicodeDecodeError, RecursionError)


def outcome_of(call: Call, reply: Reply) -> Outcome:
    """For the record, from the reply."""
    verdict, error, result = reply.verdict, reply.error, reply.result
    if error is not None:
        made = outcome(call, "error")
        made.code, made.fault = _code_of(error)
        made.bytes_out = len(error)
    else:
        fault = _tool_fault(result) if call.exchange.method == "tools/call" and result is not None else None
        made = outcome(call, "ok") if fault is None else outcome(call, "tool_error", fault)
        made.bytes_out = 0 if result is None else len(result)
    if verdict is not None:
        made.decision, made.rule = verdict.decision, verdict.rule[:_MAX_NAME]
        if verdict.decision == "denied":
            made.outcome = "denied"
    return made


def outcome(call: Call, what: Outcomes, fault: str = "") -> Outcome:
    now = time.monotonic_ns()
    exchange = call.exchange
    return Outcome(
        exchange.method,
        "outcome",
        call.number,
        datetime.now(UTC),
        now,
        call.name,
        exchange.caller.identity,
        what,
        (now - call.started) // 1000,
        server=exchange.destination.server if exchange.destination is not None else "",
        fault=fault,
    )


def _tool_fault(result: Raw) -> str | None:
    """None if the tool did what it was asked; else what kind of fault it was, if that is known."""
    try:
        read = _read_result(result)
    except _UNREADABLE:
        return None
    if isinstance(read.is_error, UnsetType) or bytes(read.is_error) != b"true":
        return None
    if isinstance(read.meta, UnsetType):
        return ""
    try:
        return _known(_read_meta(read.meta).fault.kind)
    except _UNREADABLE:
        return ""


def _code_of(error: Raw) -> tuple[int, str]:
    try:
        code = _read_error(error).code
    except _UNREADABLE:
        return 0, ""
    try:
        return code, _known(_read_error_data(error).data.kind)
    except _UNREADABLE:
        return code, ""


def _known(kind: str) -> str:
    """A server may write anything there, so only what could be one of our words is kept."""
    return kind if len(kind) <= _MAX_KIND and kind.isidentifier() else ""
