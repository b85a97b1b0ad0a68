"""`plait audit` as people and scripts type it."""

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest

from ledgers import intent, outcome, write_stream
from plait.cli import audit
from plait.cli.audit_views import tail
from plait.cli.screen import Screen
from plait.errors import ConfigError
from plait.pipeline.audit_records import Outcome
from plait.pipeline.ledger import Ledger
from plait.pipeline.ledger_files import KEY, segments


def plait(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-c", "--config", action="append", default=[])
    looking = argparse.ArgumentParser(add_help=False)
    looking.add_argument("--json", action="store_true")
    audit.add_parser(parser.add_subparsers(dest="command"), common, looking)
    return audit.run(parser.parse_args(["audit", *arguments]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three processes have been here: one ended well, one was killed, one could not write for a while."""
    write_stream(tmp_path, 2)
    killed = Ledger(tmp_path, window=0.0)
    killed.append(intent(1, "git__push"))
    killed._leave()()
    gaps = Ledger(tmp_path, window=0.0)
    gaps.lose(OSError(28, "No space left on device"))
    denied = outcome(1, "fs__write_file")
    denied.outcome, denied.rule, denied.identity = "denied", "rule 2", "bob"
    gaps.append(intent(1, "fs__write_file"))
    gaps.append(denied)
    gaps.close()()
    return tmp_path


# ---- what is typed


def test_what_may_be_typed_is_known_without_importing_what_it_does() -> None:
    code = "import sys, plait.cli.audit; print([m for m in sys.modules if m.startswith('plait.pipeline')])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"


def test_the_folder_is_the_default_one_where_nothing_says_otherwise(
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    state = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.chdir(state)
    assert plait("verify") == 0
    assert f"nothing is recorded in {state}/plait/audit" in capsys.readouterr().err
    (state / "plait").mkdir()
    (state / "plait" / "audit").symlink_to(folder)
    assert plait("verify") == 0
    assert "13 records in 3 streams" in capsys.readouterr().out


# ---- verify


def test_verify_says_that_all_is_well_and_what_is_unknown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plait("verify", "--dir", str(folder)) == 0
    said = capsys.readouterr().out.splitlines()
    assert "git__push (call 1, " in said[0]
    assert said[0].endswith("): unknown")
    assert said[1].endswith(": 1 records could not be written at the time")
    assert said[2] == "✓ 13 records in 3 streams, all there and unaltered"


def test_verify_names_the_first_bad_record_and_its_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = next(iter(segments(folder).values()))[0]
    path.write_bytes(path.read_bytes().replace(b"fs__read_file", b"fs__xxxx_file", 1))
    assert plait("verify", "--dir", str(folder)) == 1
    assert f"✗ {path}: record 2: this record was altered" in capsys.readouterr().out
    assert plait("verify", "--dir", str(folder), "--json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False
    assert report["problems"] == [{"file": str(path), "seq": 2, "what": "this record was altered"}]


def test_verify_as_json_has_every_stream_with_its_last_hash(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plait("verify", "--dir", str(folder), "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    assert [stream["state"] for stream in report["streams"]] == ["closed", "killed", "closed"]
    assert [[call["name"] for call in stream["open"]] for stream in report["streams"]] == [
        [],
        ["git__push"],
        [],
    ]
    last = next(iter(segments(folder).values()))[-1].read_bytes().splitlines()[-1]
    assert report["streams"][0]["hash"] == json.loads(last)["hash"]


def test_verify_takes_a_key_that_was_kept_elsewhere(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path_factory.mktemp("kept") / "key"
    (folder / KEY).rename(kept)
    assert plait("verify", "--dir", str(folder)) == 1
    assert "without the key" in capsys.readouterr().err
    assert plait("verify", "--dir", str(folder), "--key", str(kept)) == 0


# ---- tail


def test_tail_shows_a_line_for_each_call(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plait("tail", "--dir", str(folder)) == 0
    said = [line.split()[2:] for line in capsys.readouterr().out.splitlines()]
    assert said == [
        ["ok", "0.0", "ms", "fs__read_file", "anonymous"],
        ["ok", "0.0", "ms", "fs__read_file", "anonymous"],
        ["unknown", "git__push", "anonymous"],
        ["1", "records", "were", "lost:", "No", "space", "left", "on", "device"],
        ["denied", "0.0", "ms", "fs__write_file", "bob", "rule", "2"],
    ]


def test_tail_takes_a_number_and_gives_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plait("tail", "-n", "1", "--json", "--dir", str(folder)) == 0
    [line] = capsys.readouterr().out.splitlines()
    record = json.loads(line)
    assert (record["outcome"], record["name"]) == ("denied", "fs__write_file")
    assert record["stream"] in segments(folder)


def test_tail_of_nothing_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plait("tail", "--dir", str(tmp_path / "none")) == 0
    assert "no calls are recorded" in capsys.readouterr().err


def test_tail_goes_back_over_many_files_and_processes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        ledger = Ledger(tmp_path, window=0.0, segment_bytes=4000)
        for call in range(1, 101):
            ledger.append(intent(call, f"{name}__{call}"))
            ledger.append(outcome(call, f"{name}__{call}"))
        ledger.close()()
    assert plait("tail", "-n", "150", "--dir", str(tmp_path)) == 0
    names = [line.split()[5] for line in capsys.readouterr().out.splitlines()]
    assert names == [f"a__{call}" for call in range(51, 101)] + [f"b__{call}" for call in range(1, 101)]


def test_tail_follows_what_is_written_meanwhile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = Ledger(tmp_path, window=0.0)
    first.append(intent(1, "a__1"))
    second = Ledger(tmp_path, window=0.0)
    meanwhile = iter([(first, outcome(1, "a__1")), (second, intent(1, "b__1")), (second, outcome(1, "b__1"))])

    def go_on() -> bool:
        for ledger, record in meanwhile:
            ledger.append(record)
            return True
        return False

    tail(tmp_path, 10, Screen(), False, go_on)
    said = [line.split()[2:] for line in capsys.readouterr().out.splitlines()]
    assert [(line[0], line[-2]) for line in said] == [("running", "a__1"), ("ok", "a__1"), ("ok", "b__1")]
    first.close()()
    second.close()()


def test_what_a_record_holds_cannot_move_somebodys_cursor(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, window=0.0)
    ledger.append(outcome(1, "a__\x1b[2J"))
    ledger.close()()
    out = StringIO()
    tail(tmp_path, 10, Screen(out, out), False, None)
    assert "\x1b" not in out.getvalue()


# ---- export


def exported(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_export_gives_every_record_and_what_is_unknown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plait("export", "--dir", str(folder)) == 0
    found = exported(capsys)
    assert len(found) == 14
    assert [record["name"] for record in found if record.get("outcome") == "unknown"] == ["git__push"]
    assert {str(record["stream"]) for record in found} == set(segments(folder))


def test_export_takes_what_is_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plait("export", "--dir", str(folder), "--tool", "fs__read*")
    assert [record["name"] for record in exported(capsys)] == ["fs__read_file"] * 4
    plait("export", "--dir", str(folder), "--identity", "bob")
    assert [record["outcome"] for record in exported(capsys)] == ["denied"]
    plait("export", "--dir", str(folder), "--since", "2999-01-01")
    assert exported(capsys) == []
    plait("export", "--dir", str(folder), "--until", "2000-01-01T00:00Z")
    assert exported(capsys) == []


def test_export_compares_times_in_every_zone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = Ledger(tmp_path, window=0.0)
    noon = datetime(2026, 3, 15, 12, tzinfo=UTC)
    for minutes in (0, 30, 60):
        end = Outcome(
            "tools/call", "outcome", 1, noon + timedelta(minutes=minutes), 0, "x", "y", "ok", minutes
        )
        ledger.append(end)
    ledger.close()()
    window = ("--since", "2026-03-15T13:30:00+01:00", "--until", "2026-03-15T13:00Z")
    plait("export", "--dir", str(tmp_path), "--tool", "*", *window)
    assert [record["duration_us"] for record in exported(capsys)] == [30]


def test_a_time_that_is_none_is_explained(folder: Path) -> None:
    with pytest.raises(ConfigError, match="--since 'yesterday' is no time"):
        plait("export", "--dir", str(folder), "--since", "yesterday")


def test_lines_that_are_no_records_are_left_out_and_counted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = next(iter(segments(folder).values()))[0]
    path.write_bytes(path.read_bytes() + b"garbage\n{}\n")
    assert plait("export", "--dir", str(folder)) == 1
    captured = capsys.readouterr()
    assert "2 lines are no records" in captured.err
    assert len(captured.out.splitlines()) == 14
