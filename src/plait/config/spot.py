"""A place in a document while it is being read, and the problems found on the way."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from msgspec import Struct

from plait.config.codes import UNKNOWN_FIELD, WRONG_TYPE
from plait.config.document import Document
from plait.config.excerpt import excerpt
from plait.config.masking import quoted
from plait.config.problem import Problem, Severity, Where
from plait.config.syntax import Node

_PLAIN_KEY = re.compile(r"[\w$-]{1,80}")
_LONGEST_TYPO = 40


class Spot(Struct, frozen=True):
    """A node, the document it is in, and the way to it."""

    document: Document
    node: Node
    path: str = ""

    def members(self) -> Iterator[tuple[str, Spot]]:
        """Every entry of an object; nothing if this is none. A null is as good as absent."""
        if isinstance(self.node.value, dict):
            for key, node in self.node.value.items():
                if node.value is not None:
                    yield key, self._below(key, node)

    def member(self, *keys: str) -> Spot | None:
        """The entry under the first of these keys that is there."""
        if isinstance(self.node.value, dict):
            for key in keys:
                node = self.node.value.get(key)
                if node is not None and node.value is not None:
                    return self._below(key, node)
        return None

    def items(self) -> Iterator[Spot]:
        """Every item of a list; nothing if this is none."""
        if isinstance(self.node.value, tuple):
            for index, node in enumerate(self.node.value):
                yield Spot(self.document, node, f"{self.path}[{index}]")

    @property
    def key_offset(self) -> int:
        """Where the key stands that leads here."""
        return self.node.start if self.node.key_start is None else self.node.key_start

    def where(self) -> Where:
        """Where the key stands, as a place."""
        return self.document.where(self.key_offset, self.path)

    def _below(self, key: str, node: Node) -> Spot:
        step = key if _PLAIN_KEY.fullmatch(key) else quoted(key)
        return Spot(self.document, node, f"{self.path}.{step}" if self.path else step)


class Findings:
    """Collects the problems of one server, or of what belongs to none."""

    def __init__(self, server: str | None = None) -> None:
        self.problems: list[Problem] = []
        self.errors = 0
        """How many of them are more than warnings."""
        self.unguarded = False
        """Whether one of those is in what says what may be called."""
        self._server = server

    @property
    def failed(self) -> bool:
        """Whether one of them is an error."""
        return self.errors > 0

    def report(
        self,
        code: str,
        spot: Spot,
        message: str,
        *hints: str,
        offset: int | None = None,
        severity: Severity = "error",
    ) -> None:
        """Note a problem, at the value unless an offset says otherwise."""
        at = spot.node.start if offset is None else offset
        self.errors += severity == "error"
        self.problems.append(
            Problem(
                code=code,
                message=message,
                where=spot.document.where(at, spot.path),
                server=self._server,
                excerpt=excerpt(spot.document, at),
                hints=hints,
                severity=severity,
            )
        )

    def wrong_type(self, spot: Spot, expected: str, *hints: str) -> None:
        """Note a value of the wrong type."""
        self.report(WRONG_TYPE, spot, f"expected {expected}, got {kind(spot.node)}", *hints)

    def unknown_field(self, key: str, spot: Spot, known: Collection[str], severity: Severity) -> str | None:
        """Note a key that means nothing here, and the one that was perhaps meant, which is given back."""
        close = close_match(key, known)
        meant = f". Did you mean '{close}'?" if close else ""
        hints = () if close else (f"known are {', '.join(sorted(known))}",)
        message = f"unknown field {quoted(key)}{meant}"
        self.report(UNKNOWN_FIELD, spot, message, *hints, offset=spot.key_offset, severity=severity)
        return close


def kind(node: Node) -> str:
    """What a value is, in a reader's words."""
    match node.value:
        case bool():
            return "true" if node.value else "false"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case tuple():
            return "a list"
        case dict():
            return "an object"
        case None:
            return "null"


def close_match(name: str, known: Collection[str]) -> str | None:
    """The known name that a typing mistake away is this one; case does not count."""
    # Paid for only when there is something to report: difflib doubles the time to import this package.
    from difflib import get_close_matches  # noqa: PLC0415

    by_folded = {candidate.casefold(): candidate for candidate in known}
    if len(name) > _LONGEST_TYPO:
        return None
    found = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.8)
    return by_folded[found[0]] if found else None
