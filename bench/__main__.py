"""Measure plait and its peers in one run: `make bench`, which makes what it needs, or `python -m bench`.

The same raw client (`raw_client.py`) drives the same raw echo server (`echo_server.py`) through everyone,
stdio to stdio: alone, behind plait with 2 and with 50 servers mounted, behind 25 lines on the official SDK,
behind FastMCP's proxy in its best mode, behind PyPI's mcp-proxy. The subjects take turns, round after round;
figures are medians over rounds, and the claims (`claims.py`) are ratios of rounds that stood side by side.

    .venv/bin/python -m bench                          about three minutes; writes bench/RESULTS.md
    .venv/bin/python -m bench --quick                  under 40 seconds, prints only
    .venv/bin/python -m bench --subjects direct,plait  only these, prints only

Progress goes to stderr, the page to stdout. The exit code is 1 when a claim fails. Configuration files and
what the subjects write to stderr are kept where `--keep DIRECTORY` says. Needs Linux (reads /proc).
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from bench.claims import check
from bench.figures import Figures
from bench.measure import FULL, QUICK, Bench
from bench.report import page
from bench.subjects import BENCH, all_subjects

RESULTS = BENCH / "RESULTS.md"


def main() -> int:
    """Parse, measure, report; 1 when a claim fails."""
    arguments = parser().parse_args()
    if arguments.keep is not None:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        return bench(arguments, arguments.keep.resolve())
    with tempfile.TemporaryDirectory(prefix="plait-bench-") as directory:
        return bench(arguments, Path(directory))


def bench(arguments: argparse.Namespace, workspace: Path) -> int:
    """One run in this workspace."""
    subjects = all_subjects(workspace)
    chosen = arguments.subjects.split(",") if arguments.subjects else list(subjects)
    if unknown := [name for name in chosen if name not in subjects]:
        print(f"bench: no subject {', '.join(unknown)}; there are {', '.join(subjects)}", file=sys.stderr)
        return 2
    plan = QUICK if arguments.quick else FULL
    load = os.getloadavg()[0]
    results = {name: Figures(subjects[name]) for name in chosen}
    Bench(plan, workspace, progress, list(results.values())).run()
    claims = check(results)
    text = page(results.values(), claims, plan, load)
    print(text)
    if not arguments.quick and not arguments.subjects:
        RESULTS.write_text(text)
    return int(any(claim.holds is False for claim in claims))


def parser() -> argparse.ArgumentParser:
    """The options."""
    assert __doc__ is not None
    options = argparse.ArgumentParser(
        "python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--quick", action="store_true", help="few and short rounds; prints only")
    options.add_argument("--subjects", metavar="A,B", help="only these; prints only")
    options.add_argument(
        "--keep", metavar="DIRECTORY", type=Path, help="keep configuration files and logs there"
    )
    return options


def progress(line: str) -> None:
    """Say what has just been done."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
