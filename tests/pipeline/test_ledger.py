"""Files that are whole whatever happens to them, and that show it when somebody has been at them."""

import asyncio
import errno
import hashlib
import hmac
import itertools
import json
import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgers import flipped, intent, outcome, records, verify, write_stream
from plait.pipeline.ledger import Ledger
from plait.pipeline.ledger_chain import SLOT, START, Key, read_slot, slot, unseal
from plait.pipeline.ledger_check import check
from plait.pipeline.ledger_files import KEY, REGISTER, audit_folder, load_key, obtain_key, segments

SECRET = bytes(range(32))


# ---- the chain


def test_a_key_seals_with_hmac_sha256() -> None:
    purpose = hmac.digest(SECRET, b"plait audit: chain", "sha256")
    expected = hmac.new(purpose, b"body", hashlib.sha256).hexdigest().encode()
    assert Key(SECRET).seal(b"body") == (expected[:32], expected[32:])


def test_a_sealed_line_is_json_and_says_where_it_stands() -> None:
    line, hash, check = Key(SECRET).line(7, START, b'{"event":"x"}')
    assert json.loads(line) == {"v": 1, "seq": 7, "prev": START.decode(), "event": "x", "hash": hash.decode()}
    link = unseal(Key(SECRET), line)
    assert link is not None
    assert (link.seq, link.prev, link.hash, link.check) == (7, START.decode(), hash, check)
    assert check not in line, "what confirms the end of a file is not in the file"


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_nothing_that_was_not_sealed_is_taken_for_it(data: bytes) -> None:
    assert unseal(Key(SECRET), data) is None
    assert read_slot(data) is None


def test_every_flipped_bit_of_a_line_or_an_entry_shows() -> None:
    key = Key(SECRET)
    line, _, check = key.line(7, START, b'{"event":"x"}')
    entry = slot("stream", 7, check)
    for index in range(len(line) * 8):
        assert unseal(key, flipped(line, index)) is None
    for index in range(len(entry) * 8):
        found = read_slot(flipped(entry, index))
        assert found is None or (found.stream, found.seq, found.check.encode()) != ("stream", 7, check)


def test_an_entry_of_the_register_never_crosses_a_page() -> None:
    longest = slot("20260315T101112123456Z-4194304-a1b2c3d4", 10**15, START)
    assert len(longest) == SLOT
    assert 4096 % SLOT == 0


def test_a_keys_representation_does_not_show_it() -> None:
    assert SECRET.hex() not in repr(Key(SECRET))
    assert repr(Key(SECRET)) == f"<Key {Key(SECRET).id}>"


# ---- writing


def test_each_record_holds_the_hash_of_the_one_before(tmp_path: Path) -> None:
    write_stream(tmp_path, 3)
    found = records(tmp_path)
    assert [record["seq"] for record in found] == list(range(1, 9))
    assert [record["prev"] for record in found[1:]] == [record["hash"] for record in found[:-1]]
    assert found[0]["event"] == "opened"
    assert found[-1]["event"] == "closed"
    [stream] = verify(tmp_path).streams
    assert (stream.state, stream.records, stream.calls, stream.problem) == ("closed", 8, 3, None)
    assert stream.hash == found[-1]["hash"]


