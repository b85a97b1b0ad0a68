"""`subscriptions/listen`: what one modern client wants to hear, from all servers, on one stream.

    listen ──> resources are watched ──> acknowledged ──> notifications, tagged ──> result, or cancelled

"The server MUST send `notifications/subscriptions/acknowledged` as the first message" (2026-07-28,
patterns/subscriptions), with what it honours: whatever happens before that waits for it.
"""

import asyncio
import contextlib

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder

from plait.errors import RemoteProtocolError, UpstreamError
from plait.routing.resolver import Mounted, Resolver
from plait.routing.streams import MAX_STREAMS, Stream
from plait.routing.subscriptions import Subscriptions
from plait.session.eras.caller import ModernCaller
from plait.session.exchange import Exchange, Reply, refuse
from plait.wire.address import as_raw
from plait.wire.envelope import EMPTY, Fields, open_fields
from plait.wire.modern import ACKNOWLEDGED, FLAGS, LISTEN
from plait.wire.spec import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND

PATIENCE = 5.0
"""Seconds for servers to say that they watch a resource, and again that they watch it no longer."""
MAX_RESOURCES = 256
"""Resources of one stream: each is a request to its server."""

_read_truth = Decoder(bool).decode
_read_texts = Decoder(list[str]).decode


class Wanted(Struct, frozen=True):
    """The filter of one stream."""

    flags: tuple[str, ...]
    uris: tuple[str, ...]


class Listening:
    """Answers `subscriptions/listen`: each runs until its client, we, or a full pipe ends it."""

    def __init__(self, resolver: Resolver, subscriptions: Subscriptions, mounted: Mounted) -> None:
        self._resolver = resolver
        self._subscriptions = subscriptions
        self._mounted = mounted

    async def run(self, exchange: Exchange) -> Reply:
        caller = exchange.caller
        if not isinstance(caller, ModernCaller):
            return refuse(METHOD_NOT_FOUND, f"Method not found: {LISTEN}")
        wanted = read_filter(exchange.params)
        streams = self._mounted.view(caller).audience.streams
        if len(streams) >= MAX_STREAMS:
            return refuse(INTERNAL_ERROR, f"{MAX_STREAMS} streams are open already; try again later")
        stream = Stream(caller, [FLAGS[flag] for flag in wanted.flags])
        streams.add(stream)
        try:
            uris = await self._watch(stream, exchange, wanted.uris)
            stream.acknowledge(_acknowledgement(wanted.flags, uris))
            await stream.over
        finally:
            streams.discard(stream)
            if wanted.uris:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PATIENCE):
                        await self._subscriptions.leave(stream)
        return Reply(result=EMPTY)

    async def _watch(self, stream: Stream, exchange: Exchange, uris: tuple[str, ...]) -> list[str]:
        """Those of the resources that a server really watches for us now. One that hangs watches nothing."""
        watched: dict[str, bool] = {}
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
                for uri in uris:
                    group.create_task(self._watch_one(stream, exchange, uri, watched))
        return [uri for uri in uris if watched.get(uri, False)]

    async def _watch_one(
        self, stream: Stream, exchange: Exchange, uri: str, watched: dict[str, bool]
    ) -> None:
        route = await self._resolver.locate(exchange.caller, uri)
        if route is None or not route.upstream.supports("resources", "subscribe"):
            return
        params = {"uri": as_raw(uri)}
        asked = Exchange(exchange.id, "resources/subscribe", params, uri, stream)
        with contextlib.suppress(UpstreamError):
            reply = await self._subscriptions.subscribe(route.upstream, asked)
            watched[uri] = reply.error is None


def read_filter(params: Fields) -> Wanted:
    """What a client wants to hear. Filters that we do not know are not honoured, and are no error."""
    try:
        fields = open_fields(params["notifications"])
        flags = tuple(flag for flag in FLAGS if flag in fields and _read_truth(fields[flag]))
        uris = tuple(dict.fromkeys(_read_texts(fields.get("resourceSubscriptions", b"[]"))))
    except (KeyError, MsgspecError, UnicodeDecodeError):
        raise RemoteProtocolError(
            f"{LISTEN} needs an object 'notifications': {', '.join(FLAGS)} are true or false, and"
            " resourceSubscriptions is a list of URIs",
            INVALID_PARAMS,
        ) from None
    if len(uris) > MAX_RESOURCES:
        raise RemoteProtocolError(
            f"a stream watches at most {MAX_RESOURCES} resources, not {len(uris)}", INVALID_PARAMS
        )
    return Wanted(flags, uris)


def _acknowledgement(flags: tuple[str, ...], uris: list[str]) -> tuple[str, Fields]:
    honoured: Fields = {flag: Raw(b"true") for flag in flags}
    if uris:
        honoured["resourceSubscriptions"] = as_raw(uris)
    return ACKNOWLEDGED, {"notifications": as_raw(honoured)}
