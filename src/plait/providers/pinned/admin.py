"""compositor_admin: clients attach and detach servers while we run; off unless somebody asks for it."""

from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from typing import Annotated

from msgspec import Meta, Struct

from plait.config.model import HttpServer, StdioServer
from plait.errors import NotMounted, PermissionDenied
from plait.mounts.instance import Instance
from plait.providers.pinned.arguments import Nothing
from plait.providers.pinned.part import Part
from plait.providers.pinned.snapshot import entry
from plait.providers.pinned.toolbox import LOOKS, Hints, Tool, Toolbox
from plait.providers.pinned.uris import label
from plait.routing.naming import MountPrefix
from plait.session.exchange import Caller, Exchange
from plait.upstream.base import Link
from plait.upstream.client import Listener
from plait.upstream.opening import Behalf

Attach = Callable[[MountPrefix, StdioServer | HttpServer], Awaitable[None]]
Detach = Callable[[str], Awaitable[None]]

_PREFIX = Meta(description="What its names begin with: a-z, 0-9, '-' and single '_', at most 50 characters.")
_SECRET = Meta(description="Never shown again.", extra_json_schema={"format": "password"})


class Pair(Struct, frozen=True, forbid_unknown_fields=True):
    """A name and its value."""

    key: str
    value: Annotated[str, _SECRET]


class Stdio(Struct, frozen=True, tag_field="type", tag="stdio", forbid_unknown_fields=True):
    """A command that is started as a child process; only operators may."""

    command: Annotated[str, Meta(description="The program, without its arguments.", min_length=1)]
    args: list[str] | None = None
    env: Annotated[list[Pair] | None, Meta(description="Variables of its own environment.")] = None


class Http(Struct, frozen=True, tag_field="type", tag="http", forbid_unknown_fields=True):
    """A server that is reached over HTTP."""

    url: Annotated[str, Meta(min_length=1)]
    headers: Annotated[list[Pair] | None, Meta(description="Sent with every request.")] = None


class Attaching(Struct, forbid_unknown_fields=True):
    prefix: Annotated[str, _PREFIX]
    spec: Stdio | Http


class Detaching(Struct, forbid_unknown_fields=True):
    prefix: Annotated[str, Meta(description="The prefix, as list_servers shows it.")]


class CompositorAdminServer:
    """What one client attaches or detaches, all of them see."""

    instructions = ""

    def __init__(
        self,
        attach: Attach,
        detach: Detach,
        servers: Callable[[Caller], Sequence[Instance]],
        operators: Sequence[str],
    ) -> None:
        """`servers`: those that a caller may know of. `operators`: patterns of who may start commands."""
        self._attach = attach
        self._detach = detach
        self._servers = servers
        self._operators = tuple(operators)
        self._toolbox = Toolbox(
            [
                Tool(
                    Attaching,
                    self.attach_server,
                    Hints(idempotent_hint=False, open_world_hint=True),
                    recorded=True,
                ),
                Tool(Detaching, self.detach_server, Hints(destructive_hint=True), recorded=True),
                Tool(Nothing, self.list_servers, LOOKS),
            ]
        )

    async def open(self, listener: Listener, behalf: Awaitable[Behalf]) -> Link:
        return Part({"tools/list": self._toolbox.list, "tools/call": self._toolbox.call}, {"tools": ()})

    async def attach_server(self, given: Attaching, exchange: Exchange) -> object:
        """Mounts a server under a prefix, for all clients. It is up when this returns; if it cannot be
        started, nothing stays mounted. A command (stdio) can be attached by operators only."""
        prefix = MountPrefix(given.prefix)
        if isinstance(given.spec, Stdio):
            self._check_operator(exchange.caller.identity)
        await self._attach(prefix, _server(given.prefix, given.spec))
        return {"ok": True}

    def _check_operator(self, identity: str) -> None:
        if not any(fnmatchcase(identity, pattern) for pattern in self._operators):
            reason = (
                f"'{identity}' is no operator, and only operators may start a command here; "
                "the setting `operators` of plait has the identities that are"
            )
            raise PermissionDenied("attach_server", reason)

    async def detach_server(self, given: Detaching, exchange: Exchange) -> object:
        """Unmounts a server, for all clients. What is part of plait itself is pinned, and stays."""
        known = {label(each) for each in self._servers(exchange.caller)}
        server = given.prefix if given.prefix in known else f"({given.prefix})"
        if server not in known:
            raise NotMounted(f"'{given.prefix}' is not mounted. Use list_servers to see what is.")
        await self._detach(server)
        return {"ok": True}

    async def list_servers(self, given: Nothing, exchange: Exchange) -> object:
        """Lists the servers with their prefixes, states, and why they are in them."""
        shown = ("prefix", "name", "state", "reason", "pinned")
        told = [entry(each, ()) for each in self._servers(exchange.caller)]
        return {"servers": [{key: each[key] for key in shown} for each in told]}


def _server(name: str, spec: Stdio | Http) -> StdioServer | HttpServer:
    if isinstance(spec, Http):
        return HttpServer(name=name, url=spec.url, headers=_pairs(spec.headers))
    return StdioServer(name=name, command=spec.command, args=spec.args or (), env=_pairs(spec.env))


def _pairs(given: list[Pair] | None) -> dict[str, str]:
    return {pair.key: pair.value for pair in given or ()}
