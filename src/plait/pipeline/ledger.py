"""Ledger: records in a file of this process's own, each chained to the one before.

    folder/
      key                     what seals the chain; 0600, made once
      register                one entry per stream: its last number, and a check that is nowhere else
      STREAM.0001.jsonl       a stream is what one process wrote; it has one writer, and
      STREAM.0002.jsonl       a new file whenever the last one is full

A process never writes about another one: what a dead process left open is found by whoever reads
(`ledger_check`), so several plaits share a folder without waiting for one another.
"""

import asyncio
import contextlib
import errno
import logging
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from plait.pipeline.audit_records import Closed, Gap, Opened
from plait.pipeline.ledger_chain import START, Key, slot
from plait.pipeline.ledger_files import (
    Register,
    Tape,
    Write,
    hold,
    make_folder,
    new_stream,
    obtain_key,
    segment_path,
)
from plait.pipeline.ledger_sync import Syncer
from plait.wire.envelope import encode

_log = logging.getLogger("plait.audit")

SEGMENT_BYTES = 64 * 1024 * 1024
MOMENT = 0.005
"""Seconds that a deferred record waits for company."""


class Ledger:
    """Opened by its first record, so that a process that is asked nothing leaves no file."""

    def __init__(
        self,
        folder: Path,
        *,
        window: float,
        segment_bytes: int = SEGMENT_BYTES,
        write: Write = os.write,
    ) -> None:
        self.folder = folder
        self.lost = 0
        """Records that could not be written since the last one that could."""
        self.stream = ""
        self._since = datetime.now(UTC)
        self._reason = ""
        self._window = window
        self._segment_bytes = segment_bytes
        self._write = write
        self._key: Key | None = None
        self._register: Register | None = None
        self._slot = 0
        self._seq = 0
        self._prev = START
        self._check = b""
        self._safe = 0, START, b""
        """Number, hash and check of the last line that was written."""
        self._lines: list[bytes] = []
        """Sealed, and not written yet."""
        self._deferred = 0
        self._timer: asyncio.TimerHandle | None = None
        self._tape: Tape | None = None
        self._held: int | None = None
        self._syncer = Syncer(window)

    def __repr__(self) -> str:
        return f"<Ledger {self.folder} {self.stream or 'not open yet'}>"

    @property
    def key(self) -> Key:
        """Raises OSError if the folder cannot be used."""
        if self._key is None:
            make_folder(self.folder)
            self._key = obtain_key(self.folder)
        return self._key

    def append(self, record: Struct) -> int:
        """Write it and return its number. Raises OSError, and nothing of it is written."""
        tape = self._tape
        if tape is None or tape.size >= self._segment_bytes or self._syncer.failure is not None:
            tape = self._ready()
        lost = self.lost
        if lost:
            self._seal(Gap(*_now(), lost, self._since, self._reason))
        seq = self._seal(record)
        self._flush(tape)
        if lost:
            _log.warning("audit records are written again; %d were lost", lost)
            self.lost -= lost
        if self._timer is None:
            self._catch_up_soon()
        return seq

    def defer(self, record: Struct) -> None:
        """Write it with the next record, or in a moment: what is told afterwards is worth no wait.

        Should we be killed before that, its call's outcome is unknown, and that is what readers say.
        """
        if self._tape is None:
            self._ready()
        self._seal(record)
        self._deferred += 1
        if self._timer is None:
            self._catch_up_soon()

    def _catch_up_soon(self) -> None:
        try:
            self._timer = asyncio.get_running_loop().call_later(MOMENT, self._catch_up)
        except RuntimeError:  # no loop, no moment
            self._catch_up()

    def _catch_up(self) -> None:
        """Write what was deferred, and mark how far we are."""
        self._timer = None
        if self._tape is None:
            return
        with contextlib.suppress(OSError):  # counted as lost
            if self._lines:
                self._flush(self._tape)
        self._mark()

    def lose(self, problem: OSError) -> None:
        """A record could not be written: remember that, for the record that says so."""
        if not self.lost:
            self._since = datetime.now(UTC)
            self._reason = problem.strerror or type(problem).__name__
            _log.error("audit records cannot be written: %s", problem)
        self.lost += 1

    async def durable(self, seq: int) -> None:
        """Wait until the disk has the record of this number. Raises OSError if it cannot."""
        await self._syncer.durable(seq)

    def close(self) -> Callable[[], None]:
        """The last record of this stream. What is returned waits for the disk: call it in a thread."""
        if self._tape is not None:
            with contextlib.suppress(OSError):
                self.append(Closed(*_now()))
            self._mark()
        return self._leave()

    # ---- one line

    def _seal(self, record: Struct) -> int:
        """Chain it to what comes before. It is written by the next `_flush`."""
        try:
            body = encode(record)
        except UnicodeEncodeError:
            raise OSError(errno.EILSEQ, "a name that is no Unicode text") from None
        seq = self._seq + 1
        line, self._prev, self._check = (self._key or self.key).line(seq, self._prev, body)
        self._seq = seq
        self._lines.append(line)
        return seq

    def _flush(self, tape: Tape) -> None:
        """Write everything that is sealed, at once: all of it, or nothing and it was never sealed."""
        lines, self._lines = self._lines, []
        deferred, self._deferred = self._deferred, 0
        try:
            tape.append(lines[0] if len(lines) == 1 else b"".join(lines))
        except OSError as problem:
            self._seq, self._prev, self._check = self._safe
            for _ in range(deferred):
                self.lose(problem)
            raise
        self._safe = self._seq, self._prev, self._check
        self._syncer.written(self._seq)

    def _mark(self) -> None:
        """Note how far we are, apart from the files: then a cut behind that shows."""
        if self._register is None:
            return
        try:
            self._register.mark(self._slot, slot(self.stream, self._seq, self._check))
        except OSError as problem:
            # The records are there, and chained; only a cut right behind them would not show.
            _log.error("the audit register cannot be written: %s", problem)

    # ---- files

    def _ready(self) -> Tape:
        """The tape to write to: the first one, a new one when it is full, or another stream."""
        if self._tape is None:
            return self._open()
        if isinstance(self._syncer.failure, FileNotFoundError):
            # Somebody has removed the file: what is written to it is lost with the process.
            threading.Thread(target=self._leave(), name="plait audit end", daemon=True).start()
            return self._open()
        if self._tape.size >= self._segment_bytes and not self._tape.torn:
            with contextlib.suppress(OSError):  # then the old one grows
                if self._lines:
                    self._flush(self._tape)
                return self._start_tape(self._segment + 1)
        return self._tape

    def _open(self) -> Tape:
        if self._register is None:
            key, register, stream = self.key, Register(self.folder), new_stream()
            try:
                self._slot = register.enter(key, stream)
            except OSError:
                register.close()
                raise
            self._register, self.stream = register, stream
        # The entry comes first: a file that the register does not know was not made by us.
        self._seq, self._prev, self._check = self._safe = 0, START, b""
        self._lines, self._deferred = [], 0
        self._syncer = Syncer(self._window)
        return self._start_tape(1)

    def _start_tape(self, segment: int) -> Tape:
        path = segment_path(self.folder, self.stream, segment)
        with contextlib.ExitStack() as undo:
            tape = Tape(path, self._write)
            undo.callback(path.unlink, missing_ok=True)
            undo.callback(tape.close)
            held = self._held
            if held is None:
                held = hold(path)
                undo.callback(os.close, held)
            event, (ts, mono) = "opened" if segment == 1 else "continued", _now()
            head = Opened(event, ts, mono, self.stream, segment, self._slot, self.key.id, os.getpid())
            self._seal(head)
            self._flush(tape)
            self._mark()
            undo.pop_all()
        self._syncer.use(tape)
        self._tape, self._segment, self._held = tape, segment, held
        return tape

    def _leave(self) -> Callable[[], None]:
        """Nothing more goes to this stream: the next record, should there be one, begins another."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        syncer, register, held = self._syncer, self._register, self._held
        self._tape = self._register = self._key = self._held = None

        def finish() -> None:
            syncer.stop()
            if register is not None:
                with contextlib.suppress(OSError):
                    os.fsync(register.descriptor)
                register.close()
            if held is not None:
                os.close(held)

        return finish


def _now() -> tuple[datetime, int]:
    return datetime.now(UTC), time.monotonic_ns()
