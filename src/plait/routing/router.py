"""The innermost handler: finds the owner of a request and hands it over."""

from collections.abc import Awaitable, Callable

from msgspec import MsgspecError, Raw
from msgspec.json import Decoder
from msgspec.structs import replace

from plait.errors import RemoteProtocolError, UpstreamError
from plait.routing.catalog import Offer, Route
from plait.routing.faults import told
from plait.routing.listening import Listening
from plait.routing.lookup import Ambiguous, unknown_tool
from plait.routing.naming import Naming
from plait.routing.pages import Pager
from plait.routing.resolver import Mounted, Resolver, Sees
from plait.routing.rounds import Rounds
from plait.routing.shapes import Shapes, dated, withheld
from plait.routing.subscriptions import Subscriptions
from plait.session.eras.results import Freshness
from plait.session.exchange import Exchange, Reply, refuse
from plait.wire.address import as_raw, read_reference, read_text, readdress, rename_reference
from plait.wire.content import error_result
from plait.wire.envelope import EMPTY, Fields, open_fields
from plait.wire.modern import LISTEN, is_modern
from plait.wire.spec import (
    INVALID_PARAMS,
    LEVELS,
    LISTS,
    MAX_COMPLETIONS,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    Kind,
)

NO_COMPLETIONS = Raw(b'{"completion":{"values":[]}}')
_read_values = Decoder(list[Raw]).decode


