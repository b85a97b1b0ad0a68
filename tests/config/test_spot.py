"""Paths, places and guesses."""

import pytest

from plait.config.document import parse
from plait.config.spot import Findings, Spot, close_match


def root(text: str) -> Spot:
    document = parse(text, "plait.json")
    return Spot(document, document.root)


def test_a_path_leads_through_keys_and_items() -> None:
    spot = root('{"a": {"b c": [1, {"d": 2}]}}').member("a")
    assert spot is not None
    inner = spot.member("b c")
    assert inner is not None
    *_, last = inner.items()
    assert [member.path for _, member in last.members()] == ["a.'b c'[1].d"]


def test_a_null_is_as_good_as_absent() -> None:
    spot = root('{"a": null, "b": 1}')
    assert [key for key, _ in spot.members()] == ["b"]
    found = spot.member("a", "b")
    assert found is not None
    assert found.path == "b"


def test_what_is_no_object_has_no_members() -> None:
    assert root("[1]").member("a") is None
    assert list(root("[1]").members()) == []
    assert list(root("{}").items()) == []


def test_a_warning_is_no_failure() -> None:
    findings = Findings("fs")
    findings.report("C111", root("{}"), "odd", severity="warning")
    assert [findings.failed] == [False]
    findings.wrong_type(root("[]"), "an object")
    assert [findings.failed] == [True]
    assert [problem.message for problem in findings.problems] == ["odd", "expected an object, got a list"]
    assert {problem.server for problem in findings.problems} == {"fs"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("argss", "args"), ("Command", "command"), ("ENV", "env"), ("tags", None), ("x" * 10_000, None)],
)
def test_a_typing_mistake_is_recognised(name: str, expected: str | None) -> None:
    assert close_match(name, ["args", "command", "env"]) == expected