def test_only_the_owner_can_read_anything(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "audit"
    write_stream(folder, 1)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_a_process_that_records_nothing_leaves_no_file(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "audit", window=0.0)
    ledger.close()()
    assert not (tmp_path / "audit").exists()


def test_all_who_come_at_once_get_the_same_key(tmp_path: Path) -> None:
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        with ThreadPoolExecutor(8) as pool:
            keys = set(pool.map(lambda _, where=folder: obtain_key(where).id, range(8)))
        assert len(keys) == 1
        assert [path.name for path in folder.iterdir()] == [KEY], "no draft is left behind"


def test_all_who_come_at_once_get_an_entry_each(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        streams = set(pool.map(lambda _: write_stream(tmp_path, 2), range(40)))
    report = verify(tmp_path)
    assert report.problems == []
    assert {stream.stream for stream in report.streams} == streams
    assert len(streams) == 40


def test_a_key_file_that_holds_no_key_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / KEY).write_text("not a key")
    with pytest.raises(OSError, match="no audit key"):
        write_stream(tmp_path, 1)


def test_a_key_that_others_can_read_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    obtain_key(tmp_path)
    (tmp_path / KEY).chmod(0o644)
    load_key(tmp_path / KEY)
    assert "can be read by others" in caplog.text


def test_a_full_file_is_followed_by_another_that_goes_on_with_its_chain(tmp_path: Path) -> None:
    stream = write_stream(tmp_path, 20, segment_bytes=2000)
    files = segments(tmp_path)[stream]
    assert len(files) > 3
    for before, after in itertools.pairwise(files):
        last = json.loads(before.read_bytes().splitlines()[-1])
        head = json.loads(after.read_bytes().splitlines()[0])
        assert head["event"] == "continued"
        assert (head["prev"], head["seq"]) == (last["hash"], last["seq"] + 1)
    assert verify(tmp_path).problems == []


def test_the_folder_is_where_state_belongs() -> None:
    assert audit_folder({"XDG_STATE_HOME": "/s"}) == Path("/s/plait/audit")
    assert audit_folder({"HOME": "/h"}) == Path("/h/.local/state/plait/audit")


# ---- disks that are full, slow or gone


class Disk:
    """`os.write` as a disk may do it: all, a part, or not."""

    def __init__(self, script: Iterator[float | None]) -> None:
        self._script = script

    def __call__(self, descriptor: int, data: bytes) -> int:
        part = next(self._script, 1.0)
        if part is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.write(descriptor, data[: max(1, int(len(data) * part))])


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from([1.0, 0.5, 0.01, 0.99, None]), max_size=60))
def test_no_line_is_ever_torn(tmp_path_factory: pytest.TempPathFactory, script: list[float | None]) -> None:
    folder = tmp_path_factory.mktemp("disk")
    ledger = Ledger(folder, window=0.0, segment_bytes=1500, write=Disk(iter(script)))
    lost = 0
    for call in range(1, 15):
        for record in (intent(call), outcome(call)):
            try:
                ledger.append(record)
            except OSError as problem:
                ledger.lose(problem)
                lost += 1
            for path in folder.glob("*.jsonl"):
                assert path.read_bytes()[-1:] in (b"", b"\n")
    while ledger.lost:
        try:
            ledger.append(intent(99))
        except OSError as problem:
            ledger.lose(problem)
            lost += 1
    ledger.close()()
    [stream] = verify(folder).streams
    assert stream.problem is None
    assert stream.lost == lost, "what could not be written is counted in records that say so"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_gap_is_recorded_as_soon_as_there_is_room(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        targets: list[int] = []
        ledger = Ledger(
            tmp_path, window=0.0, write=lambda own, data: os.write(targets[0] if targets else own, data)
        )
        ledger.append(intent(1))
        targets.append(full)
        for call in range(2, 5):
            with pytest.raises(OSError, match="No space left") as failed:
                ledger.append(intent(call))
            ledger.lose(failed.value)
        targets.clear()
        ledger.append(outcome(1))
        ledger.close()()
    finally:
        os.close(full)
    events = [record.get("phase", record["event"]) for record in records(tmp_path)]
    assert events == ["opened", "intent", "gap", "outcome", "closed"]
    gap = records(tmp_path)[2]
    assert gap["lost"] == 3
    assert gap["reason"] == "No space left on device"
    assert verify(tmp_path).streams[0].lost == 3
    assert caplog.text.count("cannot be written") == 1, "said once, not once per record"


def test_a_part_of_a_line_that_cannot_be_taken_back_is_taken_back_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path, window=0.0, write=Disk(iter([1.0, 1.0, 0.5, None])))
    ledger.append(intent(1))
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", _refuse)
        with pytest.raises(OSError, match="No space left"):
            ledger.append(outcome(1))
    ledger.append(outcome(1))
    ledger.close()()
    assert verify(tmp_path).problems == []


def _refuse(descriptor: int, length: int) -> None:
    raise OSError(errno.EIO, "no")


def test_a_folder_that_cannot_be_made_is_an_error_each_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ledger = Ledger(tmp_path / "file" / "audit", window=0.0)
    for _ in range(2):
        with pytest.raises(OSError, match=r"Not a directory|File exists"):
            ledger.append(intent(1))
    ledger.close()()


def test_a_stream_whose_file_could_not_be_made_is_begun_when_it_can(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, window=0.0, write=Disk(iter([None, None])))
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            ledger.append(intent(1))
    assert list(tmp_path.glob("*.jsonl")) == []
    assert [stream.state for stream in verify(tmp_path).streams] == ["empty"]
    ledger.append(intent(1))
    ledger.close()()
    assert [(stream.state, stream.problem) for stream in verify(tmp_path).streams] == [("closed", None)]


async def test_durable_waits_for_the_disk(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, window=0.0)
    async with asyncio.timeout(30):
        await ledger.durable(ledger.append(intent(1)))
        async with asyncio.TaskGroup() as group:
            for call in range(2, 50):
                group.create_task(ledger.durable(ledger.append(intent(call))))
        await ledger.durable(1)
    ledger.close()()


