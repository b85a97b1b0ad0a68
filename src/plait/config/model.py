"""What a configuration says, once it is read: servers, settings and what was wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import force_setattr

from plait.config.masking import mask_url, mask_values
from plait.config.problem import Problem, Where
from plait.errors import ConfigError

MEBIBYTE = 1024 * 1024

_PREFIX = re.compile(r"(?!.*__)[a-z](?:[a-z0-9_-]{0,48}[a-z0-9-])?")


def is_prefix(text: str) -> bool:
    """Whether a server's names may start with this: `^[a-z][a-z0-9_-]{0,49}$`, no `__`, no `_` at the end."""
    return _PREFIX.fullmatch(text) is not None


class _Discreet(Struct, frozen=True):
    """A fact with secrets in it; its representation, rich's too, shows their names only."""

    def _masked(self) -> dict[str, object]:
        """What to show in place of some fields."""
        return {}

    def __rich_repr__(self) -> list[tuple[str, object]]:
        masked = self._masked()
        return [(name, masked.get(name, getattr(self, name))) for name in self.__struct_fields__]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"
        )


class ServerSettings(Struct, frozen=True, kw_only=True):
    """What our own key `plait` says about one server."""

    prefix: str | None = None
    """None: made from the server's name. Empty: its names are exposed as they are."""
    timeout: float = 60.0
    """Seconds that a call may take."""
    start_timeout: float = 60.0
    env: tuple[str, ...] = ()
    """Names of variables of our own environment that the server gets too."""
    max_message_bytes: int = 16 * MEBIBYTE
    memory: int | None = None
    """Bytes of address space; a limit of the operating system."""
    processes: int | None = None
    tools: tuple[str, ...] | None = None
    """Patterns of the tools that are exposed; None: all of them."""
    hidden_tools: tuple[str, ...] = ()


class StdioServer(_Discreet, frozen=True, kw_only=True):
    """A server that we start as a child process. Written by hand, `command` is all it needs."""

    name: str = ""
    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    settings: ServerSettings = ServerSettings()
    where: Where | None = None

    def __post_init__(self) -> None:
        if isinstance(self.args, str):
            raise ConfigError("args is one string; give a list with one string per argument")
        force_setattr(self, "args", tuple(self.args))
        force_setattr(self, "env", dict(self.env))

    def _masked(self) -> dict[str, object]:
        return {"env": mask_values(self.env)}


class HttpServer(_Discreet, frozen=True, kw_only=True):
    """A server that is reached over HTTP."""

    name: str = ""
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    settings: ServerSettings = ServerSettings()
    where: Where | None = None
    transport: Literal["http", "sse"] | None = None
    """None: the file does not say; try Streamable HTTP first."""

    def __post_init__(self) -> None:
        force_setattr(self, "headers", dict(self.headers))

    def _masked(self) -> dict[str, object]:
        return {"url": mask_url(self.url), "headers": mask_values(self.headers)}


class Settings(Struct, frozen=True, kw_only=True):
    """What our own key `plait` at the top of a file says."""

    separator: Literal["__", "_", "."] = "__"
    name_budget: int = 0
    """Characters that the client itself adds to the names it shows to a model."""
    page_size: int | None = None
    """Entries on one page of a list; None: all of them."""
    max_message_bytes: int = 4 * MEBIBYTE
    """Of one message from a client."""
    start_wait: float = 5.0
    """Seconds that the first list waits for servers that are still starting."""
    name: str = "plait"
    """What we call ourselves to clients."""
    env: tuple[str, ...] = ()
    """Names of variables of our own environment that every server gets."""


class Config(_Discreet, frozen=True, kw_only=True):
    """Everything that was read. A server with an error is not in `servers`; `problems` says why."""

    servers: tuple[StdioServer | HttpServer, ...] = ()
    settings: Settings = Settings()
    problems: tuple[Problem, ...] = ()
    delegation: Mapping[str, object] | None = None
    files: tuple[str, ...] = ()

    def _masked(self) -> dict[str, object]:
        return {"delegation": None if self.delegation is None else mask_values(self.delegation)}
