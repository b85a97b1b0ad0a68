"""Read an audit folder: is every stream whole, and what was left open?

Checked are all files against their chains, and the chains against the register. Of each stream the
first place that is wrong is named. Streams that are being written to meanwhile are no problem: the
register is read before the files, so the files have at least what it says.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Literal

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder

from plait.pipeline.ledger_chain import SLOT, START, Key, Link, Slot, first_check, read_slot, unseal
from plait.pipeline.ledger_files import REGISTER, is_held, segments, segments_of

State = Literal["closed", "running", "killed", "empty"]
"""`killed`: its process is gone and has not said goodbye. `empty`: it died before its first record."""


class Problem(Struct):
    """The first thing that is wrong with a stream."""

    file: str
    seq: int
    what: str


class Open(Struct):
    """A call that was begun and whose end is not recorded."""

    call: int
    ts: datetime
    event: str
    name: str
    identity: str = ""
    server: str = ""


class Stream(Struct):
    """What one process wrote."""

    stream: str
    state: State
    records: int = 0
    hash: str = ""
    """Of the last record. Kept elsewhere, it is a witness that this folder was never wound back."""
    calls: int = 0
    lost: int = 0
    open: list[Open] = []
    """Calls without an outcome: unknown, or still going on if the process is running."""
    notes: list[str] = []
    problem: Problem | None = None


class Report(Struct):
    streams: list[Stream]
    problem: Problem | None = None
    """Something wrong with the folder as a whole."""

    @property
    def problems(self) -> list[Problem]:
        first = [] if self.problem is None else [self.problem]
        return first + [stream.problem for stream in self.streams if stream.problem is not None]


class _Fact(Struct):
    """What the check reads of a record."""

    event: str
    phase: str = ""
    call: int = 0
    lost: int = 0
    stream: str = ""
    segment: int = 0
    slot: int = -1
    key: str = ""


_read_fact = Decoder(_Fact).decode
_read_open = Decoder(Open).decode


class _Broken(Exception):
    """The place where a stream stops being what was written."""

    def __init__(self, file: Path, seq: int, what: str) -> None:
        super().__init__(what)
        self.problem = Problem(str(file), seq, what)


def check(folder: Path, key: Key) -> Report:
    """Every stream of the folder, and whatever is wrong."""
    # Entry before file, file before mark: so this order never makes a new stream look foreign.
    before = segments(folder)
    try:
        slots = _read_register(folder / REGISTER)
    except _Broken as broken:
        return Report([], broken.problem)
    found = segments(folder)
    streams = [_examine(folder, key, number, entry) for number, entry in enumerate(slots)]
    for stream in found.keys() - {entry.stream for entry in slots}:
        if stream in before:
            problem = Problem(str(before[stream][0]), 1, f"stream {stream} is not in the register")
            streams.append(Stream(stream, "killed", problem=problem))
    return Report(streams)


def _examine(folder: Path, key: Key, number: int, entry: Slot) -> Stream:
    stream = _Check(folder, key, number, entry).run()
    if stream.problem is not None:
        # An entry that is written at this very moment may be seen half way; it is not so twice.
        again = _read_entry(folder / REGISTER, number)
        stream = stream if again is None else _Check(folder, key, number, again).run()
    return stream


def _read_register(path: Path) -> list[Slot]:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return []
    slots: dict[str, Slot] = {}
    for number in range(-(-size // SLOT)):
        entry = _read_entry(path, number) or _read_entry(path, number)
        if entry is None or entry.stream in slots:
            raise _Broken(path, 0, f"entry {number} of the register was altered")
        slots[entry.stream] = entry
    return list(slots.values())


def _read_entry(path: Path, number: int) -> Slot | None:
    with path.open("rb") as file:
        file.seek(number * SLOT)
        return read_slot(file.read(SLOT))


class _Check:
    """One stream, line by line."""

    def __init__(self, folder: Path, key: Key, number: int, entry: Slot) -> None:
        self._key = key
        self._number = number
        self._entry = entry
        self._files: list[Path] = []
        self._register = folder / REGISTER
        self._open: dict[int, bytes] = {}
        self._last = Link(0, "", START, first_check(key, entry.stream))
        self._confirmed = self._last.check if entry.seq == 0 else b""
        self._closed = False
        self.stream = Stream(entry.stream, "empty")

    def run(self) -> Stream:
        stream = self.stream
        try:
            # Asked before the files are listed: a stream that had ended then is complete now.
            running = any(map(is_held, self._list()[:1]))
            self._files = self._list()
            self._read_files(running)
            stream.state = "closed" if self._closed else "running" if running else "killed"
            self._compare()
        except _Broken as broken:
            stream.problem = broken.problem
        stream.records = self._last.seq
        stream.hash = self._last.hash.decode()
        stream.open = [_read_open(line) for line in self._open.values()]
        if not self._files and stream.problem is None:
            stream.state = "empty"
        return stream

    def _list(self) -> list[Path]:
        return segments_of(self._register.parent, self._entry.stream)

    def _read_files(self, running: bool) -> None:
        for segment, path in enumerate(self._files, 1):
            last = segment == len(self._files)
            for index, line in enumerate(_lines(path)):
                if not line.endswith(b"\n") and last and self._tolerable(line, running):
                    break
                fact = self._read_line(path, line)
                if index == 0:
                    self._check_head(path, segment, fact)

    def _tolerable(self, line: bytes, running: bool) -> bool:
        """An unfinished last line: being written, or cut short when its process was killed."""
        expected = b'{"v":1,"seq":%d,"prev":"%b",' % (self._last.seq + 1, self._last.hash)
        plausible = expected.startswith(line[: len(expected)]) and not self._closed
        if plausible and not running:
            self.stream.notes.append(f"the last line was never finished ({len(line)} bytes)")
        return plausible

    def _read_line(self, path: Path, line: bytes) -> _Fact:
        seq = self._last.seq + 1
        if seq == 1:
            self._check_key(path, line)
        link = unseal(self._key, line)
        if link is None:
            raise _Broken(path, seq, "this record was altered")
        if link.seq != seq or link.prev.encode() != self._last.hash:
            raise _Broken(path, seq, f"this record is missing; number {link.seq} stands in its place")
        if self._closed:
            raise _Broken(path, seq, "a record after the end of its stream")
        self._last = link
        if link.seq == self._entry.seq:
            self._confirmed = link.check
        fact = _read_fact(line)
        self._count(fact, line)
        return fact

    def _count(self, fact: _Fact, line: bytes) -> None:
        if fact.phase == "intent":
            self.stream.calls += 1
            self._open[fact.call] = line
        elif fact.phase == "outcome":
            self._open.pop(fact.call, None)
        elif fact.event == "gap":
            self.stream.lost += fact.lost
        elif fact.event == "closed":
            self._closed = True

    def _check_key(self, path: Path, line: bytes) -> None:
        try:
            written_with = _read_fact(line).key
        except (MsgspecError, UnicodeDecodeError, RecursionError):
            return
        if written_with and written_with != self._key.id:
            raise _Broken(path, 1, f"written with the key {written_with}; this key is {self._key.id}")

    def _check_head(self, path: Path, segment: int, fact: _Fact) -> None:
        expected = ("opened" if segment == 1 else "continued", self._entry.stream, segment, self._number)
        if (fact.event, fact.stream, fact.segment, fact.slot) != expected:
            what = "this file, or its entry in the register, was put in another's place"
            raise _Broken(path, self._last.seq, what)

    def _compare(self) -> None:
        """The chain with what the register says of it."""
        entry, last = self._entry, self._last.seq
        if entry.seq > last:
            file = self._files[-1] if self._files else self._register
            what = (
                f"records are missing: {entry.seq} were written (cut off, or lost with the machine's power)"
            )
            raise _Broken(file, last + 1, what)
        if entry.check.encode() != self._confirmed:
            raise _Broken(self._register, entry.seq, f"the entry of {entry.stream} was altered")
        if entry.seq < last and self._closed:
            raise _Broken(self._register, entry.seq, f"the entry of {entry.stream} was wound back")
        if entry.seq < last and self.stream.state == "killed":
            self.stream.notes.append(f"the register has not got further than {entry.seq}")


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb", buffering=1 << 16) as file:
        yield from file