async def test_a_folder_that_is_removed_is_noticed_and_begun_anew(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    ledger = Ledger(folder, window=0.0)
    async with asyncio.timeout(30):
        await ledger.durable(ledger.append(intent(1)))
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        with pytest.raises(FileNotFoundError, match="removed while in use"):
            await ledger.durable(ledger.append(outcome(1)))
        await ledger.durable(ledger.append(intent(2)))
    ledger.close()()
    assert verify(folder).problems == []
    assert [record.get("call") for record in records(folder)] == [None, 2, None]


# ---- checking


def test_a_call_that_was_left_open_is_unknown(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, window=0.0)
    ledger.append(intent(1, "a"))
    ledger.append(intent(2, "b"))
    ledger.append(outcome(1, "a"))
    assert [stream.state for stream in verify(tmp_path).streams] == ["running"]
    ledger._leave()()
    [stream] = verify(tmp_path).streams
    assert (stream.state, stream.problem) == ("killed", None)
    assert [(call.call, call.name) for call in stream.open] == [(2, "b")]


def test_a_line_that_was_never_finished_is_no_tampering_but_anything_else_at_the_end_is(
    tmp_path: Path,
) -> None:
    stream = write_stream(tmp_path, 2, close=False)
    [path] = segments(tmp_path)[stream]
    whole = path.read_bytes()
    last = json.loads(whole.splitlines()[-1])
    path.write_bytes(whole + b'{"v":1,"seq":%d,"prev":"%b","eve' % (last["seq"] + 1, last["hash"].encode()))
    report = verify(tmp_path)
    assert report.problems == []
    assert report.streams[0].notes == ["the last line was never finished (61 bytes)"]
    path.write_bytes(whole + b"garbage")
    assert [problem.seq for problem in verify(tmp_path).problems] == [last["seq"] + 1]


def test_a_process_that_died_right_after_its_entry_is_no_problem(tmp_path: Path) -> None:
    write_stream(tmp_path, 1)
    Ledger(tmp_path, window=0.0, write=Disk(iter([None])))
    ledger = Ledger(tmp_path, window=0.0, write=Disk(iter([None])))
    with pytest.raises(OSError, match="No space left"):
        ledger.append(intent(1))
    ledger.close()()
    write_stream(tmp_path, 1)
    assert [stream.state for stream in verify(tmp_path).streams] == ["closed", "empty", "closed"]
    assert verify(tmp_path).problems == []


def test_another_key_is_named_as_the_reason(tmp_path: Path) -> None:
    write_stream(tmp_path, 1)
    old = load_key(tmp_path / KEY).id
    (tmp_path / KEY).unlink()
    [problem] = check(tmp_path, obtain_key(tmp_path)).problems
    assert f"written with the key {old}" in problem.what


@pytest.mark.parametrize("fresh", [True, False])
def test_the_first_bad_record_is_named(tmp_path: Path, fresh: bool) -> None:
    stream = write_stream(tmp_path, 5, close=fresh)
    [path] = segments(tmp_path)[stream]
    lines = path.read_bytes().splitlines(keepends=True)
    cases: dict[str, tuple[list[bytes], int]] = {
        "altered": ([*lines[:3], lines[3].replace(b"fs__", b"ft__"), *lines[4:]], 4),
        "missing; number 5": ([*lines[:3], *lines[4:]], 4),
        "missing; number 6": ([*lines[:4], lines[5], lines[4], *lines[6:]], 5),
        "records are missing": (lines[:-1], len(lines)),
    }
    for what, (changed, seq) in cases.items():
        path.write_bytes(b"".join(changed))
        [problem] = verify(tmp_path).problems
        assert what in problem.what
        assert (problem.file, problem.seq) == (str(path), seq)


def test_a_stream_that_is_removed_with_its_entry_shows_by_the_numbers_of_the_others(tmp_path: Path) -> None:
    streams = [write_stream(tmp_path, 2) for _ in range(3)]
    for path in segments(tmp_path)[streams[1]]:
        path.unlink()
    register = tmp_path / REGISTER
    entries = register.read_bytes()
    assert any("are missing" in problem.what for problem in verify(tmp_path).problems)
    register.write_bytes(entries[:SLOT] + entries[2 * SLOT :])
    assert any("another's place" in problem.what for problem in verify(tmp_path).problems)


def test_the_register_cannot_be_wound_back_with_what_is_in_the_files(tmp_path: Path) -> None:
    """Somebody cuts off the end, and writes into the register the hash that the new end has."""
    stream = write_stream(tmp_path, 5)
    [path] = segments(tmp_path)[stream]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-4]))
    last = json.loads(lines[-5])
    (tmp_path / REGISTER).write_bytes(slot(stream, last["seq"], last["hash"].encode()))
    [problem] = verify(tmp_path).problems
    assert "was altered" in problem.what
