"""From a Config to a running Compositor: the only module that knows every part.

What only some configurations need is imported when one needs it: a client waits for our start.
"""

import contextlib
import importlib
import inspect
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import TypeGuard

from msgspec import MsgspecError, Struct
from msgspec.json import decode

from plait.compositor import Compositor
from plait.config.folders import state_folder
from plait.config.model import Config, HttpServer, PythonServer, ServerSettings, Settings, StdioServer
from plait.config.problem import Where
from plait.errors import ConfigError
from plait.mounts.registry import AlreadyMounted
from plait.pipeline.compose import Layer
from plait.pipeline.configured import make_audit, make_guards
from plait.pipeline.kept import KeptResults
from plait.pipeline.redaction import secret_parameters
from plait.providers.adapter import ProviderOpener
from plait.providers.provider import ToolProvider
from plait.providers.results import PREFIX, ResultsOpener
from plait.routing.catalog import Route
from plait.routing.naming import InvalidPrefix, MountPrefix
from plait.upstream.inprocess import InProcessOpener, lowlevel_of
from plait.upstream.opening import Opener, StdioOpener
from plait.upstream.stderr import StderrLog

_log = logging.getLogger("plait")


class Unmountable(ConfigError):
    """A server that this version cannot reach, or whose object cannot be found."""


class Assembly(Struct):
    """What a configuration became."""

    compositor: Compositor
    guards: Sequence[Layer]
    complaints: list[str]
    """What is wrong with the configuration; everything else is served all the same."""


class SecretParameters:
    """Which parameters of a tool its own schema calls secret; read once for each listing of it."""

    def __init__(self) -> None:
        self.routes: Callable[[], Mapping[str, Route]] = dict
        self._known: dict[str, tuple[Route, Collection[str]]] = {}

    def __call__(self, name: str) -> Collection[str]:
        route = self.routes().get(name)
        if route is None:
            return ()
        known = self._known.get(name)
        if known is None or known[0] is not route:
            known = self._known[name] = route, _secrets_of(route)
        return known[1]


def _secrets_of(route: Route) -> Collection[str]:
    try:
        return () if route.schema is None else secret_parameters(decode(route.schema))
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return ()


@contextlib.asynccontextmanager
async def assembled(config: Config | None, environ: Mapping[str, str]) -> AsyncIterator[Assembly]:
    """Everything the configuration names, running; closed in the reverse order."""
    settings = config.settings if config is not None else Settings()
    async with contextlib.AsyncExitStack() as stack:
        store = KeptResults(state_folder(environ) / "results")
        stack.callback(store.close)
        builtin = settings.builtin or (config is None and settings.builtin is None)
        reader = f"{PREFIX}{settings.separator}read_result"
        guards = make_guards(settings, store, builtin=builtin, untouched=_untouched(config), reader=reader)
        secrets = SecretParameters()
        audit = make_audit(settings, environ, secrets)
        if audit is not None:
            stack.push_async_callback(audit.aclose)
        compositor = await stack.enter_async_context(
            Compositor(settings, guards if audit is None else [audit, *guards])
        )
        secrets.routes = lambda: compositor.registry.catalog.tools.routes
        if builtin:
            await _mount_builtin(compositor, environ, stack)
        complaints = _mount_all(compositor, config, environ)
        # Ours comes last: what somebody mounted is listed first.
        results = ResultsOpener(store, tool=settings.results.tool)
        with contextlib.suppress(AlreadyMounted):
            compositor.mount(MountPrefix(PREFIX), results, "results", ServerSettings(), pinned=True)
        yield Assembly(compositor, guards, complaints)


def _untouched(config: Config | None) -> set[str]:
    """The prefixes of servers whose results are not cleaned."""
    return (
        {prefix_of(server) for server in config.servers if not server.settings.sanitise} if config else set()
    )


def prefix_of(server: StdioServer | HttpServer | PythonServer) -> MountPrefix:
    """The prefix that a server of a file is mounted under."""
    given = server.settings.prefix
    if given is None:
        return MountPrefix.of(server.name)
    return MountPrefix(given) if given else MountPrefix.none()


