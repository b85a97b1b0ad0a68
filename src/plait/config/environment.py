"""The environment a child process gets: what programs need to run, and what the file says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plait.config.model import Settings, StdioServer

# What any program may need and no secret is kept in; the same names as the official SDK's, and locales.
_INHERITED = frozenset(("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"))


def server_environment(server: StdioServer, settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """Few of our own variables, those that are named, and the server's own, which go before."""
    named = {*settings.env, *server.settings.env}
    return {**dict(_passed_on(environ, named)), **server.env}


def _passed_on(environ: Mapping[str, str], named: set[str]) -> Iterator[tuple[str, str]]:
    for name, value in environ.items():
        wanted = name in _INHERITED or name.startswith("LC_") or name in named
        # A shell's exported function is code that a shell behind us would run.
        if wanted and not value.startswith("()"):
            yield name, value
