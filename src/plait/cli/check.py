"""`plait check`: is the configuration right, and do the servers start?"""

import argparse
import os

from msgspec import Struct

from plait.assemble import Unmountable, load_provider
from plait.cli.exits import CONFIG, OK, UNREACHABLE
from plait.cli.files import find
from plait.cli.loop import run as run_loop
from plait.cli.screen import Screen
from plait.cli.session import describe, looking
from plait.config.command import resolve_command
from plait.config.environment import server_environment
from plait.config.model import Config, HttpServer, PythonServer, StdioServer
from plait.errors import ConfigError
from plait.mounts.mount import MountState


class Finding(Struct, omit_defaults=True):
    """One line of the report."""

    server: str
    ok: bool
    what: str
    warning: bool = False


def run(options: argparse.Namespace) -> int:
    screen = Screen()
    config = find(options.config)
    if config is None:
        screen.note("no configuration file: the built-in tools are served")
        config_findings: list[Finding] = []
    else:
        config_findings = _resolve(config)
    started = run_loop(_start(config, screen)) if options.start else []
    _report(config, config_findings + started, options.json, screen)
    return _verdict(config, config_findings, started, options.strict)


def _resolve(config: Config) -> list[Finding]:
    """Does each command exist where the server will look for it?"""
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
        return Finding(server.name, False, "an HTTP server: plait speaks stdio only so far")
    try:
        load_provider(server.module)
    except Unmountable as problem:
        return Finding(server.name, False, str(problem))
    return Finding(server.name, True, server.module)


async def _start(config: Config | None, screen: Screen) -> list[Finding]:
    """Start each server once, and see what it lists."""
    findings = []
    async with looking(config, screen) as seen:
        routes = seen.compositor.registry.catalog.tools.routes.values()
        for mount in seen.mounts:
            if mount.state is not MountState.ACTIVE:
                findings.append(Finding(mount.name, False, str(describe(mount)["reason"])))
                continue
            tools = sum(route.upstream is mount for route in routes)
            findings.append(Finding(mount.name, True, f"{tools} tools"))
            if mount.link is not None and mount.link.warning:
                findings.append(Finding(mount.name, True, mount.link.warning, warning=True))
    return findings


def _report(config: Config | None, findings: list[Finding], as_json: bool, screen: Screen) -> None:
    problems = config.problems if config is not None else ()
    if as_json:
        told = [
            {
                "code": p.code,
                "severity": p.severity,
                "server": p.server,
                "where": str(p.where),
                "message": p.message,
            }
            for p in problems
        ]
        screen.json({"files": config.files if config else (), "problems": told, "servers": findings})
        return
    for problem in problems:
        screen.note(problem.render())
    for finding in findings:
        mark, style = ("!", "warn") if finding.warning else ("✓", "good") if finding.ok else ("✗", "bad")
        screen.say(f"{mark} {finding.server}  {finding.what}", style)


def _verdict(config: Config | None, resolved: list[Finding], started: list[Finding], strict: bool) -> int:
    severities = {problem.severity for problem in config.problems} if config is not None else set()
    warned = "warning" in severities or any(finding.warning for finding in started)
    if "error" in severities or not all(finding.ok for finding in resolved) or (strict and warned):
        return CONFIG
    return OK if all(finding.ok for finding in started) else UNREACHABLE
