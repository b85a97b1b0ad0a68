"""Measure plait and its peers in one run: `make bench`, which makes what it needs, or `python -m bench`.

The same raw client (`raw_client.py`) drives the same raw echo server (`echo_server.py`) through everyone,
stdio to stdio: alone, behind plait with 2 and with 50 servers mounted, behind 25 lines on the official SDK,
behind FastMCP's proxy in its best mode, behind PyPI's mcp-proxy. Then the same over HTTP (`http_client.py`,
`http_echo_server.py`), to servers over HTTP and over stdio, with IBM ContextForge and Envoy's MCP router
besides. The subjects take turns, round after round; figures are medians over rounds, and the claims
(`claims.py`, `http_claims.py`) are ratios of rounds that stood side by side.

    .venv/bin/python -m bench                          about eight minutes; writes bench/RESULTS*.md
    .venv/bin/python -m bench --only http              one half; writes its page
    .venv/bin/python -m bench --quick                  under two minutes, prints only
    .venv/bin/python -m bench --subjects direct,plait  only these, prints only

Progress goes to stderr, the page to stdout. The exit code is 1 when a claim fails. Configuration files and
what the subjects write to stderr are kept where `--keep DIRECTORY` says. Needs Linux (reads /proc).
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from bench.chapters import CHAPTERS, Chapter
from bench.claims import check
from bench.figures import Figures
from bench.measure import FULL, QUICK, Bench
from bench.report import page


def main() -> int:
    """Parse, measure, report; 1 when a claim fails."""
    arguments = parser().parse_args()
    if arguments.keep is not None:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        return bench(arguments, arguments.keep.resolve())
    with tempfile.TemporaryDirectory(prefix="plait-bench-") as directory:
        return bench(arguments, Path(directory))


def bench(arguments: argparse.Namespace, workspace: Path) -> int:
    """One run in this workspace, one half after the other."""
    halves = [chapter for chapter in CHAPTERS if arguments.only in (None, chapter.name)]
    subjects = {chapter.name: chapter.subjects(workspace) for chapter in halves}
    known = [name for half in subjects.values() for name in half]
    chosen = arguments.subjects.split(",") if arguments.subjects else known
    if unknown := [name for name in chosen if name not in known]:
        print(f"bench: no subject {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    kept = True
    for chapter in halves:
        results = {name: Figures(each) for name, each in subjects[chapter.name].items() if name in chosen}
        if results:
            kept &= measure(chapter, results, arguments, workspace)
    return int(not kept)


def measure(
    chapter: Chapter, results: dict[str, Figures], arguments: argparse.Namespace, workspace: Path
) -> bool:
    """One half; whether all its claims hold."""
    plan = QUICK if arguments.quick else FULL
    load = os.getloadavg()[0]
    Bench(plan, workspace, progress, list(results.values())).run()
    claims = check(chapter.promises, results)
    text = page(chapter, results.values(), claims, plan, load)
    print(text)
    if not arguments.quick and not arguments.subjects:
        chapter.file.write_text(text)
    return not any(claim.holds is False for claim in claims)


def parser() -> argparse.ArgumentParser:
    """The options."""
    assert __doc__ is not None
    options = argparse.ArgumentParser(
        "python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--quick", action="store_true", help="few and short rounds; prints only")
    options.add_argument("--subjects", metavar="A,B", help="only these; prints only")
    options.add_argument("--only", choices=[chapter.name for chapter in CHAPTERS], help="only this half")
    options.add_argument(
        "--keep", metavar="DIRECTORY", type=Path, help="keep configuration files and logs there"
    )
    return options


def progress(line: str) -> None:
    """Say what has just been done."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
