"""The records of calls on a screen and in a pipe: the latest, the verdict on all, or every one of them."""

import argparse
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

from plait.cli.exits import OK, UNEXPECTED
from plait.cli.files import find
from plait.cli.screen import Screen
from plait.errors import ConfigError
from plait.pipeline.ledger_check import Report, Stream, check
from plait.pipeline.ledger_files import KEY, audit_folder, is_held, load_key, segments
from plait.pipeline.ledger_read import Entry, history, latest, news, sizes, unknown

POLL = 0.3
"""Seconds between two looks for new records."""
_STYLES = {"ok": "good", "tool_error": "warn", "denied": "bad", "error": "bad", "unknown": "bad"}


def run(options: argparse.Namespace) -> int:
    screen = Screen()
    try:
        return _run(options, _folder(options), screen)
    except PermissionError as problem:
        screen.note(f"error: {problem}")
        return UNEXPECTED


def _run(options: argparse.Namespace, folder: Path, screen: Screen) -> int:
    match options.action:
        case "tail":
            return tail(folder, options.n, screen, options.json, _pause if options.follow else None)
        case "verify":
            return verify(folder, Path(options.key) if options.key else folder / KEY, screen, options.json)
        case _:
            return export(folder, _filter(options), screen)


def _folder(options: argparse.Namespace) -> Path:
    """What was typed, what the configuration says, or where the records are by default."""
    if options.dir:
        return Path(options.dir)
    config = find(options.config)
    given = config.settings.audit.dir if config is not None else None
    return Path(given) if given else audit_folder(os.environ)


# ---- tail


def _pause() -> bool:
    time.sleep(POLL)
    return True


def tail(folder: Path, count: int, screen: Screen, as_json: bool, go_on: Callable[[], bool] | None) -> int:
    """The latest calls, one line each; then, as long as `go_on` says so, the new ones."""
    seen = sizes(folder)
    calls = list(itertools.islice(_calls(folder, seen), count))
    if not calls and go_on is None:
        screen.note(f"no calls are recorded in {folder}")
    for entry in reversed(calls):
        _show(entry, screen, as_json)
    while go_on is not None and go_on():
        for entry in news(folder, seen):
            if _is_shown(entry):
                _show(entry, screen, as_json)
    return OK


def _calls(folder: Path, upto: dict[Path, int]) -> Iterator[Entry]:
    """From the newest: how calls ended, what was lost, and calls that have not ended."""
    running = {stream for stream, files in segments(folder).items() if is_held(files[0])}
    ended: set[tuple[str, int]] = set()
    for entry in latest(folder, upto):
        if entry.phase == "outcome":
            ended.add((entry.stream, entry.call))
            yield entry
        elif entry.phase == "intent" and (entry.stream, entry.call) not in ended:
            yield entry if entry.stream in running else unknown(entry)
        elif entry.event == "gap":
            yield entry


def _is_shown(entry: Entry) -> bool:
    return entry.phase == "outcome" or entry.event == "gap"


def _show(entry: Entry, screen: Screen, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(entry.line.decode() + "\n")
        sys.stdout.flush()
        return
    screen.say(_line(entry), _STYLES.get(entry.outcome))


def _line(entry: Entry) -> str:
    when = entry.ts.astimezone().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    if entry.event == "gap":
        return f"{when}  {entry.lost} records were lost: {entry.reason}"
    if entry.phase == "intent":
        return f"{when}  {'running':10}  {'':>10}  {entry.name}  {entry.identity}"
    why = entry.rule or entry.fault or (str(entry.code) if entry.code else "")
    took = f"{entry.duration_us / 1000:.1f} ms" if entry.outcome != "unknown" else ""
    return f"{when}  {entry.outcome:10}  {took:>10}  {entry.name}  {entry.identity}  {why}".rstrip()


# ---- verify


def verify(folder: Path, key: Path, screen: Screen, as_json: bool) -> int:
    if not segments(folder) and not key.exists():
        screen.note(f"nothing is recorded in {folder}")
        report = Report([])
    else:
        try:
            report = check(folder, load_key(key))
        except OSError as problem:
            screen.note(f"error: nothing can be verified without the key: {problem}")
            return UNEXPECTED
    if as_json:
        good = not report.problems
        screen.json(
            {"ok": good, "folder": str(folder), "problems": report.problems, "streams": report.streams}
        )
    else:
        _tell(report, screen)
    return UNEXPECTED if report.problems else OK


def _tell(report: Report, screen: Screen) -> None:
    for stream in report.streams:
        _tell_stream(stream, screen)
    for problem in report.problems:
        screen.say(f"✗ {problem.file}: record {problem.seq}: {problem.what}", "bad")
    records = sum(stream.records for stream in report.streams)
    if not report.problems:
        streams = "1 stream" if len(report.streams) == 1 else f"{len(report.streams)} streams"
        screen.say(f"✓ {records} records in {streams}, all there and unaltered", "good")


def _tell_stream(stream: Stream, screen: Screen) -> None:
    for call in stream.open if stream.state != "running" else ():
        screen.say(
            f"! {stream.stream}: {call.name} (call {call.call}, {call.ts:%Y-%m-%d %H:%M:%S}): unknown", "warn"
        )
    if stream.lost:
        screen.say(f"! {stream.stream}: {stream.lost} records could not be written at the time", "warn")
    for note in stream.notes:
        screen.say(f"! {stream.stream}: {note}", "warn")


# ---- export


def export(folder: Path, wanted: Callable[[Entry], bool], screen: Screen) -> int:
    """Every record that is wanted, as it was written, with the name of its stream."""
    unreadable = 0
    out = sys.stdout
    for entry in history(folder):
        if not isinstance(entry, Entry):
            unreadable += 1
        elif wanted(entry):
            out.write(entry.line.decode() + "\n")
    out.flush()
    if unreadable:
        screen.note(f"error: {unreadable} lines are no records; see: plait audit verify")
    return UNEXPECTED if unreadable else OK


def _filter(options: argparse.Namespace) -> Callable[[Entry], bool]:
    since, until = _time(options.since, "--since"), _time(options.until, "--until")

    def wanted(entry: Entry) -> bool:
        return (
            (since is None or entry.ts >= since)
            and (until is None or entry.ts < until)
            and (options.tool is None or (entry.phase != "" and fnmatchcase(entry.name, options.tool)))
            and (options.identity is None or entry.identity == options.identity)
        )

    return wanted


def _time(text: str | None, option: str) -> datetime | None:
    """A time without a zone is meant where the clock on the wall shows it."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{option} {text!r} is no time; write 2026-03-15 or 2026-03-15T10:30Z") from None
    return moment.astimezone(UTC)
