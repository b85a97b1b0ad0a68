"""From whatever somebody mounts to the opener that starts or reaches it."""

from collections.abc import Mapping

from plait.config.model import HttpServer, PythonServer, Server, ServerSettings, Settings, StdioServer
from plait.errors import Unmountable
from plait.loading import is_provider, load_provider
from plait.providers.adapter import ProviderOpener
from plait.routing.naming import MountPrefix
from plait.upstream.inprocess import InProcessOpener, lowlevel_of
from plait.upstream.opening import Opener, StdioOpener
from plait.upstream.process import Guardian
from plait.upstream.stderr import StderrLog


def prefix_of(server: Server) -> MountPrefix:
    """The prefix that a server of a file is mounted under."""
    given = server.settings.prefix
    if given is None:
        return MountPrefix.of(server.name)
    return MountPrefix(given) if given else MountPrefix.none()


def name_of(server: object, prefix: MountPrefix) -> str:
    """What people call it; for display only."""
    given = getattr(server, "name", "") or getattr(server, "namespace", "")
    return given if isinstance(given, str) and given else str(prefix) or type(server).__name__


def settings_of(server: object) -> ServerSettings:
    """What a server of a file says of itself; other objects' settings are none of ours."""
    return (
        server.settings if isinstance(server, StdioServer | HttpServer | PythonServer) else ServerSettings()
    )


class Openers:
    """Knows the surroundings in which servers are opened."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], guardian: Guardian) -> None:
        self._settings = settings
        self._environ = environ
        self._guardian = guardian

    def of(self, server: object, name: str, settings: ServerSettings) -> Opener:
        """Raises Unmountable, a ValueError too, for what cannot be mounted."""
        match server:
            case StdioServer():
                return StdioOpener(server, self._settings, self._environ, self._guardian, StderrLog())
            case HttpServer():
                from plait.upstream.opening_http import HttpOpener  # noqa: PLC0415  brings the URL parser along

                return HttpOpener(server, self._environ)
            case PythonServer():
                return self.of(load_provider(server.module, server.where), name, settings)
        if isinstance(server, Opener):
            return server
        if is_provider(server):
            return ProviderOpener(server, settings.timeout, settings.stream)
        if lowlevel_of(server) is not None:
            return InProcessOpener(server, name, settings)
        kinds = "a StdioServer, an HttpServer, a ToolProvider, or a server object of fastmcp or mcp"
        raise Unmountable(f"{type(server).__name__} cannot be mounted: give {kinds}")
