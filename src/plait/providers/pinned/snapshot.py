"""The servers behind a compositor at one moment: for a model to read, for a program, for a report."""

import contextlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol, runtime_checkable

from msgspec import MsgspecError, Raw
from msgspec.json import decode

from plait.config.masking import mask_url, mask_values
from plait.config.model import HttpServer, StdioServer
from plait.mounts.instance import Instance
from plait.mounts.mount import Mount
from plait.mounts.registry import Registry
from plait.mounts.state import MountState
from plait.pipeline.audit_arguments import without_secrets
from plait.pipeline.redaction import redact, redact_text
from plait.providers.pinned.uris import label
from plait.upstream.base import Link
from plait.upstream.opening import Declaring
from plait.wire.address import as_raw
from plait.wire.spec import Kind

_UNREADABLE = (MsgspecError, UnicodeDecodeError, RecursionError)
_STATES = {
    MountState.PENDING: "initializing",
    MountState.ACTIVE: "running",
    MountState.FAILED: "failed",
    # Not "initializing": what was closed does not come back (K-13).
    MountState.CLOSED: "closed",
}


@runtime_checkable
class Greeted(Protocol):
    """A link whose server has introduced itself."""

    protocol_version: str

    @property
    def server_info(self) -> dict[str, object]: ...


# ---- one server


def entry(server: Mount | Instance, tools: Sequence[Raw]) -> dict[str, object]:
    """How it stands and why; if it runs, what it said of itself and its tools. No setting is in it, since
    those have secrets, and from its own words what looks like one is taken out."""
    instance = server.foremost if isinstance(server, Mount) else server
    asleep = instance is not None and instance.asleep
    state = "asleep" if asleep and server.state is MountState.PENDING else _STATES[server.state]
    told: dict[str, object] = {
        "prefix": str(server.prefix),
        "name": server.name,
        "state": state,
        "mount_state": server.state.value,
        "reason": redact_text(server.reason)[0],
        "pinned": server.pinned,
        "dropped": dict(server.counters),
    }
    if state == "failed":
        absence = server.absence if isinstance(server, Mount) else server.standing.absence
        told["error"] = redact_text(absence)[0]
    if state == "running" and server.link is not None:
        told["initialize"] = _introduction(server.name, server.link)
    if state in ("running", "asleep"):
        told["tools"] = list(tools)
    return told


def _introduction(name: str, link: Link) -> dict[str, object]:
    """The result of `initialize`; of what has no handshake, as much of it as there is."""
    said: dict[str, object] = {"serverInfo": {"name": name}, "capabilities": {}}
    if isinstance(link, Greeted):
        said["protocolVersion"] = link.protocol_version
        with contextlib.suppress(*_UNREADABLE):  # it is for display only
            said["serverInfo"] = link.server_info
    if isinstance(link, Declaring):
        said["capabilities"] = link.capabilities
    else:
        said["capabilities"] = {kind.capability: {} for kind in Kind if link.supports(kind.capability)}
    return {**said, "instructions": link.instructions} if link.instructions else said


# ---- all of them, for programs (nothing is hidden here: who has the registry has everything)


def entries(registry: Registry) -> dict[str, dict[str, object]]:
    """The entry of every server, by its prefix."""
    return {label(mount): _plain(entry(mount, _tools_of(registry, mount))) for mount in registry.mounts}


def sampling_snapshot(registry: Registry) -> dict[str, object]:
    """The same, with the time."""
    return {"timestamp": datetime.now(UTC).isoformat(), "servers": entries(registry)}


def mount_specs(registry: Registry) -> dict[str, dict[str, object]]:
    """How the servers outside of this process are reached, without any secret."""
    specs = {label(mount): _spec(mount.server) for mount in registry.mounts}
    return {name: spec for name, spec in specs.items() if spec is not None}


def inprocess_servers(registry: Registry) -> dict[str, object]:
    """The objects that were mounted from this process."""
    return {label(mount): mount.server for mount in registry.mounts if _spec(mount.server) is None}


def banner(registry: Registry) -> str:
    """What runs here, in words for a model: every server, its tools by their full names, its own words."""
    running = [mount for mount in registry.mounts if mount.state is MountState.ACTIVE]
    return "\n\n".join(_introduced(registry, mount) for mount in running)


def _introduced(registry: Registry, mount: Mount) -> str:
    said = _plain(entry(mount, _tools_of(registry, mount)))
    greeting = _mapping(said.get("initialize"))
    info, capabilities = _mapping(greeting.get("serverInfo")), _mapping(greeting.get("capabilities"))
    lines = [f"## {label(mount)}: {info.get('title') or info.get('name') or mount.name}"]
    if capabilities:
        lines.append(f"Capabilities: {', '.join(sorted(capabilities))}")
    if mount.instructions.strip():
        lines.append(mount.instructions.strip())
    tools = said.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        words = " ".join(str(tool.get("description") or "").split())
        lines.append(f"- {tool['name']}: {words}" if words else f"- {tool['name']}")
    return "\n".join(lines)


def _tools_of(registry: Registry, mount: Mount) -> list[Raw]:
    listing = registry.catalog.tools
    pairs = zip(listing.routes.values(), listing.items, strict=True)
    return [item for route, item in pairs if route.upstream is mount.foremost]


def _spec(server: object) -> dict[str, object] | None:
    match server:
        case StdioServer():
            args = redact(without_secrets(list(server.args)))[0]
            env = mask_values(server.env)
            return {"type": "stdio", "command": server.command, "args": args, "env": env, "cwd": server.cwd}
        case HttpServer():
            return {"type": "http", "url": mask_url(server.url), "headers": mask_values(server.headers)}
    return None


def _plain(told: dict[str, object]) -> dict[str, object]:
    """As plain values. What a server says that nobody can read is left out."""
    try:
        read: dict[str, object] = decode(as_raw(told))
    except _UNREADABLE:
        return {key: value for key, value in told.items() if key not in ("initialize", "tools")}
    return read


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
