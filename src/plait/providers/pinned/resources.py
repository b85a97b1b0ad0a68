"""resources: the resources of all servers by tools, for clients and models that have only tools.

Every request goes the way of a client's own, through all guards, with the server already chosen. So nothing
can be read here that the same client could not read itself, and what is hidden from it is missing.
"""

from collections.abc import Awaitable

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder

from plait.mounts.instance import Instance
from plait.providers.pinned.arguments import At, Filter, Nothing, OfServer, Read, ReadBlocks
from plait.providers.pinned.part import Part, listing
from plait.providers.pinned.sight import Sight, usable
from plait.providers.pinned.subscribed import INDEX, MAX_RECORDS, Index, Subscribed
from plait.providers.pinned.toolbox import CHANGES, LOOKS, Refused, Tool, Toolbox
from plait.providers.pinned.uris import label
from plait.providers.pinned.watching import Watching
from plait.providers.pinned.windows import DEFAULT_BYTES, Block, blocks_of, read_blocks, read_window
from plait.routing.subscriptions import SUBSCRIBE, UNSUBSCRIBE
from plait.session.exchange import Caller, Exchange, Handler, Reply, refuse
from plait.upstream.base import Link
from plait.upstream.client import Listener
from plait.upstream.opening import Behalf
from plait.wire.address import as_raw, read_text
from plait.wire.envelope import EMPTY, ErrorBody, Fields
from plait.wire.spec import RESOURCE_NOT_FOUND, Kind

_read_error = Decoder(ErrorBody).decode
OK = {"ok": True}


class Found(Struct, frozen=True):
    """An entry of a server's list, as the server has it."""

    server: str
    resource: Fields


class FoundTemplate(Struct, frozen=True):
    server: str
    template: Fields


