"""Placeholders: each form, once, and never a value in an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.config.expand import MAX_NESTING, Expansion, Variables, expand

VARIABLES = Variables({"NAME": "ada", "EMPTY": "", "HOME": "/home/ada", "ODD": "${NAME} $$"}, "/srv/project")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("", ""),
        ("${NAME}", "ada"),
        ("<${NAME}|${NAME}>", "<ada|ada>"),
        ("${env:NAME}", "ada"),
        ("${env:NOPE:-x}", "x"),
        ("${NOPE:-default}", "default"),
        ("${NOPE:-}", ""),
        ("${NAME:-default}", "ada"),
        ("${EMPTY:-default}", "default"),
        ("${EMPTY}", ""),
        ("${NOPE:-${ALSO:-${NAME}!}?}", "ada!?"),
        ("${NAME:-${NOPE}}", "ada"),
        ("${NOPE:-a:-b}", "a:-b"),
        ("${userHome}/x", "/home/ada/x"),
        ("${workspaceFolder}${/}x", "/srv/project/x"),
        ("${workspaceFolderBasename}${pathSeparator}x", "project/x"),
        ("$NAME $ {NAME} }{ $", "$NAME $ {NAME} }{ $"),
        ("$${NAME}", "${NAME}"),
        ("$$$${NAME}", "$${NAME}"),
        ("$$${NAME}", "$ada"),
        ("${NOPE:-$$1}", "$1"),
        ("${ODD}", "${NAME} $$"),
        ("${NOPE:-${ODD}}", "${NAME} $$"),
    ],
)
def test_a_text_expands(text: str, expected: str) -> None:
    assert expand(text, VARIABLES) == Expansion(expected)


@pytest.mark.parametrize(
    ("text", "code", "message", "index"),
    [
        ("a ${NOPE}", "C104", "environment variable NOPE is not set", 2),
        ("${env:NOPE}", "C104", "environment variable NOPE is not set", 0),
        ("${NOPE:-${ALSO}}", "C104", "environment variable ALSO is not set", 8),
        ("ab${NAME", "C105", "'${' without '}'", 2),
        ("${NOPE:-x", "C105", "'${' without '}'", 0),
        ("${}", "C105", "a placeholder that cannot be read", 0),
        ("${NA ME}", "C105", "a placeholder that cannot be read", 0),
        ("${NAME%x}", "C105", "a placeholder that cannot be read", 0),
        ("${input:key}", "C105", "placeholders of the kind ${input:…} are not known", 0),
        ("${cmd: rm}", "C105", "placeholders of the kind ${cmd:…} are not known", 0),
    ],
)
def test_a_placeholder_without_a_value_is_a_fault(text: str, code: str, message: str, index: int) -> None:
    (fault,) = expand(text, VARIABLES).faults
    assert (fault.code, fault.message, fault.index) == (code, message, index)


def test_every_fault_of_a_text_is_told() -> None:
    faults = expand("${A} ${B:-${C}} ${input:d} ${NAME}", VARIABLES).faults
    assert [fault.index for fault in faults] == [0, 10, 16]


def test_without_a_home_the_users_home_has_no_value() -> None:
    (fault,) = expand("${userHome}", Variables({}, "/")).faults
    assert fault.message == "HOME is not set, so ${userHome} has no value"


@pytest.mark.parametrize("closing", ["}", ""])
def test_defaults_that_nest_too_deep_are_a_fault(closing: str) -> None:
    depth = 50_000
    faults = expand("${A:-" * depth + closing * depth, VARIABLES).faults
    assert f"placeholders nested more than {MAX_NESTING} levels deep" in [fault.message for fault in faults]


@given(st.text())
def test_any_text_can_be_written_with_doubled_dollars(text: str) -> None:
    assert expand(text.replace("$", "$$"), VARIABLES) == Expansion(text)


@given(st.text(alphabet="${}:-A ", max_size=30))
def test_a_value_is_never_expanded_again(value: str) -> None:
    variables = Variables({"A": value}, "/")
    assert expand("<${A}|${B:-${A}}>", variables) == Expansion(f"<{value}|{value}>")


@given(st.text(alphabet="${}:-AB e", max_size=60))
def test_whatever_is_written_a_fault_never_tells_a_value(text: str) -> None:
    expansion = expand(text, Variables({"A": "hush"}, "/"))
    assert not any("hush" in repr(fault) for fault in expansion.faults)
    assert all(text[fault.index :].startswith("${") for fault in expansion.faults)


def test_the_representation_of_variables_has_no_values() -> None:
    assert "ada" not in repr(VARIABLES)
