"""Who does a task: rules in order, and how complex the task looks. Pure: it knows no model and no clock."""

import logging
import re
from collections.abc import Collection, Sequence

from msgspec import Struct

from plait.config.delegation import ComplexitySettings, DelegationConfig, DelegationRule, DelegationTarget

_log = logging.getLogger("plait.delegation")

ENOUGH_QUESTIONS = 3
ENOUGH_WORDS = 150
_CHAIN = (DelegationTarget.CLAUDE_FLOW, DelegationTarget.HOST, DelegationTarget.CLAUDE)
"""Who is asked in place of whom: each is followed by those behind it."""


def estimate_complexity(task: str, settings: ComplexitySettings | None = None) -> float:
    """From 0 to 1: keywords that are in it, questions that it asks, words that it has (M-05)."""
    settings = settings or ComplexitySettings()
    lowered = task.lower()
    # Only where a word begins: a "preview" is no review.
    hits = sum(re.search(rf"\b{re.escape(word.lower())}", lowered) is not None for word in settings.keywords)
    keywords = min(settings.keyword_weight * hits, settings.keyword_limit)
    questions = settings.question_weight * min(task.count("?") / ENOUGH_QUESTIONS, 1)
    words = settings.length_weight * min(len(task.split()) / ENOUGH_WORDS, 1)
    return min(keywords + questions + words, 1.0)


class Decision(Struct, frozen=True):
    """Who does it, and why."""

    target: DelegationTarget
    reason: str
    rule: DelegationRule | None = None
    complexity: float | None = None
    """Where it was what decided."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Globs of the tools that the rule leaves; none: all of them."""
        return () if self.rule is None else self.rule.tools


class DelegationEngine:
    def __init__(self, config: DelegationConfig) -> None:
        self.config = config
        self._rules = [
            (pattern, rule) for rule in config.rules if (pattern := _compiled(rule.pattern)) is not None
        ]

    def decide(
        self,
        task: str,
        available: Collection[DelegationTarget],
        default: DelegationTarget | None = None,
    ) -> Decision:
        """`available`: the targets that could be asked now. Local always is one, and never fails.

        `default`: for a task that no rule fits, where whoever asks has an opinion.
        """
        for pattern, rule in self._rules:
            if pattern.search(task):
                where = f"the rule {rule.pattern!r} says {rule.target.value}"
                return self._settle(task, rule.target, available, where, rule)
        target = default or self.config.default_target
        return self._settle(task, target, available, f"no rule fits, and the default is {target.value}", None)

    def weigh(self, task: str, available: Collection[DelegationTarget]) -> tuple[DelegationTarget, float]:
        """What `auto` means (S1-061). The client's own model, where it is enabled, costs nothing: first."""
        settings = self.config.complexity
        complexity = estimate_complexity(task, settings)
        if complexity < settings.local_below:
            return DelegationTarget.LOCAL, complexity
        flow = DelegationTarget.CLAUDE_FLOW
        if flow in available and complexity > settings.claude_flow_above:
            return flow, complexity
        return _first((DelegationTarget.HOST, DelegationTarget.CLAUDE), available), complexity

    def _settle(
        self,
        task: str,
        target: DelegationTarget,
        available: Collection[DelegationTarget],
        where: str,
        rule: DelegationRule | None,
    ) -> Decision:
        if target is DelegationTarget.AUTO:
            chosen, complexity = self.weigh(task, available)
            reason = f"{where}; its complexity is {complexity:.2f}"
            return Decision(chosen, reason, rule, complexity)
        if target is DelegationTarget.LOCAL or target in available:
            return Decision(target, where, rule)
        chosen = DelegationTarget.LOCAL
        if self.config.fallback == "chain":
            chosen = _first(_CHAIN[_CHAIN.index(target) + 1 :], available)
        return Decision(chosen, f"{where}, which is not there; so {chosen.value}", rule)


def _first(wanted: Sequence[DelegationTarget], available: Collection[DelegationTarget]) -> DelegationTarget:
    return next((each for each in wanted if each in available), DelegationTarget.LOCAL)


def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except re.error as problem:
        _log.warning(
            "delegation: the pattern %r is skipped, it is no regular expression: %s", pattern, problem
        )
        return None