class ResourcesServer:
    instructions = ""
    subscriptions_resource: str = INDEX

    def __init__(self, sight: Sight, dispatch: Handler) -> None:
        """`dispatch`: where a client's requests begin, before any guard."""
        self._sight = sight
        self._registry = sight.registry
        self._dispatch = dispatch
        self._subscribed = Subscribed(self._registry.subscriptions)
        self._toolbox = Toolbox(
            [
                Tool(Filter, self.list_resources, LOOKS),
                Tool(Filter, self.list_resource_templates, LOOKS),
                Tool(Read, self.read, LOOKS),
                Tool(ReadBlocks, self.read_blocks, LOOKS),
                Tool(At, self.subscribe, CHANGES),
                Tool(At, self.unsubscribe, CHANGES),
                Tool(OfServer, self.subscribe_list_changes, CHANGES),
                Tool(OfServer, self.unsubscribe_list_changes, CHANGES),
                Tool(Nothing, self.list_subscriptions, LOOKS),
            ]
        )

    async def open(self, listener: Listener, behalf: Awaitable[Behalf]) -> Link:
        watching = Watching(self._registry, self._subscribed, listener)
        answers = {
            "tools/list": self._toolbox.list,
            "tools/call": self._toolbox.call,
            "resources/list": listing("resources", self._resources),
            "resources/templates/list": listing("resourceTemplates", list),
            "resources/read": self._read_index,
            "resources/subscribe": watching.subscribed,
            "resources/unsubscribe": watching.unsubscribed,
        }
        return Part(answers, {"tools": (), "resources": ("subscribe",)}, watching.stop)

    # ---- its own resource

    def _resources(self) -> list[object]:
        index = {
            "uri": INDEX,
            "name": "subscriptions",
            "description": "The resources that you watch, and the servers whose lists you follow.",
            "mimeType": "application/json",
        }
        return [index]

    async def _read_index(self, params: Fields, exchange: Exchange | None) -> Reply:
        uri = read_text(params["uri"])
        if exchange is None or uri != INDEX:
            return refuse(RESOURCE_NOT_FOUND, f"Resource not found: {uri}", {"uri": uri})
        text = bytes(as_raw(self._index(exchange.caller))).decode()
        return Reply(
            result=as_raw({"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]})
        )

    def _index(self, caller: Caller) -> Index:
        return self._subscribed.index(caller, self._registry.view(caller).instances)

    # ---- looking

    async def list_resources(self, given: Filter, exchange: Exchange) -> object:
        """Lists the resources of all servers that run, each with its server's prefix. Give that prefix and
        the URI to `read`."""
        found = await self._listed(Kind.RESOURCES, given, exchange.caller)
        return {"resources": [Found(server, fields) for server, fields in found]}

    async def list_resource_templates(self, given: Filter, exchange: Exchange) -> object:
        """Lists the templates of resources: fill in the variables of one and `read` the URI."""
        found = await self._listed(Kind.TEMPLATES, given, exchange.caller)
        return {"templates": [FoundTemplate(server, fields) for server, fields in found]}

    async def _listed(self, kind: Kind, given: Filter, caller: Caller) -> list[tuple[str, Fields]]:
        await self._registry.view(caller).settled()
        chosen = self._sight.servers(caller) if given.server is None else [self._find(caller, given.server)]
        return [
            (label(instance), item.fields)
            for instance in chosen
            if usable(instance) and instance.supports("resources")
            for item in self._sight.items(caller, instance, kind)
            if item.key.startswith(given.uri_prefix or "")
        ]

    # ---- reading

    async def read(self, given: Read, exchange: Exchange) -> object:
        """Reads a window of a resource. Longer ones are read piece by piece: go on with `next_offset` as
        `start_offset` until it is null. Offsets count bytes, of base64 the characters."""
        blocks = await self._blocks(given, exchange)
        return read_window(blocks, given.start_offset, given.max_bytes or DEFAULT_BYTES)

    async def read_blocks(self, given: ReadBlocks, exchange: Exchange) -> object:
        """Reads the content blocks of a resource as its server sends them; one that does not fit comes in
        part, as `truncated`. Go on with `next` until it is null."""
        blocks = await self._blocks(given, exchange)
        return read_blocks(blocks, given.start_block, given.start_offset, given.max_bytes or DEFAULT_BYTES)

    async def _blocks(self, given: At, exchange: Exchange) -> list[Block]:
        instance = self._running(exchange.caller, given.server)
        reply = await self._ask("resources/read", instance, given, exchange)
        try:
            return blocks_of(reply.result or EMPTY)
        except (MsgspecError, UnicodeDecodeError, RecursionError):
            raise Refused(f"server '{given.server}' answered with something that is no resource") from None

    # ---- watching

    async def subscribe(self, given: At, exchange: Exchange) -> object:
        """Watches a resource: whenever it changes, this client is told so by a notification, as if it had
        subscribed to it itself."""
        caller, instance = exchange.caller, self._running(exchange.caller, given.server)
        if not instance.supports("resources", "subscribe"):
            raise Refused(f"server '{given.server}' has no subscriptions; read the resource again instead")
        if self._subscribed.full(caller):
            raise Refused(f"you have {MAX_RECORDS} subscriptions; unsubscribe from some first")
        try:
            await self._ask(SUBSCRIBE, instance, given, exchange)
        except Refused as problem:
            self._subscribed.failed(caller, instance, given.uri, str(problem))
            raise
        else:
            self._subscribed.cleared(caller, instance, given.uri)
        finally:
            self._subscribed.index_changed(caller)
        return OK

    async def unsubscribe(self, given: At, exchange: Exchange) -> object:
        """Watches a resource no longer."""
        caller, instance = exchange.caller, self._find(exchange.caller, given.server)
        self._subscribed.cleared(caller, instance, given.uri)
        try:
            await self._ask(UNSUBSCRIBE, instance, given, exchange)
        finally:
            self._subscribed.index_changed(caller)
        return OK

    async def subscribe_list_changes(self, given: OfServer, exchange: Exchange) -> object:
        """Follows the list of a server's resources: whenever it changes, `resources://subscriptions` is
        updated."""
        caller, instance = exchange.caller, self._running(exchange.caller, given.server)
        if not instance.supports("resources", "listChanged"):
            raise Refused(
                f"server '{given.server}' does not tell when its list changes; list it again instead"
            )
        self._subscribed.follow(caller, instance)
        self._subscribed.index_changed(caller)
        return OK

    async def unsubscribe_list_changes(self, given: OfServer, exchange: Exchange) -> object:
        """Follows the list of a server's resources no longer."""
        self._subscribed.unfollow(exchange.caller, self._find(exchange.caller, given.server))
        self._subscribed.index_changed(exchange.caller)
        return OK

    async def list_subscriptions(self, given: Nothing, exchange: Exchange) -> object:
        """Lists the resources that this client watches, and the servers whose lists it follows."""
        return self._index(exchange.caller)

    # ---- who is meant, and asking

    def _find(self, caller: Caller, server: str) -> Instance:
        instance = self._sight.find(caller, server)
        if instance is None:
            raise Refused(f"there is no server '{server}'. Use list_resources to see which there are.")
        return instance

    def _running(self, caller: Caller, server: str) -> Instance:
        instance = self._find(caller, server)
        if not usable(instance):
            raise Refused(f"server '{server}' is not up ({instance.standing.absence}); try again later")
        return instance

    async def _ask(self, method: str, instance: Instance, given: At, exchange: Exchange) -> Reply:
        """As the client would; raises Refused, in words for a model, for every answer but a result."""
        missing = f"server '{given.server}' does not provide the resource '{given.uri}'."
        missing += " Use list_resources or list_resource_templates to see what there is."
        route = self._sight.route(exchange.caller, instance, given.uri)
        if route is None or not instance.supports("resources"):
            raise Refused(missing)
        params = {"uri": as_raw(given.uri)}
        asked = Exchange(exchange.id, method, params, given.uri, exchange.caller, exchange.meta, route)
        reply = await self._dispatch(asked)
        if reply.error is None:
            return reply
        raise _refusal(reply.error, missing)


def _refusal(error: Raw, missing: str) -> Refused:
    try:
        body = _read_error(error)
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return Refused("the server refused, and did not say why in a way that can be read")
    return Refused(missing if body.code == RESOURCE_NOT_FOUND else f"{body.message} ({body.code})")
