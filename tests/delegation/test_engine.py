"""Who does a task: the rules, and what `auto` makes of it."""

import logging

import pytest

from plait.config.delegation import ComplexitySettings, DelegationConfig, DelegationRule, DelegationTarget
from plait.delegation.engine import Decision, DelegationEngine, estimate_complexity

LOCAL, CLAUDE, FLOW, HOST, AUTO = (
    DelegationTarget.LOCAL,
    DelegationTarget.CLAUDE,
    DelegationTarget.CLAUDE_FLOW,
    DelegationTarget.HOST,
    DelegationTarget.AUTO,
)
BOTH = (CLAUDE, FLOW)
COMPARING = "analyze and compare these two approaches in detail, please"
HUGE = "orchestrate, refactor, audit and deploy it? and then? and what else?"


def decide(
    task: str,
    *rules: tuple[str, DelegationTarget],
    available: tuple[DelegationTarget, ...] = BOTH,
    **config: object,
) -> Decision:
    made = tuple(DelegationRule(pattern, target) for pattern, target in rules)
    return DelegationEngine(DelegationConfig(rules=made, **config)).decide(task, available)  # type: ignore[arg-type]


@pytest.mark.requirement("S1-T10.1", "S1-058")
def test_a_rule_is_searched_for_in_the_task() -> None:
    assert decide("please orchestrate a multi-agent workflow", ("orchestrat", FLOW)).target is FLOW


@pytest.mark.requirement("S1-016", "S1-T10.2")
def test_the_first_rule_that_fits_wins() -> None:
    decision = decide("ask claude about X", (".*claude.*", CLAUDE), (".*", LOCAL))
    assert decision.target is CLAUDE
    assert decision.rule == DelegationRule(".*claude.*", CLAUDE)


@pytest.mark.requirement("S1-T10.3", "S1-061")
def test_a_simple_task_is_done_locally() -> None:
    decision = decide("hello", ("", AUTO))
    assert decision.target is LOCAL
    assert decision.complexity == pytest.approx(0.001, abs=0.001)


@pytest.mark.requirement("S1-T10.4", "S1-059")
def test_a_complex_task_goes_to_claude() -> None:
    assert decide(COMPARING, ("", AUTO)).target is CLAUDE


@pytest.mark.requirement("S1-061")
def test_a_very_complex_task_goes_to_claude_flow_and_without_it_to_claude() -> None:
    assert decide(HUGE, ("", AUTO)).target is FLOW
    assert decide(HUGE, ("", AUTO), available=(CLAUDE,)).target is CLAUDE
    assert decide(HUGE, ("", AUTO), available=()).target is LOCAL
    assert decide(COMPARING, ("", AUTO), available=(FLOW,)).target is LOCAL


@pytest.mark.requirement("S1-T10.5", "S1-T10.6", "S1-059")
@pytest.mark.parametrize("target", [CLAUDE, FLOW, HOST])
def test_a_rule_whose_target_is_not_there_means_local(target: DelegationTarget) -> None:
    assert decide("x", ("x", target), available=()).target is LOCAL


@pytest.mark.requirement("X-24")
def test_with_a_chain_the_next_one_is_asked_instead() -> None:
    assert decide("x", ("x", FLOW), available=(CLAUDE,), fallback="chain").target is CLAUDE
    assert decide("x", ("x", FLOW), available=(CLAUDE, HOST), fallback="chain").target is HOST
    assert decide("x", ("x", CLAUDE), available=(FLOW,), fallback="chain").target is LOCAL


@pytest.mark.requirement("S1-T10.7", "S1-060", "X-23")
def test_what_no_rule_fits_is_done_locally_unless_the_default_is_another() -> None:
    assert decide("bar", ("^foo$", CLAUDE)).target is LOCAL
    assert decide(COMPARING, ("^foo$", LOCAL), default_target=AUTO).target is CLAUDE


@pytest.mark.requirement("S1-T10.8", "S1-062")
def test_a_pattern_that_is_none_is_skipped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert decide("[invalid", ("[invalid", CLAUDE), ("", CLAUDE)).rule == DelegationRule("", CLAUDE)
    assert "'[invalid' is skipped" in caplog.text


@pytest.mark.requirement("S1-E12", "S1-062")
def test_an_empty_pattern_fits_everything() -> None:
    assert decide("whatever", ("", CLAUDE)).target is CLAUDE
    assert decide("", ("", CLAUDE)).target is CLAUDE


def test_the_clients_own_model_comes_first_where_it_is_there() -> None:
    assert decide(COMPARING, ("", AUTO), available=(CLAUDE, HOST)).target is HOST
    assert decide("hello", ("", AUTO), available=(CLAUDE, HOST)).target is LOCAL


# ---- complexity


@pytest.mark.requirement("S1-T10.9")
def test_two_keywords_make_it_more_than_half() -> None:
    assert estimate_complexity("orchestrate the research") > 0.5


@pytest.mark.requirement("S1-T10.10")
def test_many_words_without_a_keyword_are_a_fifth() -> None:
    assert estimate_complexity("word " * 150) == pytest.approx(0.2)
    assert estimate_complexity("word " * 1500) == pytest.approx(0.2)


@pytest.mark.requirement("X-26")
def test_a_keyword_counts_where_a_word_begins_and_once() -> None:
    assert estimate_complexity("a preview of predesigned things") < 0.1
    assert estimate_complexity("reviewing") == estimate_complexity("review")
    assert estimate_complexity("Review review, REVIEW") == pytest.approx(0.264)


@pytest.mark.requirement("X-26")
def test_it_is_never_more_than_one_and_nothing_is_nothing() -> None:
    everything = " ".join(ComplexitySettings().keywords) * 20 + "???"
    assert estimate_complexity(everything) == pytest.approx(1.0)
    assert estimate_complexity("") == 0.0


@pytest.mark.requirement("X-26")
def test_words_weights_and_thresholds_are_settings() -> None:
    settings = ComplexitySettings(keywords=("knit",), keyword_weight=0.5, local_below=0.4)
    assert estimate_complexity("Knit a scarf", settings) == pytest.approx(0.504)
    assert decide("knit", ("", AUTO), complexity=settings).target is CLAUDE
    assert decide("review", ("", AUTO), complexity=settings).target is LOCAL
