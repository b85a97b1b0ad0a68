"""Sees what happens to servers, and tells those who watch their records what of it concerns them."""

from plait.mounts.instance import Instance
from plait.mounts.registry import Registry
from plait.mounts.state import MountEvent
from plait.providers.pinned.subscribed import INDEX, Subscribed
from plait.routing.naming import MountPrefix
from plait.routing.subscriptions import UPDATED
from plait.session.exchange import Exchange, Reply
from plait.upstream.client import Listener
from plait.wire.address import as_raw
from plait.wire.envelope import EMPTY, Fields


class Watching:
    def __init__(self, registry: Registry, subscribed: Subscribed, listener: Listener) -> None:
        self._registry = registry
        self._subscribed = subscribed
        self._listener = listener
        self._watched = False
        """Does anybody watch their records?"""
        self._unlisten = registry.events.listen(self._mounted)
        registry.watchers.append(self._changed)

    def stop(self) -> None:
        self._unlisten()
        self._registry.watchers.remove(self._changed)

    async def subscribed(self, params: Fields, exchange: Exchange | None) -> Reply:
        self._watched = True
        return Reply(result=EMPTY)

    async def unsubscribed(self, params: Fields, exchange: Exchange | None) -> Reply:
        self._watched = False
        return Reply(result=EMPTY)

    def _mounted(self, prefix: MountPrefix, event: MountEvent) -> None:
        """Its records are gone with a server: whose they were is known no longer, so all are told."""
        if event is MountEvent.UNMOUNTED and self._watched:
            self._listener.heard(UPDATED, {"uri": as_raw(INDEX)})

    def _changed(self, instance: Instance, uri: str | None) -> None:
        """A resource, or a list of them, that somebody watches has changed (BD-30)."""
        if uri is None:
            concerned = self._subscribed.followers(instance)
        else:
            concerned = [] if uri == INDEX else list(self._registry.subscriptions.holders(instance, uri))
        for caller in concerned:
            self._subscribed.index_changed(caller)
