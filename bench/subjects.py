"""Who is measured: how each subject is started, which tool is called, and what its row must explain."""

import json
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path

from bench.http_client import Endpoint

ROOT = Path(__file__).parent.parent
BENCH = Path(__file__).parent
PLAIT = ROOT / ".venv" / "bin" / "plait"
MCP_PROXY_ENVIRONMENT = ROOT / ".venv-mcp-proxy"
MCP_PROXY = MCP_PROXY_ENVIRONMENT / "bin" / "mcp-proxy"

# Isolated and without `site`: the server needs neither, and starts twice as fast.
ECHO_SERVER = [sys.executable, "-I", "-S", str(BENCH / "echo_server.py")]
HTTP_ECHO_SERVER = [sys.executable, str(BENCH / "http_echo_server.py")]


@dataclass(frozen=True)
class Subject:
    """One row of the table."""

    name: str
    title: str
    version: str
    command: list[str]
    tool: str
    tools: int = 1
    note: str = ""
    needs: Path | None = None
    command_with_marks: Callable[[Path], list[str]] | None = None
    """The same with servers that leave a mark in a directory once they run, to time the handshakes."""
    companion: list[str] = field(default_factory=list)
    """A second process that must run, and listen on `port`, before the command can work."""
    port: int = 0
    endpoint: Endpoint | None = None
    """Where it serves MCP over HTTP; without one it speaks on its pipes."""
    width: int = 32
    """How many calls are in flight when there are several."""
    prepare: Callable[[], None] | None = None
    """What must still be told to it once it is up, before it has its tools."""

    @property
    def is_gateway(self) -> bool:
        """All but the bare server."""
        return not is_echo_server(self.command)


def all_subjects(workspace: Path) -> dict[str, Subject]:
    """Everyone we can measure; configuration files go to the workspace."""
    two = write_configuration(workspace / "two.json", ["a", "b"])
    subjects = [
        direct(),
        plait(workspace, "plait", ["a", "b"]),
        plait(workspace, "plait-audit", ["a", "b"], audit=True),
        plait(workspace, "plait-50", [f"m{number:02}" for number in range(50)]),
        sdk_gateway(two),
        fastmcp_gateway(two),
        mcp_proxy(),
    ]
    return {subject.name: subject for subject in subjects}


def write_configuration(
    file: Path, prefixes: list[str], *arguments: str, plait: dict[str, object] | None = None
) -> Path:
    """A `mcpServers` file that starts one echo server per prefix."""
    command, *rest = ECHO_SERVER
    servers = {prefix: {"command": command, "args": [*rest, *arguments]} for prefix in prefixes}
    ours = {} if plait is None else {"plait": plait}
    file.write_text(json.dumps({"mcpServers": servers, **ours}, indent=2))
    return file


def direct() -> Subject:
    """The echo server alone: what the client, the pipes and the server cost without anybody in between."""
    return Subject("direct", "the server alone", "", ECHO_SERVER, "echo")


def plait(workspace: Path, name: str, prefixes: list[str], *, audit: bool = False) -> Subject:
    """Our gateway with its guards; the last server is called.

    The audit, which writes two chained records to the disk for every call, is a row of its own: it is
    the one guard whose price is worth knowing apart.
    """
    kept: dict[str, object] = {"dir": str(workspace / "audit")} if audit else {"mode": "off"}

    def command(file: Path, *arguments: str) -> list[str]:
        written = write_configuration(file, prefixes, *arguments, plait={"audit": kept})
        return [str(PLAIT), "mcp-server", "-c", str(written)]

    return Subject(
        name,
        f"plait, {len(prefixes)} servers{', with its audit' if audit else ''}",
        installed("plait"),
        command(workspace / f"{name}.json"),
        f"{prefixes[-1]}__echo",
        tools=len(prefixes),
        needs=PLAIT,
        command_with_marks=lambda directory: command(directory / "servers.json", str(directory)),
    )


def sdk_gateway(configuration: Path) -> Subject:
    """What one writes in an afternoon on the official SDK."""
    command = [sys.executable, str(BENCH / "sdk_gateway.py"), str(configuration)]
    return Subject("sdk", "25 lines on the mcp SDK, 2 servers", installed("mcp"), command, "b__echo", 2)


def fastmcp_gateway(configuration: Path) -> Subject:
    """FastMCP's proxy in its best mode."""
    command = [sys.executable, str(BENCH / "fastmcp_gateway.py"), str(configuration)]
    note = "one kept session per server, `mount(create_proxy(client))`; names are `prefix_name`"
    return Subject("fastmcp", "FastMCP proxy, 2 servers", installed("fastmcp"), command, "b_echo", 2, note)


def mcp_proxy() -> Subject:
    """PyPI's mcp-proxy: a stdio to HTTP bridge, so stdio to stdio takes two of it, one per direction."""
    port = free_port()
    quiet = [str(MCP_PROXY), "--log-level", "ERROR"]
    command = [*quiet, "--transport", "streamablehttp", f"http://127.0.0.1:{port}/mcp"]
    companion = [*quiet, "--host", "127.0.0.1", "--port", str(port), "--", *ECHO_SERVER]
    note = (
        "it bridges stdio and HTTP and joins no servers into one namespace, so two of it stand back to back "
        "over loopback HTTP here, with one server behind them; CPU and memory are those of both, spawn is "
        "that of the half on stdio while the other half runs already"
    )
    return Subject(
        "mcp-proxy",
        "mcp-proxy (PyPI) twice, 1 server",
        packaged("mcp-proxy"),
        command,
        "echo",
        note=note,
        needs=MCP_PROXY,
        companion=companion,
        port=port,
    )


def is_echo_server(command: Sequence[str]) -> bool:
    """Whether this starts one of our own servers, which stand behind everybody."""
    return command[:4] == ECHO_SERVER or command[:2] == HTTP_ECHO_SERVER


def installed(package: str) -> str:
    """The version in our own environment."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} not installed"


def packaged(package: str, environment: Path = MCP_PROXY_ENVIRONMENT) -> str:
    """The version in the environment that a peer has to itself (mcp-proxy pins an older SDK)."""
    directories = [str(path) for path in environment.glob("lib/python3*/site-packages")]
    found = distributions(name=package, path=directories)
    return next((f"{package} {distribution.version}" for distribution in found), f"{package} not installed")


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
