"""What a configuration says, once it is read: servers, settings and what was wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import force_setattr

from plait.config.access import HttpSettings, Place
from plait.config.delegation import DelegationConfig
from plait.config.discreet import Discreet
from plait.config.masking import MASK, mask_url, mask_values
from plait.config.problem import Problem, Where
from plait.errors import ConfigError

MEBIBYTE = 1024 * 1024

_PREFIX = re.compile(r"(?!.*__)[a-z](?:[a-z0-9_-]{0,48}[a-z0-9-])?")


def is_prefix(text: str) -> bool:
    """Whether a server's names may start with this: `^[a-z][a-z0-9_-]{0,49}$`, no `__`, no `_` at the end."""
    return _PREFIX.fullmatch(text) is not None


class StreamSettings(Struct, frozen=True, kw_only=True):
    """How much a provider's tool may stream in one call; what is too much ends it, and what came is kept."""

    items: int = 100_000
    """Events. A model's words come one by one: long answers have tens of thousands."""
    bytes: int = 16 * MEBIBYTE
    seconds: float = 300.0


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
    concurrency: int = 128
    """Calls in flight."""
    queue: int = 1024
    """Calls that may wait for their turn; one more is refused at once."""
    sanitise: bool = True
    """Whether control characters and escape sequences are taken out of the texts of its results."""
    share: Literal["identity", "all", "call"] = "identity"
    """Who shares a session with the server: clients of one identity that can do the same; everybody,
    and then nothing is declared to it; nobody, each call has a server of its own."""
    start: Literal["eager", "lazy"] = "eager"
    """At once, or when it is first used; until then it is listed as it was last time."""
    idle: float | None = None
    """Seconds without use after which it is stopped, until it is used again; None: never."""
    era: Literal["auto", "handshake", "modern"] = "auto"
    """How it is greeted: as the client speaks if it can, or always in the one way."""
    stream: StreamSettings = StreamSettings()


class StdioServer(Discreet, frozen=True, kw_only=True):
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


class HttpServer(Discreet, frozen=True, kw_only=True):
    """A server that is reached over HTTP."""

    name: str = ""
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    auth: str | None = None
    """A token, sent as `Authorization: Bearer` unless the headers have an Authorization."""
    settings: ServerSettings = ServerSettings()
    where: Where | None = None
    transport: Literal["http", "sse"] | None = None
    """None: the file does not say; try Streamable HTTP first."""

    def __post_init__(self) -> None:
        force_setattr(self, "headers", dict(self.headers))

    def _masked(self) -> dict[str, object]:
        return {
            "url": mask_url(self.url),
            "headers": mask_values(self.headers),
            "auth": None if self.auth is None else MASK,
        }


class PythonServer(Struct, frozen=True, kw_only=True):
    """A provider or server object in a Python package, which we import."""

    name: str = ""
    module: str
    """`package.module:object`."""
    settings: ServerSettings = ServerSettings()
    where: Where | None = None


Server: TypeAlias = StdioServer | HttpServer | PythonServer


class RuleSetting(Struct, frozen=True):
    """One rule of who may call what; the first that matches counts."""

    effect: Literal["allow", "deny"]
    pattern: str
    """Of exposed names."""
    unless: Mapping[str, str] = {}
    """Patterns of arguments; the rule does not apply where all of them match."""
    identity: str = "*"
    """A pattern of callers."""
    reason: str = ""
    where: str = ""
    """File and line."""


class CommandSettings(Struct, frozen=True, kw_only=True):
    """Which commands tools may be given. An empty list is the one that we ship."""

    mode: Literal["allowlist", "denylist"] = "allowlist"
    allowlist: tuple[str, ...] = ()
    denylist: tuple[str, ...] = ()
    shell: bool = False
    """Whether pipes, lists and redirections are possible."""


class UrlSettings(Struct, frozen=True, kw_only=True):
    """Which URLs tools may be given."""

    enabled: bool = True
    allow_private: bool = False
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    private_ranges: tuple[str, ...] = ()
    """Networks that are open although they are private."""
    ports: tuple[int, ...] | None = None
    """None: every port."""


class ParameterSetting(Struct, frozen=True, kw_only=True):
    """What a parameter of some tools is; the first that fits counts."""

    tool: str
    """A pattern of exposed names."""
    parameter: str
    kind: Literal["command", "url", "none"]


class PolicySettings(Struct, frozen=True, kw_only=True):
    """What is judged in arguments. None: the file does not say, so only our own tools are judged."""

    commands: CommandSettings | None = None
    urls: UrlSettings | None = None
    parameters: tuple[ParameterSetting, ...] = ()


class ResultSettings(Struct, frozen=True, kw_only=True):
    """What becomes of results."""

    max_bytes: int = 65536
    per_tool: Mapping[str, int] = {}
    """By exposed names."""
    tool: bool = False
    """Whether what was cut can also be read with a tool."""
    sanitise: bool = True
    strip_invisible: bool = False


class AuditSettings(Struct, frozen=True, kw_only=True):
    """How calls are recorded."""

    mode: Literal["best_effort", "strict", "off"] = "best_effort"
    dir: str | None = None
    """An absolute path; None: a folder of our own."""


class Settings(Struct, frozen=True, kw_only=True):
    """What our own key `plait` at the top of a file says, and the seeds' keys that mean the same."""

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
    builtin: bool | None = None
    """Whether the tools that we ship are there; None: only when there is no file."""
    resource_tools: bool | None = None
    """Whether resources can be listed and read by tools too; None: only in the library."""
    meta_resources: bool = True
    """Whether the state of each server can be read as a resource."""
    admin_tools: bool = False
    """Whether clients may mount and unmount servers."""
    operators: tuple[str, ...] = ()
    """Patterns of the identities that may mount a command with those tools."""
    workspace: str | None = None
    """The folder that they work in, an absolute path; None: the project's."""
    rules: tuple[RuleSetting, ...] = ()
    allowed_tools: tuple[str, ...] | None = None
    """All that may be called; None: everything."""
    policy: PolicySettings = PolicySettings()
    results: ResultSettings = ResultSettings()
    audit: AuditSettings = AuditSettings()
    listen: Place = Place()
    """Where `plait up` waits for clients."""
    http: HttpSettings = HttpSettings()
    limits: ServerSettings = ServerSettings()
    """What a server has that says nothing of its own; already in the settings of each that was read."""
    delegation: DelegationConfig = DelegationConfig()
    """To whom tasks are handed on."""


class Config(Struct, frozen=True, kw_only=True):
    """Everything that was read. A server with an error is not in `servers`; `problems` says why."""

    servers: tuple[Server, ...] = ()
    settings: Settings = Settings()
    problems: tuple[Problem, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def delegation(self) -> DelegationConfig:
        return self.settings.delegation
