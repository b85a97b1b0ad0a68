"""The page that a run leaves behind: machine, versions, table, claims."""

import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.chapters import Chapter
from bench.claims import Claim
from bench.figures import Figures
from bench.measure import Plan

LEGEND = """- *1 / WIDTH in flight*: calls that the client keeps unanswered at any moment.
- *CPU per call*: user and system time of the gateway and its helper processes, without the echo servers
  (for the server alone: the server).
- *spawn*: from starting the process to its answer to `initialize`.
- *handshake*: from the client's `initialize`, sent when all servers behind the gateway run already, to the
  complete `tools/list`; the gateway's own handshakes with those servers lie within it.
- *memory*: resident (VmRSS), without the echo servers; helper processes apart, by their proportional share.
"""

COLUMNS = (
    "subject",
    "p50 / p99, 1 in flight",
    "calls/s, 1 in flight",
    "calls/s, WIDTH in flight",
    "CPU per call, 1 / WIDTH",
    "memory",
    "spawn",
    "handshake",
)


def page(
    chapter: Chapter, results: Iterable[Figures], claims: Iterable[Claim], plan: Plan, load: float
) -> str:
    """The whole of a page of results."""
    results = list(results)
    columns = [name.replace("WIDTH", str(chapter.width)) for name in COLUMNS]
    notes = [f"- {it.subject.title}: {it.subject.note}." for it in results if it.subject.note]
    sections = [
        chapter.head,
        *machine(results, plan, load),
        "",
        "## Figures",
        "",
        *table(columns, map(row, results)),
        "",
        LEGEND.replace("WIDTH", str(chapter.width)) + "\n".join(notes),
        "",
        "## Claims",
        "",
        *table(("claim", "measured", ""), ((claim.text, claim.figure, claim.verdict) for claim in claims)),
    ]
    return "\n".join(sections) + "\n"


def machine(results: Iterable[Figures], plan: Plan, load: float) -> list[str]:
    """When, where and with what."""
    versions = sorted({it.subject.version for it in results} - {""})
    return [
        f"- date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        f"- machine: {os.cpu_count()} cores, {processor()}, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, load {load:.1f} before the run",
        f"- versions: {', '.join(versions)}",
        f"- run: {plan.rounds} rounds of twice {plan.seconds} s for each subject, {plan.spawns} spawns",
    ]


def processor() -> str:
    """The model, as the kernel names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next(
        (line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine()
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    return [" | ".join(["", *cells, ""]).strip() for cells in (heads, ["---"] * len(heads), *rows)]


def row(figures: Figures) -> list[str]:
    """One subject's figures, or why there are none."""
    title = figures.subject.title
    if figures.failure:
        return [title, f"did not run: {figures.failure}", *[""] * (len(COLUMNS) - 2)]
    alone, wide = figures.median(lambda turn: turn.cpu_alone), figures.median(lambda turn: turn.cpu_wide)
    return [
        title,
        f"{in_milliseconds(figures.median(lambda turn: turn.p50))} / "
        f"{in_milliseconds(figures.median(lambda turn: turn.p99))} ms",
        f"{figures.median(lambda turn: turn.rate_alone):,.0f}",
        f"{figures.median(lambda turn: turn.rate_wide):,.0f}",
        f"{in_milliseconds(alone)} / {in_milliseconds(wide)} ms",
        figures.weight,
        f"{in_milliseconds(statistics.median(figures.spawns))} ms",
        f"{in_milliseconds(statistics.median(figures.handshakes))} ms" if figures.handshakes else "",
    ]


def in_milliseconds(seconds: float) -> str:
    """Three significant digits."""
    value = seconds * 1000
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"
