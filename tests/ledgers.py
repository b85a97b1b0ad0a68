"""Streams of audit records, for tests of what is written and of what is read."""

import json
from datetime import UTC, datetime
from pathlib import Path

from plait.pipeline.audit_records import Intent, Outcome
from plait.pipeline.ledger import SEGMENT_BYTES, Ledger
from plait.pipeline.ledger_check import Report, check
from plait.pipeline.ledger_files import KEY, load_key, segments


def intent(call: int, name: str = "fs__read_file") -> Intent:
    return Intent("tools/call", "intent", call, datetime.now(UTC), 0, name, "anonymous", 2)


def outcome(call: int, name: str = "fs__read_file") -> Outcome:
    return Outcome("tools/call", "outcome", call, datetime.now(UTC), 0, name, "anonymous", "ok", 5)


def write_stream(folder: Path, calls: int, *, close: bool = True, segment_bytes: int = SEGMENT_BYTES) -> str:
    """A stream with so many calls, ended as it should or like one whose process was killed."""
    ledger = Ledger(folder, window=0.0, segment_bytes=segment_bytes)
    for call in range(1, calls + 1):
        ledger.append(intent(call))
        ledger.append(outcome(call))
    if close:
        ledger.close()()
    else:
        ledger._leave()()
    return ledger.stream


def verify(folder: Path) -> Report:
    return check(folder, load_key(folder / KEY))


def records(folder: Path) -> list[dict[str, object]]:
    return [
        json.loads(line)
        for files in segments(folder).values()
        for path in files
        for line in path.read_bytes().splitlines()
    ]


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
