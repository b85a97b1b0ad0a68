"""Finds where a request goes before any guard looks at it, so that all of them judge the same name.

What a caller may not know of is not found: by its name, by another spelling, or as a suggestion. So a
name that is hidden and a name that does not exist have the same answer.
"""

from collections.abc import Callable, Iterator
from typing import Protocol
from weakref import WeakKeyDictionary

from plait.errors import RemoteProtocolError
from plait.pipeline.rules import Subject, subject_of
from plait.routing.catalog import Catalog, Listing, Offer, Route, page
from plait.routing.lookup import Aliases, Ambiguous, owner_of
from plait.routing.naming import Naming
from plait.routing.notifications import Audience
from plait.session.eras.results import Freshness
from plait.session.exchange import Caller, Exchange, Handler, Reply
from plait.wire.address import as_raw, read_reference
from plait.wire.spec import Kind

Sees = Callable[[Caller, Subject], bool]
"""May this caller know that there is such a thing?"""

NAMED = {"tools/call": Kind.TOOLS, "prompts/get": Kind.PROMPTS}
LOCATED = frozenset(("resources/read", "resources/subscribe", "resources/unsubscribe"))


class View(Protocol):
    """What is behind us, as one kind of client sees it."""

    @property
    def catalog(self) -> Catalog: ...
    @property
    def offers(self) -> list[Offer]: ...
    def capable(self, capability: str) -> list[Offer]: ...
    async def settled(self, enough: Callable[[], bool] | None = None) -> None:
        """Wait, not for long, for servers that are still starting; no longer than until there is enough."""

    def starting(self, name: str) -> str | None:
        """What to say of a name that may belong to a server that is still starting."""

    def set_level(self, caller: Caller, level: str) -> None:
        """This client wants log messages from this level on."""

    def freshness(self, kind: Kind) -> Freshness:
        """How long the list of all servers holds."""

    @property
    def audience(self) -> Audience:
        """Everybody who sees the same."""


class Mounted(Protocol):
    """What is behind us, as routing sees it."""

    def view(self, caller: Caller) -> View: ...


class Resolver:
    def __init__(self, mounted: Mounted, naming: Naming, sees: Sees | None = None) -> None:
        self._mounted = mounted
        self._naming = naming
        self._sees = sees
        self._aliases: WeakKeyDictionary[Listing, Aliases] = WeakKeyDictionary()

    def resolve_at_once(self, exchange: Exchange) -> bool:
        """The common case: a tool by its exposed name. Is it one?"""
        if exchange.method != "tools/call":
            return False
        route = self._mounted.view(exchange.caller).catalog.tools.routes.get(exchange.address)
        if route is None or (self._sees is not None and not self.visible(exchange.caller, route)):
            return False
        exchange.destination = route
        return True

    async def resolve(self, exchange: Exchange) -> None:
        """Set the destination, and the address to the exposed name; or leave both as they are."""
        kind = NAMED.get(exchange.method)
        route: Route | None
        if kind is not None:
            route = self._mounted.view(exchange.caller).catalog.listing(kind).routes.get(exchange.address)
            if route is None or not self.visible(exchange.caller, route):
                route = await self.search(kind, exchange.caller, exchange.address)
        elif exchange.method in LOCATED:
            route = await self.locate(exchange.caller, exchange.address)
        elif exchange.method == "completion/complete":
            route = await self._referred(exchange)
        else:
            return
        if route is not None:
            exchange.destination = route
            exchange.address = route.exposed

    # ---- names

    async def search(self, kind: Kind, caller: Caller, name: str) -> Route | None:
        """By its name, once its server is there, or by another spelling that fits just one route."""
        view = self._mounted.view(caller)
        await view.settled(lambda: name in view.catalog.listing(kind).routes)
        route = view.catalog.listing(kind).routes.get(name)
        if route is not None and self.visible(caller, route):
            return route
        if self.malformed(kind, name):
            return None
        found = self.alias(kind, caller, name)
        return found if isinstance(found, Route) else None

    def malformed(self, kind: Kind, name: str) -> bool:
        """With a dot for a separator a tool's name is `namespace.method` (S4-06): nothing else can be one."""
        namespace, _, method = name.partition(".")
        return kind is Kind.TOOLS and self._naming.separator == "." and not (namespace and method)

    def alias(self, kind: Kind, caller: Caller, name: str) -> Route | Ambiguous | None:
        listing = self._mounted.view(caller).catalog.listing(kind)
        aliases = self._aliases.get(listing)
        if aliases is None:
            aliases = self._aliases[listing] = Aliases(listing, self._naming)
        return aliases.find(name, lambda route: self.visible(caller, route))

    # ---- resources

    async def locate(self, caller: Caller, uri: str) -> Route | None:
        """Whose resource it is; the URI itself is what is judged."""
        view = self._mounted.view(caller)
        owner = owner_of(view.catalog, uri, [])
        if owner is None:
            await view.settled(lambda: owner_of(view.catalog, uri, []) is not None)
            owner = owner_of(view.catalog, uri, view.capable("resources"))
        if owner is None:
            return None
        route = Route(owner, as_raw(uri), uri, str(owner.prefix))
        return route if self.visible(caller, route) else None

    async def _referred(self, exchange: Exchange) -> Route | None:
        """What a completion refers to: a prompt by its name, or a template as it is listed."""
        try:
            reference = read_reference(exchange.params)
        except RemoteProtocolError:
            return None
        if isinstance(reference.name, str):
            return await self.search(Kind.PROMPTS, exchange.caller, reference.name)
        template = await self.search(Kind.TEMPLATES, exchange.caller, str(reference.uri))
        return template or await self.locate(exchange.caller, str(reference.uri))

    # ---- what a caller may know of

    def visible(self, caller: Caller, route: Route) -> bool:
        return self._sees is None or self._sees(caller, subject_of(route))

    def listing(self, kind: Kind, caller: Caller) -> Listing:
        """The list as this caller sees it."""
        whole = self._mounted.view(caller).catalog.listing(kind)
        if self._sees is None:
            return whole
        shown = [
            (exposed, route, item)
            for (exposed, route), item in zip(whole.routes.items(), whole.items, strict=True)
            if self.visible(caller, route)
        ]
        items = tuple(item for _, _, item in shown)
        return Listing(items, {exposed: route for exposed, route, _ in shown}, page(kind, items))

    def prefixes(self, caller: Caller) -> Iterator[str]:
        """The namespaces that this caller knows."""
        if self._sees is None:
            return (str(offer.prefix) for offer in self._mounted.view(caller).offers)
        return (route.server for route in self.listing(Kind.TOOLS, caller).routes.values())

    def starting(self, caller: Caller, name: str) -> str | None:
        """A server that is not up is nobody's secret, unless this name would be."""
        known = self._sees is None or self._sees(caller, Subject(name, name, ""))
        return self._mounted.view(caller).starting(name) if known else None


def resolving(resolver: Resolver, handler: Handler) -> Handler:
    """The handler, given only requests whose destination is known as far as it can be."""

    async def resolved(exchange: Exchange) -> Reply:
        # A part of plait that asks on a client's behalf knows the server; no client can say where to.
        if exchange.destination is None and not resolver.resolve_at_once(exchange):
            await resolver.resolve(exchange)
        return await handler(exchange)

    return resolved
