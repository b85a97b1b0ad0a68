"""The lists of one server: read when it starts, and again when it says that they have changed."""

import asyncio
from collections.abc import Callable, Sequence

from msgspec import Raw

from plait.errors import UpstreamError
from plait.routing.catalog import Item, read_items
from plait.session.eras.results import STALE, Freshness
from plait.tasks import TaskSet
from plait.upstream.base import Link
from plait.upstream.lists import fetch_dated
from plait.upstream.recollection import Recalled
from plait.wire.envelope import encode
from plait.wire.spec import Kind

DEBOUNCE = 0.2
"""Seconds to wait after a `list_changed`: servers send them in bursts."""


class Lists:
    """Kept while the server is started again: until then its last lists are the best there are."""

    def __init__(
        self,
        link: Callable[[], Link | None],
        tasks: TaskSet,
        changed: Callable[[], None],
        counted: Callable[[str, str], None],
    ) -> None:
        self._link = link
        self._tasks = tasks
        self._changed = changed
        self._counted = counted
        self._items: dict[Kind, tuple[Item, ...]] = {}
        self._freshness: dict[Kind, tuple[Freshness, float]] = {}
        """How long the server says that each list holds, and when it was read."""
        self._stale: set[Kind] = set()
        self._refreshing: asyncio.Task[None] | None = None

    def of(self, kind: Kind) -> Sequence[Item]:
        return self._items.get(kind, ())

    def restore(self, recalled: Recalled) -> None:
        """As they were when the server last ran."""
        for kind in Kind:
            self._items[kind] = tuple(read_items(recalled.listed(kind), kind)[0])

    def recorded(self) -> dict[str, list[Raw]]:
        return {kind.value: [Raw(encode(item.fields)) for item in self.of(kind)] for kind in Kind}

    @property
    def stale(self) -> bool:
        return bool(self._stale)

    def freshness(self, kind: Kind) -> Freshness:
        """For how much longer the list holds. One that has been read too long ago is read again soon."""
        given, read = self._freshness.get(kind, (STALE, 0.0))
        if not given.milliseconds:
            return given
        left = given.milliseconds - int((asyncio.get_running_loop().time() - read) * 1000)
        if left <= 0:
            self.outdated((kind,))
        return Freshness(max(0, left), given.public)

    async def read_all(self, link: Link) -> None:
        """At a start. What is said to change meanwhile is read once more by `refresh_soon`."""
        self._stale.clear()
        await self._read(link, set(Kind))

    def outdated(self, kinds: Sequence[Kind]) -> None:
        self._stale.update(kinds)
        if self._link() is not None:
            self.refresh_soon()

    def refresh_soon(self) -> None:
        """Never twice at a time: of two answers to the same question the older could come last."""
        if self._stale and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = self._tasks.start(self._refresh())

    async def _refresh(self) -> None:
        while self._stale:
            await asyncio.sleep(DEBOUNCE)
            link = self._link()
            if link is None:
                return
            stale, self._stale = self._stale, set()
            try:
                await self._read(link, stale)
            except UpstreamError as problem:
                self._counted("list that could not be refreshed", str(problem))
            else:
                self._changed()

    async def _read(self, link: Link, kinds: set[Kind]) -> None:
        for kind in Kind:
            if kind not in kinds:
                continue
            raws, freshness = await fetch_dated(link, kind) if link.supports(kind.capability) else ([], STALE)
            self._freshness[kind] = freshness, asyncio.get_running_loop().time()
            items, unusable = read_items(raws, kind)
            if unusable:
                self._counted("unusable list entry", f"{unusable} in {kind.method}")
            self._items[kind] = tuple(items)
