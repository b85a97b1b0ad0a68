"""Replace placeholders in a text by what they stand for, once.

    placeholder = "${" [ "env:" ] NAME [ ":-" default ] "}"      NAME = [A-Za-z_][A-Za-z0-9_]*
    default     = text and placeholders, up to the next "}"

`$$` is a `$`; any other `$` is text, so `$VAR` stays what it is. As in a shell, the default counts when
the variable is not set or empty, and only then is it expanded. What a variable holds is never looked
at again: a `${…}` in a value is text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from msgspec import Struct

from plait.config.codes import BAD_PLACEHOLDER, UNSET_VARIABLE

MAX_NESTING = 20

_SIGN = re.compile(r"\$\$|\$\{|\}")
_NAME = re.compile(r"(?P<env>env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*+|/)(?=\}|:-)")
_OTHER_KIND = re.compile(r"(?P<kind>[A-Za-z]++):")


class Fault(Struct, frozen=True):
    """A placeholder that has no value; index is where its `$` stands in the text."""

    code: str
    message: str
    index: int
    hints: tuple[str, ...] = ()


class Expansion(Struct, frozen=True):
    """A text with its placeholders replaced; with faults it is not to be used."""

    text: str
    faults: tuple[Fault, ...] = ()


class Variables(Struct, frozen=True):
    """What placeholders may stand for."""

    environ: Mapping[str, str]
    workspace: str

    def __repr__(self) -> str:
        return f"Variables({len(self.environ)} in the environment, workspace={self.workspace!r})"

    def named(self, name: str) -> str | None:
        """The value of a name without a kind; our own names come before the environment's."""
        match name:
            case "userHome":
                return self.environ.get("HOME")
            case "workspaceFolder":
                return self.workspace
            case "workspaceFolderBasename":
                return os.path.basename(self.workspace)
            case "pathSeparator" | "/":
                return os.sep
            case _:
                return self.environ.get(name)


def expand(text: str, variables: Variables) -> Expansion:
    """Replace every placeholder; those that have no value are told as faults, all of them."""
    if "$" not in text:
        return Expansion(text)
    expander = _Expander(text, variables)
    expanded, _ = expander.passage(0, depth=0, wanted=True)
    return Expansion(expanded, tuple(expander.faults))


class _Expander:
    def __init__(self, text: str, variables: Variables) -> None:
        self.faults: list[Fault] = []
        self._text = text
        self._variables = variables

    def passage(self, position: int, *, depth: int, wanted: bool) -> tuple[str, int]:
        """Text up to the end or, in a default, up to the `}` that ends it; and where that is."""
        parts: list[str] = []
        while sign := _SIGN.search(self._text, position):
            parts.append(self._text[position : sign.start()])
            position = sign.end()
            if sign[0] == "$$":
                parts.append("$")
            elif sign[0] == "${":
                part, position = self._placeholder(sign.start(), depth=depth, wanted=wanted)
                parts.append(part)
            elif depth:
                return "".join(parts), sign.start()
            else:
                parts.append("}")
        return "".join(parts) + self._text[position:], len(self._text)

    def _placeholder(self, start: int, *, depth: int, wanted: bool) -> tuple[str, int]:
        """The value of the placeholder at start, and where the text goes on behind it."""
        name = _NAME.match(self._text, start + 2)
        if name is None or depth >= MAX_NESTING:
            return self._unreadable(start, depth)
        look_up = self._variables.environ.get if name["env"] else self._variables.named
        value = look_up(name["name"])
        if self._text.startswith("}", name.end()):
            if value is None and wanted:
                self.faults.append(_unset(name["name"], start))
            return value or "", name.end() + 1
        default, end = self.passage(name.end() + 2, depth=depth + 1, wanted=wanted and not value)
        if end == len(self._text):
            self._fault(start, "'${' without '}'")
        return value or default, end + 1

    def _unreadable(self, start: int, depth: int) -> tuple[str, int]:
        """Tell why, and go on behind the next `}`: another placeholder may be wrong too."""
        end = self._text.find("}", start)
        kind = _OTHER_KIND.match(self._text, start + 2)
        if depth >= MAX_NESTING:
            self._fault(start, f"placeholders nested more than {MAX_NESTING} levels deep")
        elif end < 0:
            self._fault(start, "'${' without '}'")
        elif kind is not None:
            self._fault(start, f"placeholders of the kind ${{{kind['kind']}:…}} are not known", _INSTEAD)
        else:
            self._fault(start, "a placeholder that cannot be read", _INSTEAD)
        return "", len(self._text) if end < 0 else end + 1

    def _fault(self, start: int, message: str, *hints: str) -> None:
        self.faults.append(Fault(BAD_PLACEHOLDER, message, start, (*hints, "write $$ for a literal $")))


_INSTEAD = "known are ${NAME}, ${NAME:-default}, ${env:NAME}, ${userHome} and ${workspaceFolder}"


def _unset(name: str, start: int) -> Fault:
    if name == "userHome":
        return Fault(UNSET_VARIABLE, "HOME is not set, so ${userHome} has no value", start)
    message = f"environment variable {name} is not set"
    return Fault(UNSET_VARIABLE, message, start, (f"set it, or give a default: ${{{name}:-…}}",))
