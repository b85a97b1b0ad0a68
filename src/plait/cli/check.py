"""`plait check`: is the configuration right, and do the servers start?"""

import argparse
import os

from msgspec import Struct

from plait.cli.cautions import cautions
from plait.cli.exits import CONFIG, OK, UNREACHABLE
from plait.cli.files import find
from plait.cli.loop import run as run_loop
from plait.cli.screen import Screen
from plait.cli.session import Looking, describe, looking
from plait.config.command import resolve_command
from plait.config.environment import server_environment
from plait.config.masking import mask_url
from plait.config.model import Config, HttpServer, PythonServer, StdioServer
from plait.config.problem import Problem
from plait.errors import ConfigError, Unmountable
from plait.loading import load_provider
from plait.mounts.mount import Mount
from plait.mounts.state import MountState


class Finding(Struct, omit_defaults=True):
    """One line of the report."""

    server: str
    ok: bool
    what: str
    warning: bool = False


class Report(Struct):
    """Everything that was found, in the order in which it is told."""

    problems: list[Problem]
    resolved: list[Finding]
    started: list[Finding]

    @property
    def warned(self) -> bool:
        return any(problem.severity == "warning" for problem in self.problems) or any(
            finding.warning for finding in self.started
        )


def run(options: argparse.Namespace) -> int:
    screen = Screen()
    config = find(options.config)
    report = Report([], [], [])
    if config is None:
        screen.note("no configuration file: the built-in tools are served")
    else:
        report = Report([*config.problems, *cautions(config)], _resolve(config), [])
    if options.start:
        run_loop(_start(config, report, screen))
    _show(config, report, options.json, screen)
    return _verdict(report, options.strict)


def _resolve(config: Config) -> list[Finding]:
    """Does each command exist where the server will look for it? A URL is asked only by --start."""
    findings = []
    for server in config.servers:
        if not isinstance(server, StdioServer):
            findings.append(_other(server))
            continue
        path = server_environment(server, config.settings, os.environ).get("PATH", os.defpath)
        try:
            findings.append(Finding(server.name, True, resolve_command(server.command, path, server.cwd)))
        except ConfigError as problem:
            findings.append(Finding(server.name, False, str(problem)))
    return findings


def _other(server: HttpServer | PythonServer) -> Finding:
    if isinstance(server, HttpServer):
        return Finding(server.name, True, mask_url(server.url))
    try:
        load_provider(server.module, server.where)
    except Unmountable as problem:
        return Finding(server.name, False, str(problem))
    return Finding(server.name, True, server.module)


async def _start(config: Config | None, report: Report, screen: Screen) -> None:
    """Start each server once, and see what it lists."""
    async with looking(config, screen, awake=True) as seen:
        for mount in seen.mounts:
            if mount.state is not MountState.ACTIVE:
                report.started.append(Finding(mount.name, False, str(describe(mount)["reason"])))
            else:
                _look_at(mount, config, seen, report)


def _look_at(mount: Mount, config: Config | None, seen: Looking, report: Report) -> None:
    from plait.cli.coverage import uncovered, warnings  # noqa: PLC0415  brings the URL parser along

    routes = seen.compositor.registry.catalog.tools.routes.values()
    own = [route for route in routes if route.upstream in mount.instances]
    report.started.append(Finding(mount.name, True, f"{len(own)} tools"))
    if mount.link is not None and mount.link.warning:
        report.started.append(Finding(mount.name, True, mount.link.warning, warning=True))
    places = {server.name: server.where for server in config.servers} if config is not None else {}
    found = uncovered(own, seen.guards, seen.compositor.settings.policy.parameters)
    report.problems.extend(warnings(found, mount.name, places.get(mount.name)))


def _show(config: Config | None, report: Report, as_json: bool, screen: Screen) -> None:
    findings = report.resolved + report.started
    if as_json:
        problems = [_as_json(problem) for problem in report.problems]
        screen.json({"files": config.files if config else (), "problems": problems, "servers": findings})
        return
    for problem in report.problems:
        screen.note(problem.render())
    for finding in findings:
        mark, style = ("!", "warn") if finding.warning else ("✓", "good") if finding.ok else ("✗", "bad")
        screen.say(f"{mark} {finding.server}  {finding.what}", style)


def _as_json(problem: Problem) -> dict[str, object]:
    return {
        "code": problem.code,
        "severity": problem.severity,
        "server": problem.server,
        "where": None if problem.where is None else str(problem.where),
        "message": problem.message,
        "hints": problem.hints,
    }


def _verdict(report: Report, strict: bool) -> int:
    wrong = any(problem.severity == "error" for problem in report.problems)
    if wrong or not all(finding.ok for finding in report.resolved) or (strict and report.warned):
        return CONFIG
    return OK if all(finding.ok for finding in report.started) else UNREACHABLE
