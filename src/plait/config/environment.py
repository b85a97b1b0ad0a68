"""The environment a child process gets: what programs need to run, and what the file says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plait.config.delegation import DEPTH_VARIABLE
from plait.config.model import Settings, StdioServer

# What any program may need and no secret is kept in; the same names as the official SDK's, and locales.
# The last is no secret either: it ends a circle of plaits that hand tasks on to each other.
_INHERITED = frozenset((DEPTH_VARIABLE, "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"))
_LONGEST_DEPTH = 10


def server_environment(server: StdioServer, settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """Few of our own variables, those that are named, and the server's own, which go before."""
    named = {*settings.env, *server.settings.env}
    below = {DEPTH_VARIABLE: str(depth_of(environ) + 1)} if settings.delegation.enabled else {}
    return {**dict(_passed_on(environ, named)), **below, **server.env}


def depth_of(environ: Mapping[str, str]) -> int:
    """How many plaits that hand tasks on are above us; what cannot be read is none."""
    text = environ.get(DEPTH_VARIABLE, "")
    return int(text) if text.isdecimal() and len(text) < _LONGEST_DEPTH else 0


def _passed_on(environ: Mapping[str, str], named: set[str]) -> Iterator[tuple[str, str]]:
    for name, value in environ.items():
        wanted = name in _INHERITED or name.startswith("LC_") or name in named
        # A shell's exported function is code that a shell behind us would run.
        if wanted and not value.startswith("()"):
            yield name, value
