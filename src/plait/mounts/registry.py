"""All mounts, and what each kind of client sees of them. Each change publishes new catalogs."""

import asyncio
import contextlib
import logging
from collections.abc import Sequence

from plait.config.model import ServerSettings
from plait.errors import AlreadyMounted, NotMounted, UpstreamError
from plait.mounts.changes import Changes
from plait.mounts.events import Events
from plait.mounts.hearing import Hearing
from plait.mounts.instance import Instance
from plait.mounts.mount import Mount
from plait.mounts.profile import Profile, behalf_of, nobody, profile_of
from plait.mounts.state import MountEvent
from plait.mounts.view import View
from plait.routing.catalog import Catalog, build
from plait.routing.naming import MountPrefix, Naming
from plait.routing.subscriptions import Subscriptions
from plait.session.exchange import Caller
from plait.tasks import TaskSet
from plait.upstream.opening import Opener
from plait.wire.spec import Kind

LINGER = 30.0
"""Seconds that what was opened for certain clients stays open after the last of them has left."""

_log = logging.getLogger("plait")


class Registry:
    """Owns the mounts and what drives them."""

    def __init__(self, naming: Naming, start_wait: float) -> None:
        self.subscriptions = Subscriptions()
        self.events = Events()
        self.changes = Changes()
        self._hearing = Hearing(self.views_of, self.subscriptions, self.changes)
        self.heard, self.consulted = self._hearing.heard, self._hearing.consulted
        self.watchers = self._hearing.watchers
        """Parts of plait that want to know which resource of whom was updated; None: its list was."""
        self._naming = naming
        self._start_wait = start_wait
        self._mounts: dict[str, Mount] = {}
        """By prefix; several may have none, those by their name."""
        self._lock = asyncio.Lock()
        """Held by whoever changes what is mounted."""
        self._views: dict[Profile, View] = {}
        self._seen: dict[Caller, View] = {}
        self._overall: Catalog | None = None
        self._tasks = TaskSet()
        self._tidying: asyncio.Task[None] | None = None
        self._leaving: set[Mount] = set()
        """What was unmounted, and is not closed yet."""
        self._closed = False

    # ---- mounting

    async def mount(
        self,
        prefix: MountPrefix,
        name: str,
        opener: Opener,
        settings: ServerSettings,
        *,
        pinned: bool = False,
    ) -> Mount:
        """Put a server behind us. It starts by itself; nobody waits for it here."""
        mount = await self.reserve(prefix, name, opener, settings, pinned=pinned)
        self.begin(mount)
        return mount

    async def reserve(
        self,
        prefix: MountPrefix,
        name: str,
        opener: Opener,
        settings: ServerSettings,
        *,
        pinned: bool = False,
    ) -> Mount:
        """Take the prefix. Of two who want it at once exactly one gets it."""
        async with self._lock:
            key = prefix or f"({name})"
            if key in self._mounts:
                raise AlreadyMounted(f"{key} is already mounted")
            mount = Mount(prefix, name, opener, settings, self, self._restarted, pinned=pinned)
            self._mounts[key] = mount
            return mount

    def begin(self, mount: Mount, *, alone: bool = False) -> None:
        """Start it for everybody who is here; `alone`: or else for nobody in particular, and at once."""
        mount.begin()
        if not self._views:
            if alone:
                mount.open_for(nobody())
            else:
                mount.prepare()
        self._publish()

    def greet_all(self) -> None:
        """Greet the servers now, for clients that declare nothing: nobody knows who will come, and when."""
        for mount in self.mounts:
            mount.open_for(nobody())

    async def unmount(self, mount: Mount, *, drain: float = 0.0, told: bool = True) -> None:
        """Nobody sees it from now on; the calls that run have so long to finish. Then it is closed, also if
        we are cancelled meanwhile: that only ends the waiting for calls."""
        await self.withdraw(mount)
        self._leaving.add(mount)
        try:
            if drain:
                await mount.finished(drain)
        finally:
            try:
                await mount.aclose()
            finally:
                self._leaving.discard(mount)
                if told:
                    self.events.tell(mount.prefix, MountEvent.UNMOUNTED)

    async def withdraw(self, mount: Mount) -> None:
        """Nobody sees it from now on, and its prefix is free. Whoever withdraws it closes it."""
        async with self._lock:
            self._mounts.pop(self._key(mount))
        self._publish()
        for instance in mount.instances:
            self.subscriptions.forget(instance)

    def arrange(self, order: Sequence[str]) -> None:
        """These come first, in this order; by prefix, or by `(name)` where there is none."""
        first = {key: self._mounts[key] for key in order if key in self._mounts}
        self._mounts = {**first, **self._mounts}
        self._publish()

    def _key(self, mount: Mount) -> str:
        for key, known in self._mounts.items():
            if known is mount:
                return key
        raise NotMounted(f"'{mount.prefix or mount.name}' is not mounted")

    def find(self, prefix: str) -> Mount:
        """By its prefix, or by its name if it has none."""
        mount = self._mounts.get(prefix) or self._mounts.get(f"({prefix})")
        if mount is None:
            raise NotMounted(f"'{prefix}' is not mounted")
        return mount

    async def close_all(self, *, pinned: bool) -> list[Exception]:
        """End all at once, and every one of them whatever happens to another; what went wrong."""
        problems: list[Exception] = []

        async def end(mount: Mount) -> None:
            try:
                await self.unmount(mount)
            except NotMounted:
                return  # somebody else was faster
            except Exception as problem:
                _log.exception("closing %s failed; the other servers are closed all the same", mount)
                problems.append(problem)

        async with asyncio.TaskGroup() as group:
            for mount in self.mounts:
                if pinned or not mount.pinned:
                    group.create_task(end(mount))
        return problems

    async def aclose(self) -> list[Exception]:
        self._closed = True
        await self._tasks.aclose()
        problems = await self.close_all(pinned=True)
        for mount in tuple(self._leaving):
            with contextlib.suppress(Exception):  # told to whoever unmounted it
                await mount.aclose()
        await self.events.aclose()
        return problems

    @property
    def mounts(self) -> list[Mount]:
        """In the order of mounting; what is part of plait itself comes last."""
        return sorted(self._mounts.values(), key=lambda mount: mount.pinned)

    @property
    def catalog(self) -> Catalog:
        """All there is, whoever sees it."""
        if self._overall is None:
            foremost = [mount.foremost for mount in self.mounts]
            self._overall = build([each for each in foremost if each is not None], self._naming)
        return self._overall

    # ---- clients

    def join(self, caller: Caller) -> View:
        """A client is known: it sees what was opened for such clients, or what now is."""
        view = self._seen[caller] = self._view_for(caller)
        view.joined(caller)
        return view

    def view(self, caller: Caller) -> View:
        """Of a client that has joined, or of one that is here for a single request."""
        view = self._seen.get(caller)
        if view is None:
            view = self._view_for(caller)
            view.visited()
        return view

    def _view_for(self, caller: Caller) -> View:
        behalf = behalf_of(caller)
        profile = profile_of(behalf)
        view = self._views.get(profile)
        if view is None:
            view = self._views[profile] = View(behalf, self._naming, self._start_wait)
            self._show(view)
            self._tidy_later()
        return view

    @property
    def clients(self) -> int:
        return len(self._seen)

    def leave(self, caller: Caller) -> None:
        view = self._seen.pop(caller, None)
        if view is None:
            return
        view.left(caller)
        if self._closed:
            return
        self._tidy_later()
        # Beside everything else: a server that does not answer keeps no client from leaving.
        self._tasks.start(self.subscriptions.leave(caller))

    def _tidy_later(self) -> None:
        if self._tidying is None or self._tidying.done():
            self._tidying = self._tasks.start(self._tidy())

    async def _tidy(self) -> None:
        """Close what nobody came back to, as long as there is anything that may become so."""
        while True:
            await asyncio.sleep(LINGER)
            for profile, view in list(self._views.items()):
                if view.deserted(LINGER):
                    del self._views[profile]
            used = {instance for view in self._views.values() for instance in view.instances}
            for mount in self.mounts:
                for instance in mount.retire(used):
                    self.subscriptions.forget(instance)
            if all(view.attended for view in self._views.values()):
                return

    def views_of(self, instance: Instance) -> list[View]:
        return [view for view in self._views.values() if instance in view.instances]

    def _show(self, view: View) -> list[Kind]:
        return view.show([mount.open_for(view.behalf) for mount in self.mounts if mount.begun])

    def _publish(self) -> None:
        """What is mounted has changed."""
        self._overall = None
        for view in self._views.values():
            self._show(view)

    def judged_anew(self) -> None:
        """Who may see what has changed: everybody's copies of the lists may be old."""
        for view in self._views.values():
            view.audience.lists_changed(list(Kind), starting=False)

    # ---- what instances tell us

    def state_changed(self, instance: Instance) -> None:
        """The list of a server that ends stays: it is being started again."""
        self.events.tell(instance.prefix, MountEvent.STATE)

    def lists_changed(self, instance: Instance) -> None:
        self._overall = None
        seen = [view.publish() for view in self.views_of(instance)]
        if any(Kind.RESOURCES in changes for changes in seen):
            self._hearing.tell_watchers(instance, None)
        # The lists of a first start are new, not other ones; what nobody has seen may be other ones.
        if instance.first_outcome.done() and (any(seen) or not seen):
            self.changes.list_changed(instance.prefix)

    def watched(self, instance: Instance) -> bool:
        return self.subscriptions.watches(instance)

    async def _restarted(self, instance: Instance) -> None:
        try:
            await self.subscriptions.renew(instance)
        except UpstreamError as problem:
            instance.counted("subscription that could not be renewed", str(problem))
