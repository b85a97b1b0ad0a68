"""Read configuration files, of ours or of other programs, into one Config."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from plait.config.codes import DEFINED_TWICE, NOT_JSON, UNGUARDED, UNKNOWN_FIELD, UNREADABLE_FILE, WRONG_TYPE
from plait.config.delegating import flow_entry
from plait.config.delegation import CLAUDE_FLOW
from plait.config.document import Document, parse
from plait.config.expand import Variables
from plait.config.masking import quoted
from plait.config.model import Config, RuleSetting, Server, Settings
from plait.config.options import read_settings
from plait.config.problem import ConfigFileError, Problem, Where
from plait.config.servers import read_server
from plait.config.spot import Findings, Spot, close_match, kind
from plait.errors import ConfigError

# A settings file of another program may hold its whole history; a device that never ends is none.
MAX_FILE_BYTES = 64 * 1024 * 1024

_CLOSED = RuleSetting("deny", "*", reason="every call is denied until the configuration's guards can be read")
_WHAT_GUARDS = "guards are rules, allowedTools, policy and audit; a key that nobody knows may be one of them"

_CONTAINERS = ("mcpServers", "mcp_servers", "servers")


def load(
    paths: Sequence[os.PathLike[str] | str],
    environ: Mapping[str, str],
    workspace: os.PathLike[str] | str | None = None,
) -> Config:
    """Read the files in order; what a later one says goes before what an earlier one says.

    Raises ConfigError for a file of which nothing can be used. What is wrong with a single server is
    in the problems of the result, and the other servers are there.
    """
    if isinstance(paths, str):
        paths = (paths,)  # a string is a sequence of strings too, and never meant as one
    variables = Variables(environ, _folder(workspace))
    reading = _Reading()
    for path in paths:
        document = read_document(path)
        reading.add(Spot(document, document.root), variables)
    return reading.config(variables, tuple(os.fspath(path) for path in paths))


class _Reading:
    """What the files read so far say together."""

    def __init__(self) -> None:
        self._findings = Findings()
        self._entries: dict[str, Spot] = {}
        self._settings = Settings()
        self._flow: Spot | None = None

    def add(self, root: Spot, variables: Variables) -> None:
        """Put one file on top of those before."""
        self._settings = read_settings(root, self._settings, self._findings, variables)
        self._flow = flow_entry(root) or self._flow
        containers = [spot for spot in _containers(root, variables.workspace) if spot is not None]
        for container in containers:
            self._add_servers(container)
        if not containers:
            _report_near_misses(root, self._findings)

    def config(self, variables: Variables, files: tuple[str, ...]) -> Config:
        """Read the entries that are left, each on its own."""
        settings = self._guarded()
        if self._flow is not None and settings.delegation.claude_flow_enabled:
            self._add_server(CLAUDE_FLOW, self._flow)
        problems = list(self._findings.problems)
        servers: list[Server] = []
        for name, entry in self._entries.items():
            findings = Findings(name)
            server = read_server(name, entry, settings.limits, variables, findings)
            problems.extend(findings.problems)
            if server is not None:
                servers.append(server)
        return Config(
            servers=tuple(servers),
            settings=settings,
            problems=tuple(problems),
            files=files,
        )

    def _guarded(self) -> Settings:
        """The settings; where a guard could not be read nothing is let through that it was to stop."""
        if not self._findings.unguarded:
            return self._settings
        self._findings.problems.append(Problem(UNGUARDED, _CLOSED.reason, hints=(_WHAT_GUARDS,)))
        return replace(self._settings, rules=(_CLOSED, *self._settings.rules))

    def _add_servers(self, container: Spot) -> None:
        if not isinstance(container.node.value, dict):
            self._findings.wrong_type(container, "an object with servers in it")
        for name, entry in container.members():
            self._add_server(name, entry)

    def _add_server(self, name: str, entry: Spot) -> None:
        if name in self._entries:
            self._report_override(name, self._entries[name], entry)
        self._entries[name] = entry

    def _report_override(self, name: str, earlier: Spot, later: Spot) -> None:
        findings = Findings(name)
        findings.report(
            DEFINED_TWICE,
            later,
            f"server {quoted(name)} is defined here and at {earlier.where()}",
            "this one is used",
            offset=later.key_offset,
            severity="warning",
        )
        self._findings.problems.extend(findings.problems)


def _containers(root: Spot, workspace: str) -> Iterator[Spot | None]:
    """Every object with servers in it, whichever program's shape the file has."""
    for key in _CONTAINERS:
        yield root.member(key)
    tools = root.member("tools")
    if tools is not None:
        yield from (tools.member(key) for key in _CONTAINERS[:2])
    # Claude Code keeps the servers of a project, for one user, beside those for all projects.
    projects = root.member("projects")
    project = projects.member(workspace) if projects is not None else None
    if project is not None:
        yield project.member("mcpServers")


def _report_near_misses(root: Spot, findings: Findings) -> None:
    """A file without servers is fine; one that has them under a misspelled key is not."""
    for key, member in root.members():
        close = close_match(key, _CONTAINERS)
        if close is not None:
            message = f"unknown field {quoted(key)}. Did you mean '{close}'?"
            findings.report(UNKNOWN_FIELD, member, message, offset=member.key_offset, severity="warning")


def read_document(path: os.PathLike[str] | str) -> Document:
    """Read one file whose root is an object, or raise a ConfigFileError."""
    file = os.fspath(path)
    document = parse(_decode(_read(file), file), file)
    if not isinstance(document.root.value, dict):
        message = f"expected an object, got {kind(document.root)}"
        where = document.where(document.root.start)
        raise ConfigFileError(Problem(WRONG_TYPE, message, where))
    return document


def _read(file: str) -> bytes:
    try:
        with open(file, "rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
        raise _unreadable(file, reason[:1].lower() + reason[1:]) from None
    if len(content) > MAX_FILE_BYTES:
        raise _unreadable(file, f"it has more than {MAX_FILE_BYTES} bytes")
    return content


def _unreadable(file: str, reason: str) -> ConfigFileError:
    return ConfigFileError(Problem(UNREADABLE_FILE, f"cannot read {file}: {reason}"))


def _decode(content: bytes, file: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as fault:
        before = content[: fault.start].decode("utf-8").removeprefix("\ufeff")
        line = before.count("\n") + 1
        where = Where(file, line, len(before) - (before.rfind("\n") + 1) + 1)
        problem = Problem(NOT_JSON, "not UTF-8", where, hints=("save the file as UTF-8",))
        raise ConfigFileError(problem) from None


def _folder(workspace: os.PathLike[str] | str | None) -> str:
    try:
        return os.path.abspath(os.curdir if workspace is None else workspace)
    except OSError:
        raise ConfigError("the current folder does not exist any more") from None
