"""What one caller may know of the servers behind us: no more than its own lists tell it.

Where no guard hides anything, everybody knows of every server. Where one does, a server is known to those
who see anything of it; one that has listed nothing yet, to those whom no rule about all of it shuts out.
"""

from collections.abc import Callable

from msgspec import Raw

from plait.constants import COMPOSITOR_META_MOUNT_PREFIX
from plait.mounts.instance import Instance
from plait.mounts.registry import Registry
from plait.mounts.state import MountState
from plait.pipeline.rules import Subject, subject_of
from plait.providers.pinned.uris import ResourceTemplate, label
from plait.routing.catalog import Catalog, Item, Route
from plait.routing.resolver import Resolver, Sees
from plait.session.exchange import Caller
from plait.wire.address import as_raw
from plait.wire.spec import Kind

STATE = ResourceTemplate("compositor://{server}/state")


def discreet(sees: Sees | None, registry: Registry) -> Sees | None:
    """The same, but what tells of a server is hidden from those who may not know of that server."""
    if sees is None:
        return None

    def seen(caller: Caller, subject: Subject) -> bool:
        if not sees(caller, subject):
            return False
        server = STATE.match(subject.exposed) if subject.server == COMPOSITOR_META_MOUNT_PREFIX else None
        if server is None:
            return True
        view = registry.view(caller)
        telling = [
            route for each in view.instances if label(each) == server for route in _of(view.catalog, each)
        ]
        return any(sees(caller, subject_of(route)) for route in telling)

    return seen


def _of(catalog: Catalog, instance: Instance) -> list[Route]:
    """All that a server shows; if that is nothing, a name as any of its tools might have."""
    listings = (catalog.listing(kind).routes.values() for kind in Kind)
    found = [route for routes in listings for route in routes if route.upstream is instance]
    return found or [Route(instance, as_raw(""), f"{instance.prefix}__", str(instance.prefix))]


def usable(instance: Instance) -> bool:
    """Is it up, or would a request start it?"""
    return instance.state is MountState.ACTIVE or instance.asleep


class Sight:
    def __init__(self, registry: Registry, resolver: Callable[[], Resolver]) -> None:
        self.registry = registry
        self._resolver = resolver

    def servers(self, caller: Caller) -> list[Instance]:
        """The servers that this caller may know of, in their order."""
        view, resolver = self.registry.view(caller), self._resolver()
        return [
            each
            for each in view.instances
            if any(resolver.visible(caller, route) for route in _of(view.catalog, each))
        ]

    def find(self, caller: Caller, server: str) -> Instance | None:
        """By its prefix, or by its name if it has none."""
        known = {label(each): each for each in self.servers(caller)}
        return known.get(server) or known.get(f"({server})")

    def tools(self, caller: Caller, instance: Instance) -> list[Raw]:
        """As `tools/list` has them."""
        listing = self._resolver().listing(Kind.TOOLS, caller)
        pairs = zip(listing.routes.values(), listing.items, strict=True)
        return [item for route, item in pairs if route.upstream is instance]

    def items(self, caller: Caller, instance: Instance, kind: Kind) -> list[Item]:
        """Resources or templates, those too that another server has as well."""
        return [item for item in instance.listed(kind) if self.route(caller, instance, item.key) is not None]

    def route(self, caller: Caller, instance: Instance, uri: str) -> Route | None:
        """The way to a resource of just this server; None if this caller may not know of it."""
        route = Route(instance, as_raw(uri), uri, str(instance.prefix))
        return route if self._resolver().visible(caller, route) else None
