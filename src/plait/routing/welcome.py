"""What we say of ourselves in `initialize`: the union of what is behind us, and its instructions."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Raw

from plait.routing.naming import MountPrefix, Naming
from plait.version import VERSION
from plait.wire.address import as_raw
from plait.wire.modern import SPOKEN, is_modern

MAX_INSTRUCTIONS = 16 * 1024

EVERYTHING: dict[str, object] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
    "logging": {},
}


class Known(Protocol):
    """A server as far as it is known when a client comes."""

    prefix: MountPrefix
    name: str

    @property
    def greeted(self) -> bool:
        """Has it said yet what it can do?"""

    @property
    def instructions(self) -> str: ...
    def supports(self, capability: str, detail: str | None = None) -> bool: ...


def welcome(name: str, revision: str, servers: Sequence[Known], naming: Naming) -> Raw:
    """The result of `initialize`, or in a modern revision of `server/discover`.

    It never waits: what is not known yet may still come.

    So as long as a server has not been greeted, we say that we can do all that a server may turn
    out to do, and a list without entries is then the honest answer.
    """
    answer: dict[str, object] = {"capabilities": capabilities(servers)}
    if is_modern(revision):
        # Modern ones only: a client would otherwise pick a handshake revision for a stamped request.
        answer["supportedVersions"] = SPOKEN
    else:
        answer = {"protocolVersion": revision, **answer, "serverInfo": server_info(name)}
    text = instructions(servers, naming)
    return as_raw({**answer, "instructions": text} if text else answer)


def server_info(name: str) -> dict[str, object]:
    """What we call ourselves."""
    return {"name": name, "version": VERSION}


def capabilities(servers: Sequence[Known]) -> dict[str, object]:
    if any(not server.greeted for server in servers):
        return EVERYTHING
    union = {
        name: value for name, value in EVERYTHING.items() if any(server.supports(name) for server in servers)
    }
    if "resources" in union and not any(server.supports("resources", "subscribe") for server in servers):
        union["resources"] = {"listChanged": True}
    return {**union, "tools": EVERYTHING["tools"]}


def instructions(servers: Sequence[Known], naming: Naming) -> str:
    """Each server's own words under its name, as far as they are known, and not without end.

    They speak of its tools by its own names, so the heading says what those are called here.
    """
    parts = []
    for server in servers:
        words = server.instructions.strip()
        if words:
            here = f" (its names begin with {server.prefix}{naming.separator} here)" if server.prefix else ""
            parts.append(f"## {server.name}{here}\n{words}")
    text = "\n\n".join(parts)
    if len(text) <= MAX_INSTRUCTIONS:
        return text
    return f"{text[:MAX_INSTRUCTIONS]}\n[cut: the instructions of all servers are longer than this]"
