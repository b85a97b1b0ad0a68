"""A conversation with a modern server: a stamp on every request, results for clients of either era.

What the rest of plait knows from the handshake era is done here in the modern way: subscriptions are
streams that we listen to, a log level goes with each request, and nobody is pinged.
"""

import contextlib
from typing import Self

from msgspec import MsgspecError
from msgspec.structs import replace

from plait.errors import UpstreamBroken, UpstreamError, UpstreamRefused
from plait.session.eras.caller import ModernCaller
from plait.session.eras.errors import OF_ONE_HOP, code_of
from plait.session.eras.errors import for_handshake as error_for_handshake
from plait.session.eras.results import for_handshake, kind_of
from plait.session.eras.stamp import stamped
from plait.session.eras.verdict import EraMemory, Incompatible, Reluctant, invites, judge
from plait.session.exchange import Exchange, Reply, refuse
from plait.session.negotiation import Greeting, fields_of, relayable
from plait.upstream.client import McpClient
from plait.upstream.decoded import unwrap
from plait.upstream.lists import fetch
from plait.upstream.watching import Watching
from plait.version import VERSION
from plait.wire.address import as_raw, read_text
from plait.wire.content import error_result
from plait.wire.envelope import EMPTY, Fields
from plait.wire.modern import DISCOVER, FLAGS, HEADER_MISMATCH, INTERACTIVE, SPOKEN
from plait.wire.spec import INTERNAL_ERROR, LEVELS, Era, Kind

CLIENT = as_raw({"name": "plait", "version": VERSION})


async def discover(client: McpClient, timeout: float) -> Greeting | Era | Incompatible | Reluctant:
    """What the server says to `server/discover`. Raises UpstreamError where it says nothing."""
    params = {"_meta": as_raw(stamped(None, {}, CLIENT))}
    reply = await client.request(DISCOVER, params, timeout=timeout)
    if invites(reply):
        reply = await client.request(DISCOVER, params, timeout=timeout)
    return judge(reply)


