"""The client scenarios of the official conformance suite: its servers judge how plait treats servers."""

from functools import partial
from pathlib import Path

import pytest

from conformance import REVISIONS, judge_client, node, scored
from conformance_client import through_plait

pytestmark = pytest.mark.e2e

UNSCORED = "json-schema-2020-12-preservation"
"""Newer than both releases; the suite runs it and does not score it."""
SCENARIOS = {
    "2025-11-25": ("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry", UNSCORED),
    "2026-07-28": (
        "tools_call",
        "request-metadata",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        UNSCORED,
    ),
}


@pytest.mark.parametrize(
    ("revision", "scenario"),
    [(revision, scenario) for revision, scenarios in SCENARIOS.items() for scenario in scenarios],
)
async def test_the_suites_own_server_is_content_with_plait(
    revision: str, scenario: str, tmp_path: Path
) -> None:
    node()
    act = partial(through_plait, scenario, revision, tmp_path)
    outcome = await judge_client(scenario, revision, tmp_path / "found", act)
    assert outcome.checks
    assert not outcome.complaints, "\n".join(outcome.complaints)


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_scored_scenario_is_run_but_for_signing_in(revision: str) -> None:
    node()
    left = scored("client", revision) - set(SCENARIOS[revision])
    assert {name for name in left if not name.startswith("auth/")} == set()
