"""Read an object of ours by a table of its options: each once, and nothing else in it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from plait.config.codes import TWO_SPELLINGS
from plait.config.expand import Variables
from plait.config.fields import Reader
from plait.config.layering import Changes
from plait.config.masking import quoted
from plait.config.spot import Findings, Spot


class Expanding(Struct, frozen=True):
    """A reader of something with placeholders in it."""

    read: Callable[[Spot, Findings, Variables], object]


class Option(Struct, frozen=True):
    """One setting: the field it fills, how it may be spelled, and what it takes."""

    field: str
    spellings: tuple[str, ...]
    read: Reader | Expanding
    guards: bool = False
    """Whether it says what may be called: a mistake in it must not let through what it was to stop."""


def section(kind: type[Struct], options: tuple[Option, ...]) -> Expanding:
    """A reader of an object that has a table of its own."""

    def read(spot: Spot, findings: Findings, variables: Variables) -> Changes:
        return Changes(kind, read_options(spot, options, findings, variables))

    return Expanding(read)


def read_options(
    spot: Spot, options: tuple[Option, ...], findings: Findings, variables: Variables
) -> dict[str, object]:
    """What an object of ours sets; whatever cannot be read is reported and left out."""
    if not isinstance(spot.node.value, dict):
        findings.wrong_type(spot, "an object")
        return {}
    by_spelling = {spelling: option for option in options for spelling in option.spellings}
    values: dict[str, object] = {}
    for key, member in spot.members():
        option = by_spelling.get(key)
        if option is None:
            _report_unknown(key, member, options, findings)
        elif option.field in values:
            message = f"{quoted(key)} says again what {quoted(_other(option, key))} says"
            findings.report(TWO_SPELLINGS, member, message, offset=member.key_offset)
        else:
            values[option.field] = read_option(option, member, findings, variables)
    return {field: value for field, value in values.items() if value is not None}


def read_option(option: Option, spot: Spot, findings: Findings, variables: Variables) -> object:
    """The value of one option; None where there was something to report."""
    errors_before = findings.errors
    match option.read:
        case Expanding(read=read_expanded):
            value = read_expanded(spot, findings, variables)
        case read:
            value = read(spot, findings)
    findings.unguarded |= option.guards and findings.errors > errors_before
    return value


def _report_unknown(key: str, spot: Spot, options: tuple[Option, ...], findings: Findings) -> None:
    known = {option.spellings[0]: option for option in options}
    meant = findings.unknown_field(key, spot, known, "error")
    # Where guards stand, a key that nobody knows may be one: misspelled, or of a later version.
    may_guard = any(option.guards for option in options) if meant is None else known[meant].guards
    findings.unguarded |= may_guard


def _other(option: Option, key: str) -> str:
    return next(spelling for spelling in option.spellings if spelling != key)
