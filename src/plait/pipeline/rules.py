"""The one small language of permissions: an ordered list of rules, the first that matches decides.

    {"deny": "fs__write_*", "unless": {"path": "/tmp/**"}, "reason": "read-only project"}

A rule names exposed names (of resources: URIs) by a pattern with `*` and `?`. A bare name, one without
a separator, means in a `deny` every server's tool of that name, and in an `allow` only the built-in
one: forbidding reaches far, permitting does not. What no rule matches is allowed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal

from msgspec import Struct

from plait.session.exchange import Destination

BUILTIN = "builtin"


class Subject(Struct, frozen=True, gc=False):
    """What is decided about."""

    exposed: str
    native: str
    server: str
    """The prefix of the mount it belongs to."""


def subject_of(destination: Destination) -> Subject:
    return Subject(destination.exposed, destination.native_name, destination.server)


class Rule(Struct, frozen=True):
    """One line of the list."""

    effect: Literal["allow", "deny"]
    pattern: str
    unless: Mapping[str, str] = {}
    """The rule does not apply where every one of these arguments is like this."""
    identity: str = "*"
    reason: str = ""
    where: str = ""
    """The place in a file, for explanations."""

    def names(self, subject: Subject, identity: str) -> bool:
        """Is this rule about that, for that caller?"""
        if not fnmatchcase(identity, self.identity):
            return False
        if fnmatchcase(subject.exposed, self.pattern):
            return True
        reaches = self.effect == "deny" or subject.server == BUILTIN
        return reaches and subject.native != subject.exposed and fnmatchcase(subject.native, self.pattern)

    def excused(self, arguments: Mapping[str, object]) -> bool:
        """Do the arguments meet `unless`? A missing one never does."""
        return bool(self.unless) and all(
            _like(arguments.get(name), pattern, strictly=self.effect == "deny")
            for name, pattern in self.unless.items()
        )


class Decision(Struct, frozen=True, gc=False):
    """Whether, by which rule, and why."""

    allowed: bool
    rule: str = ""
    reason: str = ""


ALLOWED = Decision(True)


class Rules:
    """The list, in order. The same function decides what is listed and what may be called."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._rules = tuple(rules)
        self.conditional = any(rule.unless for rule in self._rules)
        """Does any decision depend on arguments?"""

    def __bool__(self) -> bool:
        return bool(self._rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    @classmethod
    def of_allowed(cls, allowed_tools: Sequence[str] | None) -> Rules:
        """The seeds' shorthand: None is everything, a list is that and nothing else."""
        if allowed_tools is None:
            return cls()
        return cls(
            [
                *(Rule("allow", name) for name in allowed_tools),
                Rule("deny", "*", reason="not among allowed_tools"),
            ]
        )

    def visible(self, subject: Subject, identity: str) -> bool:
        """Is there a call of it that would be allowed? Only then is it shown, and found by its name."""
        for rule in self._rules:
            if rule.names(subject, identity) and not (rule.effect == "deny" and rule.unless):
                return rule.effect == "allow"
        return True

    def decide(self, subject: Subject, identity: str, arguments: Mapping[str, object]) -> Decision:
        for number, rule in enumerate(self._rules, 1):
            if rule.names(subject, identity) and not rule.excused(arguments):
                return Decision(rule.effect == "allow", _called(number, rule), _why(rule, arguments))
        return ALLOWED


def _called(number: int, rule: Rule) -> str:
    return f"rule {number} ({rule.where})" if rule.where else f"rule {number}"


def _why(rule: Rule, arguments: Mapping[str, object]) -> str:
    """The user's own reason, and which argument was not as it should be."""
    outside = [
        f"argument {name}={arguments.get(name)!r} is not like {pattern}"
        for name, pattern in rule.unless.items()
        if not _like(arguments.get(name), pattern, strictly=rule.effect == "deny")
    ]
    return "; ".join(part for part in (rule.reason, *outside) if part)


def _like(value: object, pattern: str, *, strictly: bool) -> bool:
    """Is the value, or every one of a list, like the pattern?

    `/tmp/../etc/passwd` begins with `/tmp/` and is not there: a text counts as it is written and with
    its dots resolved. Strictly both must match; otherwise one is enough. Either way the doubt is the
    caller's.
    """
    if isinstance(value, list):
        return bool(value) and all(_like(each, pattern, strictly=strictly) for each in value)
    if not isinstance(value, str):
        return value is not None and fnmatchcase(str(value), pattern)
    spellings = {value, posixpath.normpath(value)} if "/" in value or value.startswith(".") else {value}
    found = [fnmatchcase(spelling, pattern) for spelling in spellings]
    return all(found) if strictly else any(found)
