"""From a Config to a running Compositor: the only module that knows every part."""

import logging
from collections.abc import Mapping

from plait.compositor import Compositor
from plait.config.model import Config, HttpServer, StdioServer
from plait.mounts.registry import AlreadyMounted
from plait.providers.tools.echo import EchoProvider
from plait.routing.naming import InvalidPrefix, MountPrefix
from plait.upstream.opening import StdioOpener
from plait.upstream.stderr import StderrLog

_log = logging.getLogger("plait")


def mount_all(compositor: Compositor, config: Config | None, environ: Mapping[str, str]) -> list[str]:
    """Mount what the configuration names, or the built-in tools where there is none.

    What cannot be mounted is said and left out; the rest is served.
    """
    if config is None:
        compositor.mount_provider(EchoProvider())
        return []
    complaints = [problem.render() for problem in config.problems]
    for server in config.servers:
        try:
            mount_one(compositor, server, environ)
        except (AlreadyMounted, InvalidPrefix, Unmountable) as problem:
            complaints.append(f"error: {server.where or server.name}: {problem}")
    for complaint in complaints:
        _log.warning("%s", complaint)
    return complaints


class Unmountable(Exception):
    """A server of a kind that this version cannot reach."""


def mount_one(compositor: Compositor, server: StdioServer | HttpServer, environ: Mapping[str, str]) -> None:
    if isinstance(server, HttpServer):
        raise Unmountable(f"'{server.name}' is an HTTP server, and plait speaks stdio only so far")
    given = server.settings.prefix
    prefix = (
        MountPrefix.of(server.name) if given is None else MountPrefix(given) if given else MountPrefix.none()
    )
    if given is None and prefix != server.name:
        _log.warning("server %r is mounted as %r", server.name, str(prefix))
    opener = StdioOpener(server, compositor.settings, environ, compositor.guardian, StderrLog())
    compositor.mount(prefix, opener, server.name, server.settings)
