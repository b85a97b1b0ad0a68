"""Read one value of a known type, or report what is there instead."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from math import isfinite
from typing import TypeAlias

from plait.config.codes import IMPOSSIBLE_VALUE, UNSET_VARIABLE
from plait.config.document import plain
from plait.config.expand import Variables, expand
from plait.config.masking import quoted
from plait.config.model import is_prefix
from plait.config.spot import Findings, Spot

Reader: TypeAlias = Callable[[Spot, Findings], object]
"""Gives None where there was something to report: null itself never reaches a reader."""


def text(spot: Spot, findings: Findings) -> str | None:
    """A string, as it stands in the file."""
    if not isinstance(spot.node.value, str):
        hints = () if isinstance(spot.node.value, dict | tuple) else ("put it in double quotes",)
        findings.wrong_type(spot, "a string", *hints)
        return None
    if "\0" in spot.node.value:
        findings.report(IMPOSSIBLE_VALUE, spot, "a NUL character, which no program can be given")
        return None
    return spot.node.value


def expanded(spot: Spot, findings: Findings, variables: Variables) -> str | None:
    """A string with its placeholders replaced."""
    source = text(spot, findings)
    if source is None:
        return None
    expansion = expand(source, variables)
    for fault in expansion.faults:
        offset = spot.document.inside(spot.node, fault.index)
        findings.report(fault.code, spot, fault.message, *fault.hints, offset=offset)
    return None if expansion.faults else expansion.text


def folder(spot: Spot, findings: Findings, variables: Variables) -> str | None:
    """The absolute path of a folder; `~` is the user's own, and a relative one is in the project."""
    found = expanded(spot, findings, variables)
    if found == "":
        findings.report(IMPOSSIBLE_VALUE, spot, "an empty string")
    if not found:
        return None
    first, slash, rest = found.partition("/")
    if first == "~":
        first = variables.environ.get("HOME", "")
        if not first:
            findings.report(UNSET_VARIABLE, spot, "HOME is not set, so ~ has no value")
            return None
    elif first.startswith("~"):
        findings.report(IMPOSSIBLE_VALUE, spot, "the folder of another user", "write the whole path")
        return None
    return os.path.normpath(os.path.join(variables.workspace, f"{first}{slash}{rest}"))


def filled_text(spot: Spot, findings: Findings) -> str | None:
    """A string that is not empty."""
    found = text(spot, findings)
    if found == "":
        findings.report(IMPOSSIBLE_VALUE, spot, "an empty string")
        return None
    return found


def truth(spot: Spot, findings: Findings) -> bool | None:
    """true or false."""
    if isinstance(spot.node.value, bool):
        return spot.node.value
    findings.wrong_type(spot, "true or false")
    return None


def texts(spot: Spot, findings: Findings) -> tuple[str, ...] | None:
    """A list of strings."""
    if not isinstance(spot.node.value, tuple):
        findings.wrong_type(spot, "a list of strings")
        return None
    found = [text(item, findings) for item in spot.items()]
    kept = tuple(item for item in found if item is not None)
    return kept if len(kept) == len(found) else None


def entries(spot: Spot, findings: Findings, read: Reader, expected: str) -> dict[str, object] | None:
    """An object with any keys and values of one type; those that cannot be read are left out."""
    if not isinstance(spot.node.value, dict):
        findings.wrong_type(spot, expected)
        return None
    found = {key: read(member, findings) for key, member in spot.members()}
    return {key: value for key, value in found.items() if value is not None}


def variable_names(spot: Spot, findings: Findings) -> tuple[str, ...] | None:
    """A list of names of environment variables."""
    if isinstance(spot.node.value, dict):
        hint = "values for one server stand in the entry's own 'env'; here go names that are passed on"
        findings.wrong_type(spot, "a list of names", hint)
        return None
    names = texts(spot, findings)
    if names is None or all(map(is_variable_name, names)):
        return names
    wrong = next(item for item in spot.items() if not is_variable_name(str(item.node.value)))
    # Not quoted: somebody may have written the value behind the name.
    findings.report(IMPOSSIBLE_VALUE, wrong, "expected the name of a variable, and only that")
    return None


def is_variable_name(name: str) -> bool:
    """Whether the operating system could hold a variable of this name."""
    return bool(name) and "=" not in name and "\0" not in name


def whole(minimum: int) -> Reader:
    """A reader of integers that are not too small."""

    def read(spot: Spot, findings: Findings) -> int | None:
        value = spot.node.value
        if not isinstance(value, int) or isinstance(value, bool):
            findings.wrong_type(spot, "a whole number")
        elif value < minimum:
            findings.report(IMPOSSIBLE_VALUE, spot, f"expected {minimum} or more")
        else:
            return value
        return None

    return read


def seconds(*, zero: bool = False) -> Reader:
    """A reader of durations."""

    def read(spot: Spot, findings: Findings) -> float | None:
        value = spot.node.value
        if not isinstance(value, int | float) or isinstance(value, bool):
            findings.wrong_type(spot, "a number of seconds")
        elif not _is_duration(value) or (value == 0 and not zero):
            findings.report(
                IMPOSSIBLE_VALUE,
                spot,
                f"expected {'0 or more' if zero else 'more than 0'} seconds, and no more than a year",
            )
        else:
            return float(value)
        return None

    return read


def one_of(choices: Collection[str]) -> Reader:
    """A reader of one of several strings."""
    listed = ", ".join(f"'{choice}'" for choice in choices)

    def read(spot: Spot, findings: Findings) -> str | None:
        found = text(spot, findings)
        if found is None or found in choices:
            return found
        findings.report(IMPOSSIBLE_VALUE, spot, f"{quoted(found)} is none of {listed}")
        return None

    return read


def prefix(spot: Spot, findings: Findings) -> str | None:
    """A prefix for a server's names; an empty one is for none."""
    found = text(spot, findings)
    if found is None or found == "" or is_prefix(found):
        return found
    hint = "a prefix has up to 50 of a-z 0-9 _ -, starts with a letter, holds no '__' and ends in no '_'"
    findings.report(IMPOSSIBLE_VALUE, spot, f"{quoted(found)} cannot be a prefix", hint)
    return None


def data(spot: Spot, findings: Findings) -> object:
    """An object that somebody else reads."""
    if isinstance(spot.node.value, dict):
        return plain(spot.node)
    findings.wrong_type(spot, "an object")
    return None


def _is_duration(value: int | float) -> bool:
    # A year is longer than anything waits, and a safe argument for every clock.
    return isfinite(value) and 0 <= value <= 366 * 86400
