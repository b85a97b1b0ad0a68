"""Read one server's entry, in the words of any program that has such entries."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Literal

from plait.config import fields
from plait.config.codes import IMPOSSIBLE_VALUE, NO_TRANSPORT, NOT_READ
from plait.config.expand import Variables
from plait.config.masking import quoted
from plait.config.model import HttpServer, PythonServer, Server, ServerSettings, StdioServer
from plait.config.options import read_server_settings
from plait.config.problem import Severity
from plait.config.spot import Findings, Spot, close_match

# The kind of HTTP that each word stands for.
_TRANSPORTS: dict[str, Literal["http", "sse"] | None] = {
    "stdio": None,
    "local": None,
    "http": "http",
    "https": "http",
    "remote": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
    "sse": "sse",
}
_PYTHON = "python"
_TYPE_KEYS = ("type", "transport", "transportType")
_URL_KEYS = ("httpUrl", "url", "serverUrl", "uri")
_TOOL_KEYS = ("includeTools", "enabled_tools", "excludeTools", "disabledTools", "disabled_tools")
_PROGRAM_KEYS = ("command", "cmd", "args", "cwd", "env", "envs")
_OTHER_KEYS = ("headers", "http_headers", "auth", "disabled", "enabled", "plait")
_READ_KEYS = frozenset((*_TYPE_KEYS, *_URL_KEYS, *_TOOL_KEYS, *_PROGRAM_KEYS, *_OTHER_KEYS))
# Other programs' keys that we pass over on purpose; listed so that they are not taken for mistakes.
_KNOWN_KEYS = _READ_KEYS | {
    *("timeout", "description", "name", "tools", "tags", "oauth", "trust", "envFile", "env_vars"),
    *("module", "alwaysAllow", "autoApprove", "enabledTools", "env_http_headers", "protocol"),
}

_OBJECT = 'write "module": "package.module:object"'
_INSTEAD_OF_ENV_FILE = 'put them in \'env\', or pass ours on by name: "plait": {"env": ["NAME"]}'

_HTTP_URL = re.compile(r"https?://[^\s\x00-\x1f\x7f]+", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")


def read_server(
    name: str, spot: Spot, limits: ServerSettings, variables: Variables, findings: Findings
) -> Server | None:
    """The server, or None if it is switched off or the findings say what is wrong with it."""
    if not isinstance(spot.node.value, dict):
        findings.wrong_type(spot, "an object")
        return None
    entry = _Entry(name, spot, limits, variables, findings)
    if entry.is_switched_off():
        return None
    entry.report_odd_keys()
    server = entry.server()
    return None if findings.failed else server


class _Entry:
    """One entry of a file; every method reports what it cannot read and goes on."""

    def __init__(
        self, name: str, spot: Spot, limits: ServerSettings, variables: Variables, findings: Findings
    ) -> None:
        self._name = name
        self._spot = spot
        self._limits = limits
        self._variables = variables
        self._findings = findings

    def is_switched_off(self) -> bool:
        disabled, enabled = self._spot.member("disabled"), self._spot.member("enabled")
        return (disabled is not None and fields.truth(disabled, self._findings) is True) or (
            enabled is not None and fields.truth(enabled, self._findings) is False
        )

    def report_odd_keys(self) -> None:
        """Tell what is likely a mistake; whatever else is there belongs to another program."""
        if self._name == "":
            self._report(IMPOSSIBLE_VALUE, self._spot, "a server without a name")
        for key, member in self._spot.members():
            if key == "envFile":
                message = "envFile is not read; its variables are missing"
                self._report(NOT_READ, member, message, _INSTEAD_OF_ENV_FILE, severity="warning")
            elif key not in _KNOWN_KEYS and close_match(key, _READ_KEYS):
                self._findings.unknown_field(key, member, _READ_KEYS, "warning")

    def server(self) -> Server | None:
        """A command that is not empty decides; a url counts only without one."""
        command = self._text("command", "cmd")
        if command:
            return self._stdio_server(command)
        kind = self._spot.member(*_TYPE_KEYS)
        if kind is not None and kind.node.value == _PYTHON:
            return self._python_server()
        url = self._text(*_URL_KEYS)
        if url:
            return self._http_server(url)
        if not self._findings.failed:
            message = f"server {quoted(self._name)} has neither a command nor a url"
            hints = ('a Python object needs "type": "python" too',) if self._spot.member("module") else ()
            self._report(NO_TRANSPORT, self._spot, message, *hints)
        return None

    def _python_server(self) -> PythonServer | None:
        spot = self._spot.member("module")
        module = self._text("module")
        if spot is None:
            self._report(NO_TRANSPORT, self._spot, f"server {quoted(self._name)} has no module", _OBJECT)
        elif module is not None and not _is_object(module):
            self._findings.report(IMPOSSIBLE_VALUE, spot, "expected a module and an object in it", _OBJECT)
        settings = self._settings()
        return PythonServer(name=self._name, module=module or "", settings=settings, where=self._spot.where())

    def _settings(self) -> ServerSettings:
        return read_server_settings(self._spot, self._limits, self._variables, self._findings)

    def _stdio_server(self, command: str) -> StdioServer:
        cwd = self._text("cwd")
        return StdioServer(
            name=self._name,
            command=command,
            args=self._arguments(),
            env=self._mapping(("env", "envs"), _may_be_variable, "a variable cannot have this name or value"),
            # Relative to the project, not to wherever we were started.
            cwd=os.path.join(self._variables.workspace, cwd) if cwd else None,
            settings=self._settings(),
            where=self._spot.where(),
        )

    def _http_server(self, url: str) -> HttpServer:
        spot = self._spot.member(*_URL_KEYS)
        if spot is not None and not _HTTP_URL.fullmatch(url):
            message = "expected a URL that starts with http:// or https://"
            self._findings.report(IMPOSSIBLE_VALUE, spot, message)
        return HttpServer(
            name=self._name,
            url=url,
            headers=self._mapping(("headers", "http_headers"), _may_be_header, "this header cannot be sent"),
            auth=self._token(),
            settings=self._settings(),
            where=self._spot.where(),
            transport=self._transport(),
        )

    def _token(self) -> str | None:
        """Where others write `oauth`, or an object, they mean a sign-in and not a token."""
        spot = self._spot.member("auth")
        if spot is None or not isinstance(spot.node.value, str) or spot.node.value.lower() == "oauth":
            return None
        token = fields.expanded(spot, self._findings, self._variables)
        if token is not None and not _may_be_header("Authorization", token):
            self._report(IMPOSSIBLE_VALUE, spot, "this token cannot be sent in a header")
        return token or None

    def _transport(self) -> Literal["http", "sse"] | None:
        """What the file says about the kind of HTTP; Gemini says it by the name of the key."""
        spot = self._spot.member(*_TYPE_KEYS)
        said = fields.text(spot, self._findings) if spot is not None else None
        if spot is not None and said is not None and said not in _TRANSPORTS:
            close = close_match(said, _TRANSPORTS)
            meant = f". Did you mean '{close}'?" if close else ""
            message = f"{quoted(said)} is no transport that we know{meant}"
            hint = "the url decides"
            self._findings.report(IMPOSSIBLE_VALUE, spot, message, hint, severity="warning")
        return _TRANSPORTS.get(said or "") or ("http" if self._spot.member("httpUrl") else None)

    def _text(self, *keys: str) -> str | None:
        spot = self._spot.member(*keys)
        return None if spot is None else fields.expanded(spot, self._findings, self._variables)

    def _arguments(self) -> tuple[str, ...]:
        spot = self._spot.member("args")
        if spot is None:
            return ()
        if not isinstance(spot.node.value, tuple):
            self._findings.wrong_type(spot, "a list of strings")
        return tuple(fields.expanded(item, self._findings, self._variables) or "" for item in spot.items())

    def _mapping(
        self, keys: tuple[str, ...], possible: Callable[[str, str], bool], otherwise: str
    ) -> dict[str, str]:
        spot = self._spot.member(*keys)
        if spot is None:
            return {}
        if not isinstance(spot.node.value, dict):
            self._findings.wrong_type(spot, "an object with strings in it")
        found: dict[str, str] = {}
        for key, member in spot.members():
            value = self._number_or_text(member)
            if value is not None and not possible(key, value):
                self._report(IMPOSSIBLE_VALUE, member, otherwise)
            found[key] = value or ""
        return found

    def _number_or_text(self, spot: Spot) -> str | None:
        """A number is taken as it is written, since several programs take it so."""
        if isinstance(spot.node.value, int | float) and not isinstance(spot.node.value, bool):
            return spot.document.text[spot.node.start : spot.node.end]
        return fields.expanded(spot, self._findings, self._variables)

    def _report(self, code: str, spot: Spot, message: str, *hints: str, severity: Severity = "error") -> None:
        """Note a problem with a whole entry, at its key."""
        self._findings.report(code, spot, message, *hints, offset=spot.key_offset, severity=severity)


def _is_object(path: str) -> bool:
    module, _, name = path.partition(":")
    return all(part.isidentifier() for part in (*module.split("."), name))


def _may_be_variable(name: str, value: str) -> bool:
    return fields.is_variable_name(name) and "\0" not in value


def _may_be_header(name: str, value: str) -> bool:
    return _HEADER_NAME.fullmatch(name) is not None and _HEADER_VALUE.fullmatch(value) is not None
