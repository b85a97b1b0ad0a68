"""`plait up`: serve clients over HTTP, until somebody says stop."""

import argparse
import asyncio
import contextlib
import errno
import io
import logging
import os
import resource
import socket
import sys

from msgspec.structs import replace

from plait.assemble import assembled
from plait.cli.arrivals import announce, healths
from plait.cli.exits import OK, UNEXPECTED
from plait.cli.files import find
from plait.cli.following import follow_files
from plait.cli.front_door import FrontDoor, front_door
from plait.cli.loop import run as run_loop
from plait.cli.screen import Screen
from plait.cli.signals import on_signals
from plait.compositor import Compositor
from plait.config.access import Place
from plait.config.model import Config, Settings
from plait.downstream.http import HttpApp
from plait.downstream.http_limits import HttpLimits
from plait.downstream.listening import Listener, bind
from plait.pipeline.grants import GrantFilter
from plait.version import VERSION

DRAIN = 5.0
"""Seconds for requests that are running when we are told to stop."""
LAST_BYTES = 1.0
"""Seconds for answers on their way."""
ROUND = 10.0
"""Seconds between two looks for sessions whose token was revoked."""
SPARE_FILES = 256
"""Descriptors that are not for clients: servers, the audit, outbound connections."""


def run(options: argparse.Namespace) -> int:
    config = find(options.config)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # what strangers send is not worth a line
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # whoever reads our output in a pipe waits for it
    return run_loop(_up(config, options, Screen()))


async def _up(config: Config | None, options: argparse.Namespace, screen: Screen) -> int:
    settings = config.settings if config is not None else Settings()
    place = Place(
        options.host or settings.listen.host, settings.listen.port if options.port is None else options.port
    )
    stop = on_signals()
    async with front_door(settings, place, os.environ) as door:
        try:
            listening = bind(place.host, place.port)
        except OSError as problem:
            screen.note(f"error: cannot listen on {place}: {_why(problem)}")
            return UNEXPECTED
        with listening:
            place = replace(place, port=listening.getsockname()[1])
            async with assembled(config, os.environ, [GrantFilter()]) as assembly:
                await follow_files(assembly.compositor, options.config)
                await _serve(assembly.compositor, door, listening, place, stop, screen)
    return OK


async def _serve(
    compositor: Compositor,
    door: FrontDoor,
    listening: socket.socket,
    place: Place,
    stop: "asyncio.Future[None]",
    screen: Screen,
) -> None:
    limits = _limits(compositor.settings)
    app = HttpApp(
        compositor,
        door.access,
        limits=limits,
        servers=lambda: healths(compositor.registry.mounts),
        documents=door.documents,
    )
    compositor.registry.greet_all()
    listener = Listener(app, limits)
    await listener.open(listening)
    _welcome(door, place, screen)
    async with asyncio.TaskGroup() as group:
        beside = [group.create_task(announce(compositor, screen)), group.create_task(_make_rounds(app))]
        await stop
        for task in beside:
            task.cancel()
    screen.note("stopping")
    await _wind_down(app, listener)


async def _wind_down(app: HttpApp, listener: Listener) -> None:
    """What runs comes to its answers, unless somebody insists."""
    insist = on_signals()
    listener.stop()
    finishing = asyncio.get_running_loop().create_task(app.drain(DRAIN))
    await asyncio.wait((finishing, insist), return_when=asyncio.FIRST_COMPLETED)
    finishing.cancel()
    await asyncio.wait((finishing,))
    await app.aclose()
    await listener.aclose(0 if insist.done() else LAST_BYTES)


async def _make_rounds(app: HttpApp) -> None:
    while True:
        await asyncio.sleep(ROUND)
        await app.expel()


def _welcome(door: FrontDoor, place: Place, screen: Screen) -> None:
    host = "127.0.0.1" if place.host in ("0.0.0.0", "::") else place.host
    url = f"http://{replace(place, host=host)}/mcp"
    proof = "" if door.anonymous else ' --header "Authorization: Bearer TOKEN"'
    screen.say(f"plait {VERSION} at {url}", "bold")
    screen.say("connect a client, for example Claude Code:")
    screen.say(f"  claude mcp add --transport http plait {url}{proof}")


def _limits(settings: Settings) -> HttpLimits:
    """As many connections as there can be descriptors for; we ask for as many as we may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.http.max_connections + SPARE_FILES
    if soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return HttpLimits(
        body_bytes=settings.max_message_bytes,
        sessions=settings.http.max_sessions,
        idle=settings.http.session_idle,
        connections=max(16, min(settings.http.max_connections, soft - SPARE_FILES)),
    )


def _why(problem: OSError) -> str:
    if problem.errno == errno.EADDRINUSE:
        return "something else listens there already; take another port with --port"
    return (problem.strerror or str(problem)).lower()
