"""Records out of an audit folder, for people and programs: the latest, the new ones, or all of them."""

import heapq
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder

from plait.pipeline.audit_records import Outcome
from plait.pipeline.ledger_files import is_held, segments
from plait.wire.envelope import encode

_BLOCK = 16 * 1024


class Entry(Struct):
    """One record as it was read. Nothing here is checked: `ledger_check` does that."""

    event: str
    ts: datetime
    phase: str = ""
    call: int = 0
    mono: int = 0
    name: str = ""
    identity: str = ""
    server: str = ""
    outcome: str = ""
    duration_us: int = 0
    rule: str = ""
    code: int = 0
    fault: str = ""
    lost: int = 0
    reason: str = ""
    stream: str = ""
    line: bytes = b""
    """What it was read from, with the name of its stream added."""


class Unreadable(Struct):
    """A line that is no record."""

    stream: str
    line: bytes


_decode = Decoder(Entry).decode


def read(stream: str, line: bytes) -> Entry | Unreadable:
    try:
        entry = _decode(line)
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return Unreadable(stream, line)
    entry.stream = stream
    entry.line = b'{"stream":"%b",%b' % (stream.encode(), line.strip()[1:])
    return entry


def unknown(intent: Entry) -> Entry:
    """What is said of a call whose process died before its end was recorded."""
    made = Outcome(
        intent.event, "outcome", intent.call, intent.ts, intent.mono, intent.name, intent.identity,
        "unknown", 0, server=intent.server,
    )  # fmt: skip
    entry = read(intent.stream, encode(made))
    assert isinstance(entry, Entry)
    return entry


# ---- all of them


def history(folder: Path) -> Iterator[Entry | Unreadable]:
    """Every record, stream by stream; calls that were left open end as unknown."""
    for stream, files in segments(folder).items():
        running = is_held(files[0])
        pending: dict[int, Entry] = {}
        for path in files:
            with path.open("rb") as file:
                for line in file:
                    if not line.endswith(b"\n"):
                        break  # being written, or never finished
                    entry = read(stream, line)
                    _track(pending, entry)
                    yield entry
        if not running:
            yield from (unknown(intent) for intent in pending.values())


def _track(pending: dict[int, Entry], entry: Entry | Unreadable) -> None:
    if isinstance(entry, Entry) and entry.phase == "intent":
        pending[entry.call] = entry
    elif isinstance(entry, Entry) and entry.phase == "outcome":
        pending.pop(entry.call, None)


# ---- the latest


def sizes(folder: Path) -> dict[Path, int]:
    """How long every file is at this moment."""
    return {path: path.stat().st_size for files in segments(folder).values() for path in files}


def latest(folder: Path, upto: dict[Path, int]) -> Iterator[Entry]:
    """Records from the newest to the oldest, over all streams, of files no longer than that."""
    streams = [_backwards(stream, files, upto) for stream, files in segments(folder).items()]
    return heapq.merge(*streams, key=lambda entry: entry.ts, reverse=True)


def _backwards(stream: str, files: Iterable[Path], upto: dict[Path, int]) -> Iterator[Entry]:
    for path in reversed(list(files)):
        for line in _lines_backwards(path, upto.get(path, 0)):
            entry = read(stream, line)
            if isinstance(entry, Entry):
                yield entry


def _lines_backwards(path: Path, end: int) -> Iterator[bytes]:
    """Opened for each block only: there may be more streams than a process may have files open."""
    rest = b""
    while end > 0:
        start = max(0, end - _BLOCK)
        with path.open("rb") as file:
            file.seek(start)
            block = file.read(end - start) + rest
        rest, *lines = block.split(b"\n")
        yield from (line for line in reversed(lines) if line)
        end = start
    if rest:
        yield rest


# ---- the new ones


def news(folder: Path, seen: dict[Path, int]) -> Iterator[Entry]:
    """Complete records behind what was seen; `seen` is moved on."""
    for stream, files in segments(folder).items():
        for path in files:
            start = seen.get(path, 0)
            if path.stat().st_size <= start:
                continue
            with path.open("rb") as file:
                file.seek(start)
                whole = file.read().rpartition(b"\n")[0]
            seen[path] = start + len(whole) + bool(whole)
            found = (read(stream, line) for line in whole.split(b"\n") if line)
            yield from (entry for entry in found if isinstance(entry, Entry))
