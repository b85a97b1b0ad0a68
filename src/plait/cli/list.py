"""`plait list`: the tools of every server, as signatures."""

import argparse
from collections.abc import Sequence
from fnmatch import fnmatchcase

from plait.cli.exits import OK, UNREACHABLE
from plait.cli.files import find
from plait.cli.loop import run as run_loop
from plait.cli.screen import Screen
from plait.cli.session import Looking, describe, looking
from plait.cli.signature import signature
from plait.mounts.mount import Mount


def run(options: argparse.Namespace) -> int:
    return run_loop(_list(options, Screen()))


async def _list(options: argparse.Namespace, screen: Screen) -> int:
    async with looking(find(options.config), screen) as seen:
        tools = [
            tool for tool in await seen.client.list_tools() if fnmatchcase(str(tool["name"]), options.pattern)
        ]
        if options.json:
            screen.json(_as_json(seen, tools))
        else:
            _show(seen, tools, options.pattern, screen)
        failed = [mount for mount in seen.mounts if not mount.usable]
        return UNREACHABLE if failed and len(failed) == len(seen.mounts) else OK


def _as_json(seen: Looking, tools: Sequence[dict[str, object]]) -> dict[str, object]:
    withheld = [
        {"server": item.prefix, "kind": item.kind.value, "name": item.name, "reason": item.reason}
        for item in seen.compositor.registry.catalog.withheld
    ]
    return {"tools": tools, "servers": [describe(mount) for mount in seen.mounts], "withheld": withheld}


def _show(seen: Looking, tools: Sequence[dict[str, object]], pattern: str, screen: Screen) -> None:
    routes = seen.compositor.registry.catalog.tools.routes
    for mount in seen.mounts:
        own = [tool for tool in tools if routes[str(tool["name"])].upstream in mount.instances]
        if not own and pattern != "*" and mount.usable:
            continue
        _head(mount, len(own), screen)
        for tool in own:
            screen.say(f"  {signature(str(tool['name']), tool.get('inputSchema'))}")
            first_line = str(tool.get("description") or "").strip().partition("\n")[0]
            if first_line:
                screen.say(f"      {first_line}", "dim")
    for item in seen.compositor.registry.catalog.withheld:
        screen.note(f"withheld: {item.prefix} {item.name}: {item.reason}")


def _head(mount: Mount, count: int, screen: Screen) -> None:
    if mount.usable:
        screen.say(f"{mount.name}  {count} tool{'' if count == 1 else 's'}", "bold")
    else:
        screen.say(f"{mount.name}  {mount.state.value}: {mount.reason}", "bad")
