"""What the clients of one profile have before them: their servers, their catalog, and each other."""

import asyncio
import functools
import logging
import operator
from collections.abc import Callable, Sequence

from plait.mounts.instance import Instance
from plait.mounts.state import MountState
from plait.routing.catalog import Catalog, Offer, build
from plait.routing.naming import Naming
from plait.routing.notifications import Audience
from plait.session.eras.results import STALE, Freshness
from plait.session.exchange import Caller
from plait.upstream.opening import Behalf
from plait.wire.spec import Kind

_log = logging.getLogger("plait")


class View:
    def __init__(self, behalf: Behalf, naming: Naming, start_wait: float) -> None:
        self.behalf = behalf
        self.audience = Audience()
        self.catalog = Catalog()
        self.instances: Sequence[Instance] = ()
        self._naming = naming
        self._start_wait = start_wait
        self._wait_until = 0.0
        self._deserted_at: float | None = None

    @property
    def offers(self) -> list[Offer]:
        return list(self.instances)

    def capable(self, capability: str) -> list[Offer]:
        """The servers, not what is part of plait itself, that declare this."""
        return [each for each in self.instances if not each.pinned and each.supports(capability)]

    def show(self, instances: Sequence[Instance]) -> list[Kind]:
        """These are the servers from now on."""
        level = self.audience.level
        for new in set(instances).difference(self.instances):
            self._wait_until = asyncio.get_running_loop().time() + self._start_wait
            if level is not None:
                new.set_level(level, self)
        self.instances = instances
        return self.publish()

    def publish(self) -> list[Kind]:
        """Put the catalog together anew, and tell the clients whose lists are old; which those are."""
        older, self.catalog = self.catalog, build(self.offers, self._naming)
        for withheld in set(self.catalog.withheld).difference(older.withheld):
            _log.warning("%s: %s withheld: %s", withheld.prefix, withheld.name, withheld.reason)
        changes = self.catalog.changes(older)
        if changes:
            starting = any(not each.first_outcome.done() for each in self.instances)
            self.audience.lists_changed(changes, starting=starting)
        return changes

    async def settled(self, enough: Callable[[], bool] | None = None) -> None:
        """Wait for servers that start for the first time, until a few seconds after the last was mounted.

        Whoever needs one of them only says what is `enough`: one that hangs must not delay the others.
        """
        loop = asyncio.get_running_loop()
        while enough is None or not enough():
            starting = [each.first_outcome for each in self.instances if not each.first_outcome.done()]
            seconds = self._wait_until - loop.time()
            if not starting or seconds <= 0:
                return
            await asyncio.wait(starting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)

    def starting(self, name: str) -> str | None:
        """What to say of a name that may belong to a server that is not up."""
        for each in self.instances:
            # Followed by any of the separators: `ab__c` is none of the server `a`'s.
            named = each.prefix and name.startswith((f"{each.prefix}_", f"{each.prefix}."))
            if named and each.state is not MountState.ACTIVE and not each.asleep:
                each.wake()  # one that wants a sign-in is asked again only when somebody wants to use it
                return f"server '{each.name}' is not up ({each.standing.absence})"
        return None

    def freshness(self, kind: Kind) -> Freshness:
        """As long as the first of the servers' lists to go stale; with nothing mounted, not at all."""
        known = [fresh for each in self.instances if (fresh := each.freshness(kind)) is not None]
        return functools.reduce(operator.and_, known) if known else STALE

    def joined(self, caller: Caller) -> None:
        self.audience.join(caller)
        self._deserted_at = None

    def left(self, caller: Caller) -> None:
        self.audience.leave(caller)
        self.visited()

    def visited(self) -> None:
        """Somebody was here who does not stay."""
        if not self.attended:
            self._deserted_at = asyncio.get_running_loop().time()

    @property
    def attended(self) -> bool:
        return bool(len(self.audience) or len(self.audience.streams))

    def deserted(self, seconds: float) -> bool:
        """Has nobody been here for so long?"""
        if self._deserted_at is None or self.attended:
            return False
        return asyncio.get_running_loop().time() - self._deserted_at >= seconds

    def set_level(self, caller: Caller, level: str) -> None:
        """Its servers are asked for the least severe level that anybody here wants."""
        wanted = self.audience.set_level(caller, level)
        for each in self.instances:
            each.set_level(wanted, self)
