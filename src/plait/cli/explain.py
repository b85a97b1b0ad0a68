"""`plait explain`: why a tool is visible, hidden, renamed or withheld."""

import argparse

from plait.cli.exits import OK, TOOL_ERROR
from plait.cli.files import find
from plait.cli.loop import run as run_loop
from plait.cli.screen import Screen
from plait.cli.session import Looking, looking
from plait.pipeline.permissions import PermissionFilter
from plait.pipeline.rules import subject_of
from plait.routing.catalog import Route
from plait.routing.lookup import Aliases, Ambiguous
from plait.wire.spec import Kind


def run(options: argparse.Namespace) -> int:
    return run_loop(_explain(options, Screen()))


async def _explain(options: argparse.Namespace, screen: Screen) -> int:
    async with looking(find(options.config), screen) as seen:
        found = list(explanations(seen, options.tool, options.client))
        if options.json:
            screen.json({"tool": options.tool, "found": bool(found), "explanations": found})
        for line in () if options.json else found or [f"{options.tool}: nothing here has that name"]:
            screen.say(line)
        return OK if found else TOOL_ERROR


def explanations(seen: Looking, name: str, identity: str) -> list[str]:
    """Everything there is to say about a name, native or exposed."""
    catalog = seen.compositor.registry.catalog
    lines = [
        line
        for route in catalog.tools.routes.values()
        if name in (route.exposed, route.native_name)
        for line in _about(seen, route, identity)
    ]
    other = (
        None if name in catalog.tools.routes else Aliases(catalog.tools, seen.compositor.naming).find(name)
    )
    if isinstance(other, Ambiguous):
        lines.append(f"{name} could be any of {', '.join(other.candidates)}: a call by it is refused")
    elif other is not None:
        lines.append(f"a call of {name} goes to {other.exposed}: no other tool is called so")
    lines += [
        f"{each.prefix} offers {each.name}, which is withheld: {each.reason}"
        for each in catalog.withheld
        if each.kind is Kind.TOOLS and name in (each.name, f"{each.prefix}__{each.name}")
    ]
    lines += [
        f"server '{mount.name}' is not up, so none of its tools are known: {mount.absence}"
        for mount in seen.mounts
        if mount.prefix and name.startswith(mount.prefix) and not mount.usable
    ]
    return lines


def _about(seen: Looking, route: Route, identity: str) -> list[str]:
    plain = f"{route.server}{seen.compositor.naming.separator}{route.native_name}"
    lines = [f"{route.exposed} is {route.native_name} of the server '{route.server}'"]
    if route.server and route.exposed != plain:
        lines.append(f"  renamed: {plain} does not fit 64 characters of A-Z a-z 0-9 _ -")
    for guard in seen.guards:
        if isinstance(guard, PermissionFilter):
            shown = guard.rules.visible(subject_of(route), identity)
            decision = guard.rules.decide(subject_of(route), identity, {})
            by = f" by {decision.rule}" if decision.rule else ": no rule is about it"
            lines.append(f"  {'visible' if shown else 'hidden'} to {identity}{by}")
            if shown and not decision.allowed:
                lines.append(f"  some calls are denied: {decision.reason}")
    return lines