async def _mount_builtin(
    compositor: Compositor, environ: Mapping[str, str], stack: contextlib.AsyncExitStack
) -> None:
    from plait.providers.tools.builtin import builtin_tools  # noqa: PLC0415  most files do without them

    tools = builtin_tools(compositor.settings, environ, compositor.guardian)
    compositor.mount_provider(await stack.enter_async_context(tools))


def _mount_all(compositor: Compositor, config: Config | None, environ: Mapping[str, str]) -> list[str]:
    """Mount what the configuration names. What cannot be mounted is said, and the rest is served."""
    complaints = [problem.render() for problem in config.problems] if config is not None else []
    for server in config.servers if config is not None else ():
        try:
            _mount_one(compositor, server, environ)
        except (AlreadyMounted, InvalidPrefix, Unmountable) as problem:
            complaints.append(f"error: {server.where or server.name}: {problem}")
    for complaint in complaints:
        _log.warning("%s", complaint)
    return complaints


def _mount_one(
    compositor: Compositor, server: StdioServer | HttpServer | PythonServer, environ: Mapping[str, str]
) -> None:
    prefix = prefix_of(server)
    if server.settings.prefix is None and prefix != server.name:
        _log.warning("server %r is mounted as %r", server.name, str(prefix))
    compositor.mount(prefix, _opener(compositor, server, environ), server.name, server.settings)


def _opener(
    compositor: Compositor, server: StdioServer | HttpServer | PythonServer, environ: Mapping[str, str]
) -> Opener:
    match server:
        case StdioServer():
            return StdioOpener(server, compositor.settings, environ, compositor.guardian, StderrLog())
        case PythonServer():
            return _python_opener(server)
        case HttpServer():
            raise Unmountable(f"'{server.name}' is an HTTP server, and plait speaks stdio only so far")


def _python_opener(server: PythonServer) -> Opener:
    found = load_provider(server.module, server.where)
    if _is_provider(found):
        return ProviderOpener(found, server.settings.timeout)
    return InProcessOpener(found, server.name, server.settings)


def load_provider(place: str, where: Where | None = None) -> object:
    """The provider, or MCP server object, at `package.module:name`; a class or a function without
    parameters is called for it.

    `where` is the place in the file that names it: modules beside that file are found too.
    """
    folders = _search_also(where)
    module_name, _, name = place.partition(":")
    try:
        made = _made(getattr(importlib.import_module(module_name), name))
        if _is_provider(made) or lowlevel_of(made) is not None:
            return made
    except ModuleNotFoundError as problem:
        looked = ", ".join(("the installed packages", *folders))
        raise Unmountable(f"cannot load {place}: {problem}; looked in {looked}") from problem
    except (Exception, SystemExit) as problem:  # whatever somebody's module does, the rest is served
        _log.debug("loading %s failed", place, exc_info=True)
        raise Unmountable(f"cannot load {place}: {type(problem).__name__}: {problem}") from problem
    wanted = "a ToolProvider (namespace, list_tools, call_tool) or a server object of fastmcp or mcp"
    raise Unmountable(f"{place} is not {wanted}, but of type {type(made).__name__}")


def _search_also(where: Where | None) -> list[str]:
    """Let Python find modules beside the file and in the current folder.

    They come last, and stay: a file there can stand in for no installed package, and a module may
    import another one long after it was loaded.
    """
    folders = [os.path.dirname(os.path.abspath(where.file))] if where is not None else []
    folders = list(dict.fromkeys((*folders, os.getcwd())))
    sys.path.extend(folder for folder in folders if folder not in sys.path)
    return folders


def _made(found: object) -> object:
    if not isinstance(found, type) and (not callable(found) or hasattr(found, "call_tool")):
        return found
    made: object = found()
    if inspect.iscoroutine(made):
        made.close()
        raise TypeError("an async function makes no provider here; write a plain one")
    return made


def _is_provider(made: object) -> TypeGuard[ToolProvider]:
    return all(hasattr(made, part) for part in ("namespace", "list_tools", "call_tool"))
