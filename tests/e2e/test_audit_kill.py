"""The audit of a process that is killed at any moment, or whose disk is full (fault matrix, rows 32, 46)."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from plait.pipeline.ledger_check import Report, check
from plait.pipeline.ledger_files import KEY, load_key
from plait.pipeline.ledger_read import Entry, history

pytestmark = pytest.mark.e2e

WORKER = Path(__file__).with_name("audited.py")
SOURCES = Path(__file__).resolve().parent.parent.parent / "src"


def start(*arguments: str, before: Sequence[str] = ()) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*before, sys.executable, str(WORKER), *arguments],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )


def verify(folder: Path) -> Report:
    return check(folder, load_key(folder / KEY))


class Killed:
    """A process that made calls until it was killed: what it said, and what it recorded."""

    def __init__(self, folder: Path, mode: str, chance: random.Random) -> None:
        with start("endless", str(folder), mode) as process:
            assert process.stdout is not None
            said = b""
            if chance.random() < 0.15:
                # While it starts: before its files are there, or in the middle of making them.
                time.sleep(chance.uniform(0.05, 0.4))
            else:
                said = process.stdout.read(chance.randint(1, 8000))
            process.kill()
            said += process.stdout.read()
        words = [line.split() for line in said.decode().splitlines()]
        self.dispatched = {name for word, name in words if word == "D"}
        self.answered = {name for word, name in words if word == "A"}
        self._mark = f"-{process.pid}-"
        self._strict = mode == "strict"

    def recorded(self, folder: Path) -> list[Entry]:
        found = [entry for entry in history(folder) if self._mark in entry.stream]
        assert all(isinstance(entry, Entry) for entry in found), "a line that is no record"
        return [entry for entry in found if isinstance(entry, Entry)]

    def check(self, folder: Path) -> None:
        entries = self.recorded(folder)
        begun = {entry.name for entry in entries if entry.phase == "intent"}
        ended = {entry.name: entry.outcome for entry in entries if entry.phase == "outcome"}
        assert self.dispatched <= begun, "dispatched, and not recorded"
        assert self.answered <= begun, "acknowledged, and not recorded"
        if self._strict:
            assert self.answered <= {name for name, outcome in ended.items() if outcome == "ok"}
        assert begun == ended.keys(), "whatever was begun has an outcome, were it an unknown one"
        unknown = {name for name, outcome in ended.items() if outcome == "unknown"}
        said = {
            call.name
            for stream in verify(folder).streams
            if self._mark in stream.stream
            for call in stream.open
        }
        assert unknown == said
        # An outcome waits a moment for company: of the calls that were answered last it may be missing.
        assert not self._strict or not unknown & self.answered


@pytest.mark.timeout(900)
def test_no_acknowledged_call_is_missing_and_the_chain_verifies_however_a_process_was_killed(
    tmp_path: Path, loops: int
) -> None:
    runs = 200 * loops // 100
    chance = random.Random("kill")
    unknown = 0
    for run in range(runs):
        # Processes that follow one another share a folder, as they do in life; not all of them, to be quick.
        folder = tmp_path / str(run // 10)
        killed = Killed(folder, chance.choice(["best_effort", "strict"]), chance)
        if not (folder / KEY).exists():
            assert not killed.dispatched
            continue
        report = verify(folder)
        assert report.problems == [], report.problems
        killed.check(folder)
        unknown += sum(len(stream.open) for stream in report.streams)
        assert {stream.state for stream in report.streams} <= {"killed", "empty"}
    assert unknown, "not one of the kills came in the middle of a call"


def test_several_processes_write_to_one_folder_and_are_verified_meanwhile(tmp_path: Path, loops: int) -> None:
    workers = [start("endless", str(tmp_path), mode) for mode in ("best_effort", "strict", "best_effort")]
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.read(2000)
        for _ in range(loops):
            for worker in workers:
                assert worker.stdout is not None
                worker.stdout.read(2000)
            report = verify(tmp_path)
            assert report.problems == [], report.problems
            assert [stream.state for stream in report.streams] == ["running"] * 3
    finally:
        for worker in workers:
            worker.kill()
            with worker:
                worker.wait(30)
    report = verify(tmp_path)
    assert report.problems == []
    assert [stream.state for stream in report.streams] == ["killed"] * 3


def check_full_disk(process: "subprocess.Popen[bytes]", mode: str) -> None:
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 0, output
    *words, last = output.decode().splitlines()
    told = json.loads(last)
    assert told["whole"] is True, "a torn line"
    assert told["again"] is True, "when there is room again, calls are served and recorded again"
    assert told["problems"] == 0
    assert told["lost"] >= 30
    assert told["calls"] > 50
    dispatched = sum(word.startswith("D ") for word in words)
    if mode == "strict":
        assert told["refused"] >= 30
        assert dispatched == told["calls"], "what is not recorded is not called"
    else:
        assert told["refused"] == 0
        assert dispatched > told["calls"]


@pytest.mark.parametrize("mode", ["best_effort", "strict"])
def test_a_file_that_may_not_grow_is_never_torn_and_the_mode_decides(tmp_path: Path, mode: str) -> None:
    check_full_disk(start("filling", str(tmp_path / "audit"), mode), mode)


@pytest.mark.parametrize("mode", ["best_effort", "strict"])
def test_a_full_disk_is_never_torn_and_the_mode_decides(tmp_path: Path, mode: str) -> None:
    """A file system of one mebibyte, in a mount namespace of the process's own."""
    where = tmp_path / "mount"
    where.mkdir()
    script = 'mount -t tmpfs -o size=1m none "$0" && exec "$@"'
    before = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, str(where)]
    if shutil.which("unshare") is None or subprocess.run([*before, "true"], check=False).returncode != 0:
        pytest.skip("no file systems can be mounted here")
    check_full_disk(start("filling", str(where / "audit"), mode, before=before), mode)
