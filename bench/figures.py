"""What is kept of a run: a subject's figures round by round, or why it has none."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.subjects import Subject


@dataclass(frozen=True)
class Round:
    """What one subject did in its turn of one round; times in seconds, rates per second, CPU per call."""

    p50: float
    p99: float
    rate_alone: float
    rate_wide: float
    cpu_alone: float
    cpu_wide: float


Figure = Callable[[Round], float]


@dataclass
class Figures:
    """Everything we learned about one subject."""

    subject: Subject
    rounds: list[Round] = field(default_factory=list)
    spawns: list[float] = field(default_factory=list)
    handshakes: list[float] = field(default_factory=list)
    resident: int = 0
    helpers: int = 0
    helpers_proportional: int = 0
    failure: str = ""
    absent: bool = False
    """It is not installed here, which breaks no promise."""

    @property
    def weight(self) -> str:
        """Its memory in megabytes, and apart from it that of helper processes if there are any."""
        own = f"{self.resident / 1e6:.1f} MB"
        if not self.helpers:
            return own
        noun = "helper" if self.helpers == 1 else "helpers"
        return f"{own}, and {self.helpers_proportional / 1e6:.1f} MB (PSS) in {self.helpers} {noun}"

    def median(self, figure: Figure) -> float:
        """The middle one of a figure's rounds."""
        return statistics.median(map(figure, self.rounds))

    def compare(self, other: "Figures", figure: Figure) -> float:
        """Our figure as a multiple of the other's.

        The rounds are paired: both stood side by side in time, so a slow moment of the machine met both.
        """
        pairs = zip(self.rounds, other.rounds, strict=True)
        return statistics.median(figure(ours) / figure(theirs) for ours, theirs in pairs)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that this share of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
