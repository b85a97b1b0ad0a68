"""What one client watches: its subscriptions, those that failed, and the servers whose lists it follows.

What is in force stands in routing's own table, whichever way the client subscribed; here is only what that
table has no place for. All of it belongs to the one connection, and goes when that does.
"""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from msgspec import Struct, field

from plait.mounts.instance import Instance
from plait.providers.pinned.sight import usable
from plait.providers.pinned.uris import label
from plait.routing.subscriptions import UPDATED, Subscriptions
from plait.session.exchange import Caller
from plait.wire.address import as_raw

INDEX = "resources://subscriptions"
"""The resource that has the records of whoever reads it."""
MAX_RECORDS = 1000
"""Of one client."""


class Subscription(Struct, frozen=True):
    server: str
    uri: str
    pinned: bool
    """Is the server part of plait itself?"""
    present: bool
    """Is the server up?"""
    active: bool
    last_error: str | None = None


class ListSubscription(Struct, frozen=True):
    server: str
    present: bool
    active: bool


class Index(Struct, frozen=True):
    subscriptions: list[Subscription]
    list_subscriptions: list[ListSubscription]


class _Kept(Struct):
    failed: dict[tuple[Instance, str], str] = field(default_factory=dict)
    """What subscribing to it failed with."""
    followed: dict[Instance, None] = field(default_factory=dict)


class Subscribed:
    def __init__(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions
        self._kept: WeakKeyDictionary[Caller, _Kept] = WeakKeyDictionary()

    def _of(self, caller: Caller) -> _Kept:
        return self._kept.setdefault(caller, _Kept())

    def full(self, caller: Caller) -> bool:
        kept = self._of(caller)
        return len(kept.failed) + len(self._subscriptions.held(caller)) >= MAX_RECORDS

    def failed(self, caller: Caller, instance: Instance, uri: str, error: str) -> None:
        self._of(caller).failed[instance, uri] = error

    def cleared(self, caller: Caller, instance: Instance, uri: str) -> None:
        """It is subscribed to, or no longer wanted."""
        self._of(caller).failed.pop((instance, uri), None)

    def follow(self, caller: Caller, instance: Instance) -> None:
        self._of(caller).followed[instance] = None

    def unfollow(self, caller: Caller, instance: Instance) -> None:
        self._of(caller).followed.pop(instance, None)

    def followers(self, instance: Instance) -> list[Caller]:
        return [caller for caller, kept in self._kept.items() if instance in kept.followed]

    def index_changed(self, caller: Caller) -> None:
        """The records of this client are others now; it is told if it watches them."""
        if any(uri == INDEX for _, uri in self._subscriptions.held(caller)):
            caller.notify(UPDATED, {"uri": as_raw(INDEX)})

    def prune(self, caller: Caller, mounted: Sequence[Instance]) -> None:
        """What was unmounted leaves no record (BD-29)."""
        kept = self._of(caller)
        kept.failed = {key: error for key, error in kept.failed.items() if key[0] in mounted}
        kept.followed = {instance: None for instance in kept.followed if instance in mounted}

    def index(self, caller: Caller, mounted: Sequence[Instance]) -> Index:
        """All records of this client."""
        self.prune(caller, mounted)
        kept = self._of(caller)
        held = self._subscriptions.held(caller)
        in_force = [_in_force(each, uri) for offer, uri in held for each in mounted if each is offer]
        failed = [
            Subscription(
                label(instance), uri, instance.pinned, usable(instance), active=False, last_error=error
            )
            for (instance, uri), error in kept.failed.items()
        ]
        followed = [
            ListSubscription(label(instance), usable(instance), active=usable(instance))
            for instance in kept.followed
        ]
        return Index(in_force + failed, followed)


def _in_force(instance: Instance, uri: str) -> Subscription:
    """While the server is down nothing is heard of it; it is subscribed to again when it comes back."""
    up = usable(instance)
    why = None if up else instance.standing.absence
    return Subscription(label(instance), uri, instance.pinned, up, active=up, last_error=why)
