"""Tools that look as if they ran commands or fetched URLs, and whose arguments no policy judges.

| code | what it says                                                        |
| ---- | ------------------------------------------------------------------- |
| W210 | tools that look as if they ran commands, and no policy covers them  |
| W211 | tools that look as if they reached URLs, and no policy covers them  |

They only look so: whoever writes a server names its tools. A guard is never chosen by such looks, and
the remedy is to say what a parameter is.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from msgspec import MsgspecError, Struct
from msgspec.json import decode

from plait.config.model import ParameterSetting
from plait.config.problem import Problem, Where
from plait.pipeline.compose import Layer
from plait.pipeline.permissions import PermissionFilter
from plait.pipeline.policy import COVERED, SecurityGuard
from plait.pipeline.rules import subject_of
from plait.routing.catalog import Route

RUNS_COMMANDS, REACHES_URLS = "W210", "W211"

_PARAMETERS = {"code": "command", **COVERED}
_WORDS = {
    **dict.fromkeys(("exec", "execute", "shell", "bash", "terminal", "run", "spawn", "eval"), "command"),
    **dict.fromkeys(("fetch", "download", "curl", "wget", "http", "browse", "crawl", "scrape"), "url"),
}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_DEEPEST = 16


class Uncovered(Struct, frozen=True):
    """One tool, what its arguments seem to be, and by which parameter; none: by the tool's own name."""

    tool: str
    kind: str
    parameter: str = ""

    def __str__(self) -> str:
        return f"{self.tool} ({self.parameter or 'by its name'})"


def uncovered(
    routes: Iterable[Route], guards: Sequence[Layer], declared: Sequence[ParameterSetting]
) -> list[Uncovered]:
    """What somebody may call and nobody judges; `declared` is what the configuration says of parameters."""
    layers: list[object] = list(guards)
    security = next((guard for guard in layers if isinstance(guard, SecurityGuard)), None)
    filters = [guard for guard in layers if isinstance(guard, PermissionFilter)]
    return [
        found
        for route in routes
        if all(_seen_by_anybody(route, each) for each in filters)
        for found in _Looking(route, security, declared).found()
    ]


def warnings(found: Sequence[Uncovered], server: str, where: Where | None) -> list[Problem]:
    """One for each kind that this server has."""
    by_kind = ([each for each in found if each.kind == kind] for kind in ("command", "url"))
    return [_warning(alike, server, where) for alike in by_kind if alike]


def _warning(alike: Sequence[Uncovered], server: str, where: Where | None) -> Problem:
    """The words name all of them; the remedy is written out for the first."""
    first = alike[0]
    runs = first.kind == "command"
    code, section = (RUNS_COMMANDS, "commands") if runs else (REACHES_URLS, "urls")
    seem = "looks as if it" if len(alike) == 1 else "look as if they"
    does = "ran commands" if runs else "reached URLs"
    binding = f'"parameters": {{"{first.tool}": {{"{first.parameter or "PARAMETER"}": "{first.kind}"}}}}'
    return Problem(
        code=code,
        message=f"{', '.join(map(str, alike))} {seem} {does}, and no policy judges the arguments",
        where=where,
        server=server,
        hints=(
            f'to have them judged: "plait": {{"policy": {{"{section}": {{}}, {binding}}}}}',
            f'to leave them on purpose: "none" in place of "{first.kind}"',
            f'to forbid them: "plait": {{"rules": [{{"deny": "{first.tool}"}}]}}',
        ),
        severity="warning",
    )


def _seen_by_anybody(route: Route, filter: PermissionFilter) -> bool:
    """A pattern of identities stands for those who match it."""
    identities = {"anonymous", *(rule.identity for rule in filter.rules)}
    return any(filter.rules.visible(subject_of(route), identity) for identity in identities)


class _Looking:
    """One tool, looked at."""

    def __init__(
        self, route: Route, security: SecurityGuard | None, declared: Sequence[ParameterSetting]
    ) -> None:
        self._route = route
        self._security = security
        self._declared = declared

    def found(self) -> list[Uncovered]:
        parameters = _parameters(self._route)
        if parameters is not None and not parameters:
            return []  # nothing in a call of it could be judged
        named = {
            kind: name
            for name in reversed(parameters or [])
            if (kind := _PARAMETERS.get(name.lower())) and not self._is_settled(name)
        }
        if named:
            return [Uncovered(self._route.exposed, kind, name) for kind, name in named.items()]
        words = [word.lower() for word in _WORD.findall(self._route.native_name)]
        kinds = dict.fromkeys(_WORDS[word] for word in words if word in _WORDS)
        if any(map(self._is_settled, parameters or [])):
            return []
        return [Uncovered(self._route.exposed, kind) for kind in kinds]

    def _is_settled(self, parameter: str) -> bool:
        """Is it judged, or has the user said that it need not be?

        A server that says so of itself excuses nobody.
        """
        tool = self._route.exposed
        for each in self._declared:
            if fnmatchcase(tool, each.tool) and fnmatchcase(parameter, each.parameter):
                return each.kind == "none" or self._judges(each.kind)
        return self._judges({**COVERED, **self._route.declared()}.get(parameter.lower(), ""))

    def _judges(self, kind: str) -> bool:
        return self._security is not None and kind in self._security.covered(self._route.server)


def _parameters(route: Route) -> list[str] | None:
    """The names of all parameters, at any depth; None where the schema does not say."""
    try:
        schema: object = decode(route.schema) if route.schema is not None else None
    except (MsgspecError, RecursionError):
        return None
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        return None
    return list(dict.fromkeys(_names(schema, 0)))


def _names(schema: object, depth: int) -> Iterator[str]:
    inner: Iterable[object] = ()
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            yield from properties
        inner = schema.values()
    elif isinstance(schema, list):
        inner = schema
    if depth < _DEEPEST:
        for each in inner:
            yield from _names(each, depth + 1)