class Router:
    """Requests of every method end here; each is answered, or handed to exactly one server."""

    def __init__(
        self,
        mounted: Mounted,
        naming: Naming,
        pager: Pager,
        subscriptions: Subscriptions,
        sees: Sees | None = None,
        rounds: Rounds | None = None,
    ) -> None:
        """`rounds`: those of calls that may have begun at another router, before the guards changed."""
        self.resolver = Resolver(mounted, naming, sees)
        self._mounted = mounted
        self._pager = pager
        self._subscriptions = subscriptions
        self._private = sees is not None
        self._shapes = Shapes()
        self._rounds = rounds or Rounds()
        self._answer: dict[str, Callable[[Exchange], Awaitable[Reply]]] = {
            "prompts/get": self._get_prompt,
            "resources/read": self._read,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "completion/complete": self._complete,
            "logging/setLevel": self._set_level,
            LISTEN: Listening(self.resolver, subscriptions, mounted).run,
            **dict.fromkeys(LISTS, self._list),
        }

    async def __call__(self, exchange: Exchange) -> Reply:
        if exchange.destination is None and not self.resolver.resolve_at_once(exchange):
            await self.resolver.resolve(exchange)
        if "requestState" in exchange.params and is_modern(exchange.caller.revision):
            refusal = self._rounds.resume(exchange)
            if refusal is not None:
                return refusal
        if exchange.method == "tools/call":
            reply = await self._call_tool(exchange)
        else:
            answer = self._answer.get(exchange.method)
            if answer is None:
                return refuse(METHOD_NOT_FOUND, f"Method not found: {exchange.method}")
            try:
                reply = await answer(exchange)
            except RemoteProtocolError as problem:
                return refuse(problem.code, str(problem))
        return self._rounds.asked(exchange, reply) if reply.asks else reply

    # ---- lists

    async def _list(self, exchange: Exchange) -> Reply:
        view = self._mounted.view(exchange.caller)
        await view.settled()
        kind = LISTS[exchange.method]
        view.audience.has_listed(exchange.caller, kind)
        revision = exchange.caller.revision
        listing = self._shapes.shaped(kind, self.resolver.listing(kind, exchange.caller), revision)
        result = self._pager.cut(kind, listing, exchange.params.get("cursor"))
        if is_modern(revision):
            freshness = view.freshness(kind)
            result = dated(result, Freshness(freshness.milliseconds, freshness.public and not self._private))
        return Reply(result=result)

    # ---- tools and prompts

    async def _call_tool(self, exchange: Exchange) -> Reply:
        route = exchange.destination
        if not isinstance(route, Route):
            return self._unknown_tool(exchange)
        problem = _fill_arguments(exchange.params)
        if problem is not None:
            return refuse(INVALID_PARAMS, problem)
        try:
            return await route.upstream.request(
                "tools/call", {**exchange.params, "name": route.native}, exchange
            )
        except UpstreamError as error:
            return told("tools/call", route.server, error)

    def _unknown_tool(self, exchange: Exchange) -> Reply:
        """The words that help (decisions 2 and 5)."""
        name, caller = exchange.address, exchange.caller
        if self.resolver.malformed(Kind.TOOLS, name):
            return refuse(INVALID_PARAMS, f"Invalid tool name format: '{name}'")
        found = self.resolver.alias(Kind.TOOLS, caller, name)
        if isinstance(found, Ambiguous):
            return Reply(result=error_result(_choose("tool", name, found)))
        starting = self.resolver.starting(caller, name)
        if starting is not None:
            return Reply(result=error_result(f"unknown tool {name!r}: {starting}"))
        known = self.resolver.listing(Kind.TOOLS, caller).routes
        return Reply(result=error_result(unknown_tool(name, known, set(self.resolver.prefixes(caller)))))

    async def _get_prompt(self, exchange: Exchange) -> Reply:
        route = exchange.destination
        if isinstance(route, Route):
            return await self._hand_over(route, exchange)
        return self._unknown_prompt(exchange, exchange.address)

    def _unknown_prompt(self, exchange: Exchange, name: str) -> Reply:
        found = self.resolver.alias(Kind.PROMPTS, exchange.caller, name)
        if isinstance(found, Ambiguous):
            return refuse(INVALID_PARAMS, _choose("prompt", name, found))
        return refuse(INVALID_PARAMS, f"unknown prompt {name!r}")

    async def _hand_over(self, route: Route, exchange: Exchange) -> Reply:
        params = readdress(exchange.method, exchange.params, route.native)
        try:
            return await route.upstream.request(exchange.method, params, exchange)
        except UpstreamError as error:
            return told(exchange.method, route.upstream.prefix, error)

    # ---- resources

    async def _read(self, exchange: Exchange) -> Reply:
        reply = await self._at_owner(
            exchange, lambda owner: owner.request(exchange.method, exchange.params, exchange)
        )
        keepable = reply.result is not None and not reply.asks
        if self._private and keepable and is_modern(exchange.caller.revision):
            # Who may read it differs from caller to caller: nobody between us may keep it for others.
            return replace(reply, result=withheld(reply.result or EMPTY))
        return reply

    async def _subscribe(self, exchange: Exchange) -> Reply:
        return await self._at_owner(exchange, lambda owner: self._subscribe_at(owner, exchange))

    async def _subscribe_at(self, owner: Offer, exchange: Exchange) -> Reply:
        if not owner.supports("resources", "subscribe"):
            detail = {"uri": exchange.address, "server": str(owner.prefix)}
            return refuse(INVALID_PARAMS, f"server '{owner.prefix}' has no subscriptions", detail)
        return await self._subscriptions.subscribe(owner, exchange)

    async def _unsubscribe(self, exchange: Exchange) -> Reply:
        return await self._at_owner(exchange, lambda owner: self._subscriptions.unsubscribe(owner, exchange))

    async def _at_owner(self, exchange: Exchange, act: Callable[[Offer], Awaitable[Reply]]) -> Reply:
        route = exchange.destination
        if not isinstance(route, Route):
            uri = exchange.address
            return refuse(RESOURCE_NOT_FOUND, f"Resource not found: {uri}", {"uri": uri})
        try:
            return await act(route.upstream)
        except UpstreamError as error:
            return told(exchange.method, route.upstream.prefix, error)

    # ---- the rest

    async def _complete(self, exchange: Exchange) -> Reply:
        reference, route = read_reference(exchange.params), exchange.destination
        if isinstance(reference.name, str):
            if not isinstance(route, Route):
                return self._unknown_prompt(exchange, reference.name)
            params = rename_reference(exchange.params, route.native)
            return await self._complete_at(route.upstream, exchange, params)
        if not isinstance(route, Route):
            return refuse(INVALID_PARAMS, f"unknown resource template {str(reference.uri)!r}")
        return await self._complete_at(route.upstream, exchange, exchange.params)

    async def _complete_at(self, owner: Offer, exchange: Exchange, params: Fields) -> Reply:
        if not owner.supports("completions"):
            return Reply(result=NO_COMPLETIONS)
        try:
            reply = await owner.request(exchange.method, params, exchange)
        except UpstreamError as error:
            return told(exchange.method, owner.prefix, error)
        return reply if reply.result is None else Reply(result=_at_most(reply.result))

    async def _set_level(self, exchange: Exchange) -> Reply:
        try:
            level = read_text(exchange.params["level"])
        except (KeyError, MsgspecError, UnicodeDecodeError):
            level = ""
        if level not in LEVELS:
            return refuse(INVALID_PARAMS, f"'level' must be one of {', '.join(LEVELS)}")
        self._mounted.view(exchange.caller).set_level(exchange.caller, level)
        return Reply(result=EMPTY)


def _fill_arguments(params: Fields) -> str | None:
    """Missing arguments mean `{}`; what is there must be an object. What is wrong, if anything."""
    head = bytes(memoryview(params.get("arguments", b"n"))[:1])
    if head == b"n":
        params["arguments"] = EMPTY
    elif head != b"{":
        return "the 'arguments' of tools/call must be an object"
    return None


def _choose(what: str, name: str, found: Ambiguous) -> str:
    return f"several {what}s are called {name!r}: call one of {', '.join(found.candidates)}"


def _at_most(result: Raw) -> Raw:
    """ "Maximum 100 items" (server/utilities/completion): more are cut, and the client is told."""
    try:
        fields = open_fields(result)
        completion = open_fields(fields["completion"])
        values = _read_values(completion["values"])
    except (MsgspecError, KeyError, UnicodeDecodeError):
        return result
    if len(values) <= MAX_COMPLETIONS:
        return result
    cut = {**completion, "values": as_raw(values[:MAX_COMPLETIONS]), "hasMore": Raw(b"true")}
    return as_raw({**fields, "completion": as_raw(cut)})
