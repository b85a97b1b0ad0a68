"""The two halves of a run, each with its subjects, its promises and the page it leaves behind."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.claims import PROMISES, Promise
from bench.http_claims import HTTP_PROMISES
from bench.http_subjects import WIDTH, http_subjects
from bench.subjects import BENCH, Subject, all_subjects

READ = """The subjects take turns, round after round; every figure is the median of its rounds, and the ratios
below compare rounds that stood side by side, so a busy moment of the machine meets both sides. Read the
ratios, not the milliseconds. `python -m bench --help` has the options.
"""
STDIO_HEAD = f"""# Benchmark

One raw client and one raw echo server for everyone, stdio to stdio, on one machine in one run:
`make bench` (about three minutes for this page; `.venv/bin/python -m bench --quick` for a first look that is
not written here). [RESULTS-HTTP.md](RESULTS-HTTP.md) is the same over HTTP.

{READ}"""
HTTP_HEAD = f"""# Benchmark over HTTP

One raw HTTP client with kept connections, one session and one raw echo server for everyone, HTTP to HTTP and
HTTP to stdio, on one machine in one run: `make bench-http`, or `make bench` for [stdio](RESULTS.md) as well.
A peer that is not installed is a row without figures. The client, the gateway and the server behind it share
the cores of the machine, so the more one of them takes, the less the others have.

{READ}"""


@dataclass(frozen=True)
class Chapter:
    """One half."""

    name: str
    head: str
    width: int
    file: Path
    subjects: Callable[[Path], dict[str, Subject]]
    promises: tuple[Promise, ...]


CHAPTERS = (
    Chapter("stdio", STDIO_HEAD, 32, BENCH / "RESULTS.md", all_subjects, PROMISES),
    Chapter("http", HTTP_HEAD, WIDTH, BENCH / "RESULTS-HTTP.md", http_subjects, HTTP_PROMISES),
)
