"""What we promise about our speed, each promise beside the figure that keeps or breaks it."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.figures import Figures, Round

Results = dict[str, Figures]


@dataclass(frozen=True)
class Claim:
    """One promise, checked; `holds` is None when a subject it needs is not here."""

    text: str
    figure: str
    holds: bool | None

    @property
    def verdict(self) -> str:
        """One word."""
        return {True: "pass", False: "FAIL", None: "skipped"}[self.holds]


@dataclass(frozen=True)
class Promise:
    """A claim before it is checked: whom it needs, and how it is judged."""

    text: str
    needs: tuple[str, ...]
    judge: Callable[[Results], tuple[bool, str]]


def check(promises: Sequence[Promise], results: Results) -> list[Claim]:
    """Judge every promise on these results."""
    return [judged(promise, results) for promise in promises]


def judged(promise: Promise, results: Results) -> Claim:
    """A promise about somebody who failed is broken; about somebody who is not here, not judged."""
    if left_out := [name for name in promise.needs if name not in results]:
        return Claim(promise.text, f"{', '.join(left_out)} not selected", None)
    if absent := [name for name in promise.needs if results[name].absent]:
        return Claim(promise.text, f"{', '.join(absent)} not installed here", None)
    if failed := [name for name in promise.needs if results[name].failure]:
        return Claim(promise.text, f"{', '.join(failed)} did not run", False)
    holds, figure = promise.judge(results)
    return Claim(promise.text, figure, holds)


def rate_wide(turn: Round) -> float:
    return turn.rate_wide


def p50(turn: Round) -> float:
    return turn.p50


def cpu_alone(turn: Round) -> float:
    return turn.cpu_alone


def cpu_wide(turn: Round) -> float:
    return turn.cpu_wide


def rate_against_direct(results: Results) -> tuple[bool, str]:
    share = results["plait"].compare(results["direct"], rate_wide)
    return share >= 1 / 8, f"1/{1 / share:.1f}"


def rate_against_fastmcp(results: Results) -> tuple[bool, str]:
    times = results["plait"].compare(results["fastmcp"], rate_wide)
    return times >= 50, f"{times:.1f} times"


def p50_against_direct(results: Results) -> tuple[bool, str]:
    times = results["plait"].compare(results["direct"], p50)
    return times <= 10, f"{times:.1f} times"


def p50_against_fastmcp(results: Results) -> tuple[bool, str]:
    times = results["fastmcp"].compare(results["plait"], p50)
    return times >= 10, f"{times:.1f} times better"


def cpu_per_call(results: Results) -> tuple[bool, str]:
    alone = results["plait"].median(cpu_alone) * 1000
    wide = results["plait"].median(cpu_wide) * 1000
    return max(alone, wide) <= 0.2, f"{alone:.3f} ms with 1, {wide:.3f} ms with 32 in flight"


def spawn(results: Results) -> tuple[bool, str]:
    took = statistics.median(results["plait"].spawns) * 1000
    return took < 250, f"{took:.0f} ms"


def spawn_against_fastmcp(results: Results) -> tuple[bool, str]:
    spawns = zip(results["plait"].spawns, results["fastmcp"].spawns, strict=True)
    share = statistics.median(ours / theirs for ours, theirs in spawns)
    return share < 1 / 5, f"1/{1 / share:.1f}"


def handshake(results: Results) -> tuple[bool, str]:
    took = statistics.median(results["plait"].handshakes) * 1000
    return took < 100, f"{took:.1f} ms"


def memory(results: Results) -> tuple[bool, str]:
    return results["plait"].resident < 40e6, results["plait"].weight


def mounts(results: Results) -> tuple[bool, str]:
    fifty, two = results["plait-50"], results["plait"]
    alone, wide = fifty.compare(two, cpu_alone), fifty.compare(two, cpu_wide)
    return max(alone, wide) <= 1.1, f"{alone:.2f} times with 1, {wide:.2f} times with 32 in flight"


def rate_with_audit(results: Results) -> tuple[bool, str]:
    share = results["plait-audit"].compare(results["direct"], rate_wide)
    times = results["plait-audit"].compare(results["fastmcp"], rate_wide)
    return share >= 1 / 8, f"1/{1 / share:.1f}, and {times:.1f} times FastMCP's"


def price_of_audit(results: Results) -> tuple[bool, str]:
    pairs = zip(results["plait-audit"].rounds, results["plait"].rounds, strict=False)
    added = statistics.median(cpu_wide(ours) - cpu_wide(bare) for ours, bare in pairs) * 1e6
    return added <= 60, f"{added:.0f} µs"


PROMISES = (
    Promise(
        "32 in flight: at least 1/8 of the bare server's calls per second",
        ("plait", "direct"),
        rate_against_direct,
    ),
    Promise(
        "32 in flight: at least 50 times FastMCP's calls per second",
        ("plait", "fastmcp"),
        rate_against_fastmcp,
    ),
    Promise("1 in flight: p50 at most 10 times the bare server's", ("plait", "direct"), p50_against_direct),
    Promise(
        "1 in flight: p50 at least 10 times better than FastMCP's", ("plait", "fastmcp"), p50_against_fastmcp
    ),
    Promise("CPU per call at most 0.2 ms", ("plait",), cpu_per_call),
    Promise("spawn to the `initialize` answer under 250 ms", ("plait",), spawn),
    Promise(
        "spawn to the `initialize` answer under 1/5 of FastMCP's", ("plait", "fastmcp"), spawn_against_fastmcp
    ),
    Promise("our handshake with running servers under 100 ms", ("plait",), handshake),
    Promise("memory under 40 MB", ("plait",), memory),
    Promise(
        "with its audit, 32 in flight: at least 1/8 of the bare server's calls per second",
        ("plait-audit", "direct", "fastmcp"),
        rate_with_audit,
    ),
    Promise(
        "the audit, the dearest guard, adds at most 60 µs of CPU to a call (32 in flight)",
        ("plait-audit", "plait"),
        price_of_audit,
    ),
    Promise("CPU per call with 50 servers at most 1.1 times that with 2", ("plait", "plait-50"), mounts),
)
