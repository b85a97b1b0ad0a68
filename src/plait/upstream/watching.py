"""The streams that we listen to at a modern server, turned into what a handshake server would say unasked.

"The filter is immutable per request": so one stream is for its lists, and each resource has its own. A
stream that ends is opened again, and since what happened in between is lost, everything on it may have
changed.
"""

import asyncio
import random
from collections.abc import Sequence

from msgspec import MsgspecError, Raw
from msgspec.json import Decoder

from plait.errors import UpstreamError, UpstreamUnavailable
from plait.session.exchange import Exchange, Reply, refuse
from plait.session.negotiation import fields_of
from plait.tasks import TaskSet
from plait.upstream.client import Answer, Call, Listener, McpClient
from plait.wire.address import as_raw
from plait.wire.envelope import EMPTY, Fields
from plait.wire.modern import ACKNOWLEDGED, FLAGS, LISTEN, SUBSCRIPTION_KEY, UPDATED
from plait.wire.spec import INVALID_PARAMS

PATIENCE = 10.0
"""Seconds for a server to acknowledge a stream."""
FIRST_DELAY = 0.25
LONGEST_DELAY = 30.0
STABLE = 60.0
"""Seconds after which a stream that ends has not failed to begin."""

_read_texts = Decoder(list[str]).decode


class Watch:
    """One stream: what is wanted on it, and whether the server agreed."""

    def __init__(self, wanted: Fields, changes: Sequence[tuple[str, Fields]]) -> None:
        self.wanted = wanted
        self.changes = changes
        """What may have happened while it was not open."""
        self.call: Call | None = None
        self.honoured: asyncio.Future[Fields] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None


class Watching(Listener):
    """Stands between the client half and whoever listens to it: hears the streams, passes on the rest."""

    def __init__(self, client: McpClient, meta: Raw) -> None:
        self._client = client
        self._meta = meta
        self._inner = client.listener
        self._tasks = TaskSet()
        self._open: dict[bytes, Watch] = {}
        """By the id of the request that opened it, which is what its notifications are tagged with."""
        self._resources: dict[str, Watch] = {}

    # ---- what is watched

    def watch_lists(self, flags: Sequence[str]) -> None:
        """From now on, as long as we live. Nobody waits for it: the lists are being read anyway."""
        wanted = {flag: Raw(b"true") for flag in flags}
        self._start(Watch(wanted, [(FLAGS[flag], {}) for flag in flags]))

    async def watch(self, uri: str) -> Reply:
        """The answer to a `resources/subscribe`: does the server watch it now?"""
        known = self._resources.get(uri)
        if known is None:
            wanted = {"resourceSubscriptions": as_raw([uri])}
            known = self._resources[uri] = Watch(wanted, [(UPDATED, {"uri": as_raw(uri)})])
            self._start(known)
        try:
            async with asyncio.timeout(PATIENCE):
                honoured = await asyncio.shield(known.honoured)
            if uri in _read_texts(honoured.get("resourceSubscriptions", b"[]")):
                return Reply(result=EMPTY)
        except (TimeoutError, UpstreamError, MsgspecError):
            pass
        except asyncio.CancelledError:
            self.unwatch(uri)  # whoever subscribes is the only one who does: nobody else wants it
            raise
        self.unwatch(uri)
        return refuse(INVALID_PARAMS, f"server '{self._client.name}' does not watch {uri}", {"uri": uri})

    def unwatch(self, uri: str) -> None:
        watch = self._resources.pop(uri, None)
        if watch is not None and watch.task is not None:
            watch.task.cancel()

    async def aclose(self) -> None:
        await self._tasks.aclose()

    def _start(self, watch: Watch) -> None:
        watch.task = self._tasks.start(self._keep(watch))

    async def _keep(self, watch: Watch) -> None:
        """Open the stream again and again, more slowly the shorter it lives."""
        loop = asyncio.get_running_loop()
        delay = FIRST_DELAY
        opened = loop.time()
        while await self._listen(watch):
            delay = FIRST_DELAY if loop.time() - opened > STABLE else min(delay * 2, LONGEST_DELAY)
            await asyncio.sleep(random.uniform(delay / 2, delay))
            opened = loop.time()
            for method, params in watch.changes:
                self._inner.heard(method, params)

    async def _listen(self, watch: Watch) -> bool:
        """One life of a stream. Is it worth another?"""
        call = self._client.begin(LISTEN, {"notifications": as_raw(watch.wanted), "_meta": self._meta})
        self._open[call.id] = watch
        watch.call = call
        try:
            reply = await call.future
        except UpstreamError as problem:
            if not watch.honoured.done():
                watch.honoured.set_exception(problem)
                watch.honoured.exception()  # somebody may look at it, nobody has to
                return self._client.end is None and isinstance(problem, UpstreamUnavailable)
            # Over HTTP a stream breaks on its own: "re-listen and refetch".
            return self._client.end is None
        finally:
            self._open.pop(call.id, None)
            self._client.withdraw(call, "nobody listens any more")
        if reply.error is not None and not watch.honoured.done():
            watch.honoured.set_result({})
            return False
        return True

    # ---- what the server says

    def heard(self, method: str, params: Fields) -> None:
        meta = fields_of(params.get("_meta"))
        tag = meta.pop(SUBSCRIPTION_KEY, None)
        if tag is None:
            self._inner.heard(method, params)
            return
        watch = self._open.get(bytes(tag))
        if watch is None:
            self._inner.counted("notification on a stream that is not open", method)
        elif method == ACKNOWLEDGED:
            if not watch.honoured.done():
                watch.honoured.set_result(fields_of(params.get("notifications")))
        else:
            self._inner.heard(method, _untagged(params, meta))

    def retracted(self, id: bytes) -> None:
        """ "`notifications/cancelled` [...] to end a listen stream": then it is lost, and opened again."""
        watch = self._open.get(id)
        if watch is not None and watch.call is not None:
            watch.call.settle(Reply(result=EMPTY))

    def consulted(
        self, id: bytes, method: str, params: Fields, answer: Answer, exchange: Exchange | None
    ) -> None:
        """ "A modern server never sends a JSON-RPC request", and a modern client no response."""
        self._inner.counted("request of a modern server's", method)

    def counted(self, what: str, detail: str) -> None:
        self._inner.counted(what, detail)

    def ended(self, reason: str) -> None:
        self._inner.ended(reason)


def _untagged(params: Fields, meta: Fields) -> Fields:
    if meta:
        return {**params, "_meta": as_raw(meta)}
    return {key: value for key, value in params.items() if key != "_meta"}
