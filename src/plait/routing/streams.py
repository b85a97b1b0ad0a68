"""The open streams of modern clients that listen: who hears what, tagged with whose stream it is."""

import asyncio
from collections.abc import Collection

from msgspec import Raw

from plait.session.eras.caller import ModernCaller
from plait.session.exchange import OnProgress, Reply
from plait.session.negotiation import fields_of
from plait.wire.address import as_raw
from plait.wire.envelope import Fields
from plait.wire.modern import SUBSCRIPTION_KEY, UPDATED
from plait.wire.spec import CHANGED, Kind

MAX_STREAMS = 1024


class Stream:
    """One `subscriptions/listen`, as a Caller: whoever tells it something need not know what it is.

    "Every later frame carries that id", and nothing that was not asked for, "never progress or log messages".
    """

    def __init__(self, caller: ModernCaller, methods: Collection[str]) -> None:
        self._caller = caller
        self._methods = frozenset((*methods, UPDATED))
        self._early: dict[tuple[str, bytes], Fields | None] | None = {}
        """What happened before the acknowledgement; None once that is sent."""
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """The client does not read: it must listen anew, and fetch anew what it missed."""

    @property
    def identity(self) -> str:
        return self._caller.identity

    @property
    def revision(self) -> str:
        return self._caller.revision

    @property
    def capabilities(self) -> Fields:
        return self._caller.capabilities

    def acknowledge(self, acknowledgement: tuple[str, Fields]) -> None:
        early, self._early = self._early or {}, None
        self._tell(*acknowledgement)
        for (method, _), params in early.items():
            self._tell(method, params)

    def notify(self, method: str, params: Fields | None, within: bytes | None = None) -> bool | None:
        if method not in self._methods:
            return None
        if self._early is not None:
            self._early[method, bytes((params or {}).get("uri", b""))] = params
            return None
        return self._tell(method, params)

    def _tell(self, method: str, params: Fields | None) -> bool | None:
        meta = fields_of((params or {}).get("_meta"))
        tagged = {**(params or {}), "_meta": as_raw({**meta, SUBSCRIPTION_KEY: Raw(self._caller.id)})}
        heard = self._caller.tell(method, tagged)
        if heard is False and not self.over.done():
            self.over.set_result(None)
        return heard

    async def ask(
        self,
        method: str,
        params: Fields | None,
        on_progress: OnProgress | None = None,
        within: bytes | None = None,
    ) -> Reply:
        return await self._caller.ask(method, params, on_progress, within)


class Streams:
    """Every open one."""

    def __init__(self) -> None:
        self._streams: set[Stream] = set()

    def __len__(self) -> int:
        return len(self._streams)

    def add(self, stream: Stream) -> None:
        self._streams.add(stream)

    def discard(self, stream: Stream) -> None:
        self._streams.discard(stream)

    def lists_changed(self, kinds: Collection[Kind]) -> None:
        """Tell those who asked to hear it, whether or not they have listed: nothing is remembered of them."""
        for method, stale in CHANGED.items():
            if not set(stale).isdisjoint(kinds):
                for stream in tuple(self._streams):
                    stream.notify(method, None)
