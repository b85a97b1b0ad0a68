"""The language of permissions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.pipeline.rules import Rule, Rules, Subject


def subject(exposed: str, native: str = "", server: str = "") -> Subject:
    left, _, right = exposed.partition("__")
    return Subject(exposed, native or right or exposed, server or (left if right else ""))


WRITE = subject("fs__write_file")


def test_what_no_rule_matches_is_allowed() -> None:
    assert Rules().decide(WRITE, "ann", {}).allowed
    assert Rules([Rule("deny", "git__*")]).decide(WRITE, "ann", {}).allowed


def test_the_first_rule_that_matches_decides() -> None:
    rules = Rules([Rule("allow", "fs__write_file"), Rule("deny", "fs__*", reason="read-only")])
    assert rules.decide(WRITE, "ann", {}).allowed
    denied = rules.decide(subject("fs__delete"), "ann", {})
    assert (denied.allowed, denied.rule, denied.reason) == (False, "rule 2", "read-only")


def test_a_bare_name_in_a_deny_means_every_servers_tool_of_that_name() -> None:
    rules = Rules([Rule("deny", "write_file")])
    assert not rules.decide(WRITE, "ann", {}).allowed
    assert not rules.decide(subject("other__write_file"), "ann", {}).allowed
    assert rules.decide(subject("fs__read_file"), "ann", {}).allowed


@pytest.mark.requirement("K-03")
def test_a_bare_name_in_an_allow_means_the_builtin_one_only() -> None:
    rules = Rules.of_allowed(["read_file"])
    assert rules.decide(subject("builtin__read_file"), "ann", {}).allowed
    assert not rules.decide(subject("evil__read_file"), "ann", {}).allowed


@pytest.mark.requirement("BC-21")
def test_allowed_tools_none_is_everything_and_an_empty_list_nothing() -> None:
    assert Rules.of_allowed(None).decide(WRITE, "ann", {}).allowed
    assert not Rules.of_allowed([]).decide(WRITE, "ann", {}).allowed


def test_a_rule_may_be_about_some_callers_only() -> None:
    rules = Rules([Rule("deny", "fs__*", identity="guest-*")])
    assert not rules.decide(WRITE, "guest-7", {}).allowed
    assert rules.decide(WRITE, "ann", {}).allowed


UNLESS = Rules(
    [
        Rule(
            "deny",
            "fs__write_*",
            unless={"path": "/tmp/**"},
            reason="read-only project",
            where="plait.json:21",
        )
    ]
)


@pytest.mark.parametrize("path", ["/tmp/x", "/tmp/a/b/c", ["/tmp/a", "/tmp/b"]])
def test_an_argument_can_excuse_a_call(path: object) -> None:
    assert UNLESS.decide(WRITE, "ann", {"path": path}).allowed


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"path": "/etc/hosts"},
        {"path": "/tmp/../etc/hosts"},
        {"path": "/tmp/a/../../etc/hosts"},
        {"path": "/tmpevil/x"},
        {"path": None},
        {"path": 5},
        {"path": []},
        {"path": ["/tmp/a", "/etc/b"]},
        {"path": {"a": "/tmp/x"}},
        {"PATH": "/tmp/x"},
    ],
)
def test_anything_else_does_not(arguments: dict[str, object]) -> None:
    decision = UNLESS.decide(WRITE, "ann", arguments)
    assert not decision.allowed
    assert decision.rule == "rule 1 (plait.json:21)"
    assert "read-only project" in decision.reason


def test_an_exception_to_a_permission_is_taken_widely() -> None:
    rules = Rules([Rule("allow", "fs__*", unless={"path": "/etc/*"}), Rule("deny", "*")])
    assert rules.decide(WRITE, "ann", {"path": "/home/x"}).allowed
    assert not rules.decide(WRITE, "ann", {"path": "/home/../etc/passwd"}).allowed
    assert not rules.decide(WRITE, "ann", {"path": "/etc/../etc/passwd"}).allowed


def test_what_arguments_may_permit_is_visible() -> None:
    assert UNLESS.visible(WRITE, "ann")
    assert not Rules([Rule("deny", "fs__*")]).visible(WRITE, "ann")


NAMES = st.sampled_from(["a__x", "a__y", "b__x", "builtin__x", "x", "c__z"])
PATTERNS = st.sampled_from(["*", "a__*", "x", "y", "b__x", "*__x", "builtin__*", "?__x"])
RULES = st.lists(
    st.builds(
        Rule,
        st.sampled_from(["allow", "deny"]),
        PATTERNS,
        st.sampled_from([{}, {"p": "1"}]),
        st.sampled_from(["*", "ann"]),
    ),
    max_size=5,
)


@given(RULES, NAMES, st.sampled_from(["ann", "bob"]))
def test_visible_means_that_some_call_is_allowed(rules: list[Rule], name: str, identity: str) -> None:
    made = Rules(rules)
    possible = any(made.decide(subject(name), identity, {"p": value}).allowed for value in ("1", "2"))
    assert made.visible(subject(name), identity) >= possible, "what may be called is seen"
    if not any(rule.unless for rule in rules):
        assert made.visible(subject(name), identity) == possible


@given(RULES, NAMES, NAMES)
def test_adding_a_server_changes_no_decision_about_another(rules: list[Rule], name: str, other: str) -> None:
    made = Rules(rules)
    before = made.decide(subject(name), "ann", {})
    made.decide(subject(other), "ann", {})
    assert made.decide(subject(name), "ann", {}) == before
