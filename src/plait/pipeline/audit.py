"""AuditLog: before a call it is written down that it will be made, and afterwards what became of it.

It is the outermost layer, so what a guard refuses is recorded too. The first record is in the file
before the call goes on; a process that dies in between leaves a call whose outcome is unknown, and that
is what readers say of it.
"""

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder

from plait.pipeline.audit_arguments import NONE, Describer
from plait.pipeline.audit_outcomes import Call, name_of, outcome, outcome_of
from plait.pipeline.audit_records import Intent, Outcome
from plait.pipeline.compose import Stage
from plait.pipeline.ledger import SEGMENT_BYTES, Ledger
from plait.pipeline.ledger_chain import Key
from plait.pipeline.ledger_files import Write
from plait.pipeline.redaction import redact_text
from plait.session.exchange import Caller, Exchange, Handler, Reply, Verdict, refuse
from plait.wire.content import error_result
from plait.wire.envelope import Fields
from plait.wire.spec import INTERNAL_ERROR

METHODS = ("tools/call", "prompts/get", "resources/read")
"""What is recorded: whatever makes a server do something or give something out."""

Mode = Literal["best_effort", "strict"]
SecretParameters = Callable[[str], Collection[str]]
"""From a tool's exposed name to those of its parameters whose schema says that they are secret."""

GROUP_WINDOW = 0.05
"""Seconds that records may wait for company on their way to the disk; strict mode does not wait."""

_UNRECORDED = Verdict("denied", "audit", "the call could not be recorded")


class Book(Protocol):
    """Where records go."""

    @property
    def key(self) -> Key: ...
    def append(self, record: Struct) -> int:
        """Write it and return its number, or raise OSError."""

    def defer(self, record: Struct) -> None:
        """Write it down soon."""

    def lose(self, problem: OSError) -> None:
        """A record could not be written."""

    async def durable(self, seq: int) -> None:
        """Wait until it would survive a power failure, or raise OSError."""

    def close(self) -> Callable[[], None]:
        """The last record. What is returned waits for the disk: call it in a thread."""


class Memory:
    """The latest records, kept as long as this object."""

    def __init__(self, capacity: int) -> None:
        self.records: deque[Intent | Outcome] = deque(maxlen=capacity)
        self.key = Key(os.urandom(32))

    def append(self, record: Struct) -> int:
        assert isinstance(record, Intent | Outcome)
        self.records.append(record)
        return 0

    def defer(self, record: Struct) -> None:
        self.append(record)

    def lose(self, problem: OSError) -> None:
        """Memory is never full: old records make room."""

    async def durable(self, seq: int) -> None:
        """As durable as it gets."""

    def close(self) -> Callable[[], None]:
        return lambda: None


class AuditLog:
    """A layer. Without a folder the latest records are kept in `records`; with one they are in files."""

    stage = Stage.AUDIT

    def __init__(
        self,
        directory: Path | None = None,
        mode: Mode = "best_effort",
        *,
        summaries: bool = False,
        secret_parameters: SecretParameters | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        capacity: int = 10_000,
        write: Write = os.write,
    ) -> None:
        """`summaries`: also record the first 200 bytes of the arguments, redacted."""
        self.mode = mode
        self.records: deque[Intent | Outcome] = deque()
        if directory is None:
            memory = Memory(capacity)
            self.records = memory.records
            self._book: Book = memory
        else:
            window = 0.0 if mode == "strict" else GROUP_WINDOW
            self._book = Ledger(directory, window=window, segment_bytes=segment_bytes, write=write)
        self._strict = mode == "strict"
        self._calls = 0
        self._describer = Describer(summaries)
        self._secret_parameters = secret_parameters
        self._info: Fields = {}
        self._client = "", ""

    def __repr__(self) -> str:
        return f"<AuditLog {self.mode}: {self._book!r}>"

    async def __call__(self, exchange: Exchange, call_next: Handler) -> Reply:
        if exchange.method not in METHODS:
            return await call_next(exchange)
        self._calls += 1
        call = Call(exchange, self._calls, time.monotonic_ns(), name_of(exchange))
        try:
            seq = self._book.append(self._intent(call))
        except OSError as problem:
            self._book.lose(problem)
            if self._strict:
                return _unrecorded(exchange, problem)
            seq = 0
        try:
            reply = await (self._pass(exchange, call_next, seq) if self._strict else call_next(exchange))
        except asyncio.CancelledError:
            self._record(outcome(call, "cancelled"))
            raise
        except BaseException as problem:
            self._record(outcome(call, "error", type(problem).__name__))
            raise
        self._record(outcome_of(call, reply))
        return reply

    async def aclose(self) -> None:
        """Nothing more comes: write that, and bring everything to the disk."""
        await asyncio.to_thread(self._book.close())

    async def _pass(self, exchange: Exchange, call_next: Handler, seq: int) -> Reply:
        """Strict: the disk first."""
        try:
            await self._book.durable(seq)
        except OSError as problem:
            return _unrecorded(exchange, problem)
        return await call_next(exchange)

    def _record(self, outcome: Outcome) -> None:
        """The call was made: in strict mode, too, its answer is given even if this cannot be written."""
        try:
            if self._strict:
                self._book.append(outcome)
            else:
                self._book.defer(outcome)
        except OSError as problem:
            self._book.lose(problem)

    def _intent(self, call: Call) -> Intent:
        exchange = call.exchange
        arguments = exchange.params.get("arguments")
        about = NONE
        if arguments is not None:
            secret = exchange.destination.recorded if exchange.destination is not None else None
            whole = secret is not None
            if secret is None:
                secret = self._secret_parameters(exchange.address) if self._secret_parameters else ()
            about = self._describer.describe(self._book.key, arguments, secret, whole)
        caller = exchange.caller
        client, version = self._client_of(caller)
        return Intent(
            exchange.method,
            "intent",
            call.number,
            datetime.now(UTC),
            call.started,
            call.name,
            caller.identity,
            sum(map(len, exchange.params.values())),
            exchange.destination.server if exchange.destination is not None else "",
            "string" if exchange.id[:1] == b'"' else "integer",
            client,
            version,
            caller.revision,
            about.shape,
            about.digest,
            about.digest_of,
            about.summary,
            about.redacted,
        )

    def _client_of(self, caller: Caller) -> tuple[str, str]:
        """What the client calls itself, if it has said so. Most often it is the one that asked last."""
        info: Fields | None = getattr(caller, "client_info", None)
        if not info:
            return "", ""
        if info is not self._info:
            self._info, self._client = info, (_said(info, "name"), _said(info, "version"))
        return self._client


_read_text = Decoder(str).decode


def _said(info: Fields, key: str) -> str:
    try:
        return redact_text(_read_text(info[key])[:100])[0]
    except (KeyError, MsgspecError, UnicodeDecodeError):
        return ""


def _unrecorded(exchange: Exchange, problem: OSError) -> Reply:
    """Strict mode: what cannot be recorded is not done."""
    why = problem.strerror or type(problem).__name__
    text = (
        f"denied[A001]: {exchange.address} was not called: the audit log cannot be written ({why})\n"
        "   = audit.mode is strict; make room on its disk, or see: plait audit verify"
    )
    if exchange.method == "tools/call":
        return Reply(result=error_result(text), verdict=_UNRECORDED)
    reply = refuse(INTERNAL_ERROR, text)
    reply.verdict = _UNRECORDED
    return reply
