"""compositor_meta: which servers are behind us, and how each of them stands, as resources."""

from collections.abc import Awaitable
from functools import partial

from plait.mounts.state import MountEvent
from plait.providers.pinned.part import Answer, Part, listing
from plait.providers.pinned.sight import STATE, Sight
from plait.providers.pinned.snapshot import entry
from plait.providers.pinned.uris import ResourceTemplate, label
from plait.routing.naming import MountPrefix
from plait.session.exchange import Exchange, Reply, refuse
from plait.upstream.base import Link
from plait.upstream.client import Listener
from plait.upstream.opening import Behalf
from plait.wire.address import as_raw, read_text
from plait.wire.envelope import EMPTY, Fields
from plait.wire.spec import RESOURCE_NOT_FOUND

JSON = "application/json"


class CompositorMetaServer:
    """Its resources are live: each reading tells of its own moment, and of what its reader may know."""

    instructions = ""
    servers_resource: str = "compositor://servers"
    server_state_resource: ResourceTemplate = STATE

    def __init__(self, sight: Sight) -> None:
        self._sight = sight

    async def open(self, listener: Listener, behalf: Awaitable[Behalf]) -> Link:
        heralds = _Heralds(listener)
        stop = self._sight.registry.events.listen(heralds.tell)
        answers: dict[str, Answer] = {
            "resources/list": listing("resources", self._resources),
            "resources/templates/list": listing("resourceTemplates", self._templates),
            "resources/read": self._read,
            "resources/subscribe": partial(self._subscribe, heralds),
            "resources/unsubscribe": heralds.forget,
        }
        return Part(answers, {"resources": ("subscribe", "listChanged")}, stop)

    def _resources(self) -> list[object]:
        servers = {
            "uri": self.servers_resource,
            "name": "servers",
            "description": "The prefixes of all servers, as a JSON list.",
            "mimeType": JSON,
        }
        return [servers, *(self._listed(label(mount)) for mount in self._sight.registry.mounts)]

    def _listed(self, server: str) -> dict[str, object]:
        return {
            "uri": self.server_state_resource.uri(server=server),
            "name": f"state of {server}",
            "description": f"Whether the server {server} runs, why not, and what it offers.",
            "mimeType": JSON,
        }

    def _templates(self) -> list[object]:
        state = {
            "uriTemplate": str(self.server_state_resource),
            "name": "state of a server",
            "description": "Whether a server runs, why not, and what it offers; by its prefix.",
            "mimeType": JSON,
        }
        return [state]

    async def _subscribe(self, heralds: "_Heralds", params: Fields, exchange: Exchange | None) -> Reply:
        uri = read_text(params["uri"])
        if exchange is not None and self._told(exchange, uri) is None:
            return self._missing(uri)
        heralds.watched.add(uri)
        return Reply(result=EMPTY)

    def _missing(self, uri: str) -> Reply:
        words = f"Resource not found: {uri}; {self.servers_resource} lists the servers there are"
        return refuse(RESOURCE_NOT_FOUND, words, {"uri": uri})

    async def _read(self, params: Fields, exchange: Exchange | None) -> Reply:
        uri = read_text(params["uri"])
        told = None if exchange is None else self._told(exchange, uri)
        if told is None:
            return self._missing(uri)
        text = bytes(as_raw(told)).decode()
        return Reply(result=as_raw({"contents": [{"uri": uri, "mimeType": JSON, "text": text}]}))

    def _told(self, exchange: Exchange, uri: str) -> object:
        sight, caller = self._sight, exchange.caller
        if uri == self.servers_resource:
            return [label(each) for each in sight.servers(caller)]
        server = self.server_state_resource.match(uri)
        instance = None if server is None else sight.find(caller, server)
        return None if instance is None else entry(instance, sight.tools(caller, instance))


class _Heralds:
    """Tells of mount events: that the list is another one, and which of the watched resources are."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.watched: set[str] = set()

    async def forget(self, params: Fields, exchange: Exchange | None) -> Reply:
        self.watched.discard(read_text(params["uri"]))
        return Reply(result=EMPTY)

    def tell(self, prefix: MountPrefix, event: MountEvent) -> None:
        self._listener.heard("notifications/resources/list_changed", {})
        for uri in sorted(self.watched):
            if self._concerns(uri, prefix, event):
                self._listener.heard("notifications/resources/updated", {"uri": as_raw(uri)})

    def _concerns(self, uri: str, prefix: MountPrefix, event: MountEvent) -> bool:
        server = CompositorMetaServer.server_state_resource.match(uri)
        if server is None:
            return event is not MountEvent.STATE
        return not prefix or server == prefix  # a server without a prefix: it could be any of those