class ModernSession:
    """A Link, as McpSession is. Made by `greet`."""

    warning: str | None = None

    def __init__(self, client: McpClient, greeting: Greeting, memory: EraMemory | None = None) -> None:
        self.client = client
        self.protocol_version = greeting.revision
        self.capabilities = greeting.capabilities
        self.instructions = greeting.instructions
        self._memory = memory or EraMemory()
        self._level: int | None = None
        """What handshake clients asked for by `logging/setLevel`."""
        self._watching = Watching(client, as_raw(stamped(None, {}, CLIENT)))
        client.listener = self._watching
        flags = [flag for flag in FLAGS if self.supports(flag.removesuffix("ListChanged"), "listChanged")]
        if flags:
            self._watching.watch_lists(flags)

    @classmethod
    async def greet(cls, client: McpClient, timeout: float, memory: EraMemory | None = None) -> Self:
        """Ask it what it can do, and take no other answer for one."""
        found = await discover(client, timeout)
        match found:
            case Greeting():
                return cls(client, found, memory)
            case Reluctant(error=error):
                unwrap(Reply(error=error))
            case Incompatible(versions=versions):
                raise incompatible(client.name, versions)
        raise UpstreamBroken(f"server '{client.name}' speaks no modern revision ({', '.join(SPOKEN)})")

    def __repr__(self) -> str:
        offers = ", ".join(self.capabilities) or "nothing"
        return f"<ModernSession {self.client.name}: {self.protocol_version}, offers {offers}>"

    def supports(self, capability: str, detail: str | None = None) -> bool:
        if capability not in self.capabilities:
            return False
        declared = fields_of(self.capabilities[capability])
        return detail is None or bytes(declared.get(detail, b"")) == b"true"

    def notify(self, method: str, params: Fields | None = None) -> None:
        """A modern server is told nothing but cancellations: "roots/list_changed" and the like are gone."""

    def working_for(self) -> list[Exchange]:
        return self.client.working_for()

    async def aclose(self) -> None:
        await self._watching.aclose()
        await self.client.__aexit__()

    # ---- requests

    async def request(self, method: str, params: Fields | None, exchange: Exchange | None = None) -> Reply:
        match method:
            case "resources/subscribe" if params is not None:
                return await self._watching.watch(read_text(params["uri"]))
            case "resources/unsubscribe" if params is not None:
                self._watching.unwatch(read_text(params["uri"]))
                return Reply(result=EMPTY)
            case "logging/setLevel" if params is not None:
                self._level = LEVELS.index(read_text(params["level"]))
                return Reply(result=EMPTY)
            case "ping":
                return Reply(result=EMPTY)
        meta = self._stamp(params, exchange)
        if exchange is not None and exchange.meta is not None:
            exchange = replace(exchange, meta=meta)  # where progress is asked for, this is what is sent
        sent = {**(params or {}), "_meta": as_raw(meta)}
        reply = await self.client.request(method, sent, exchange)
        if method == "tools/call" and reply.error is not None and code_of(reply.error) == HEADER_MISMATCH:
            # Its tools are not what we took them for. A call that was refused for its headers has not
            # been looked at: this is no second try.
            with contextlib.suppress(UpstreamError):
                await fetch(self, Kind.TOOLS)
                reply = await self.client.request(method, sent, exchange)
        return self._received(method, reply, exchange)

    def _stamp(self, params: Fields | None, exchange: Exchange | None) -> Fields:
        """Of a modern client's request its own abilities, as far as we carry them. A handshake client's
        are not declared: what a server then asks for in its result could not be put to it."""
        meta = fields_of((params or {}).get("_meta"))
        caller = None if exchange is None else exchange.caller
        if isinstance(caller, ModernCaller):
            return stamped(meta, relayable(caller.capabilities), CLIENT, caller.level)
        return stamped(meta, {}, CLIENT, self._level)

    def _received(self, method: str, reply: Reply, exchange: Exchange | None) -> Reply:
        modern = exchange is None or isinstance(exchange.caller, ModernCaller)
        if reply.error is not None:
            self._doubt(reply)
            return reply if modern else error_for_handshake(method, reply.error)
        payload = reply.result or EMPTY
        kind = kind_of(payload)
        if kind == "input_required" and method in INTERACTIVE and exchange is not None:
            return Reply(result=payload, asks=True) if modern else self._cannot_ask(method)
        if kind != "complete":
            # "A client MUST treat an unrecognized resultType as invalid" (2026-07-28, basic).
            raise UpstreamBroken(f"server '{self.client.name}' answered {method} with resultType {kind!r}")
        if modern:
            return reply
        destination = None if exchange is None else exchange.destination
        schema = None if destination is None else destination.output_schema
        try:
            return Reply(result=for_handshake(method, payload, schema))
        except (MsgspecError, UnicodeDecodeError):
            what = "something that is no result"
            raise UpstreamBroken(f"server '{self.client.name}' answered {method} with {what}") from None

    def _doubt(self, reply: Reply) -> None:
        """A server that refuses our revision or headers is not what we took it for: ask it anew next time."""
        assert reply.error is not None
        if code_of(reply.error) in OF_ONE_HOP:
            self._memory.forget()

    def _cannot_ask(self, method: str) -> Reply:
        """Said at once: nobody waits for an answer that cannot come."""
        words = (
            f"server '{self.client.name}' needs an answer of the client's in the middle of {method}; plait"
            " cannot put such a question to a client of the handshake era yet"
        )
        if method == "tools/call":
            return Reply(result=error_result(words, {"kind": "unanswerable", "server": self.client.name}))
        return refuse(INTERNAL_ERROR, words, {"kind": "unanswerable", "server": self.client.name})


def incompatible(name: str, versions: tuple[str, ...]) -> UpstreamRefused:
    theirs = ", ".join(versions) or "none that it names"
    return UpstreamRefused(
        -32022, f"server '{name}' speaks only revisions that plait does not know: {theirs[:200]}"
    )
