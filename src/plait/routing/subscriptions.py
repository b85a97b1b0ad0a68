"""Which client watches which resource: one subscription at the server, however many watch here."""

import asyncio
import contextlib

from plait.errors import UpstreamError
from plait.routing.catalog import Offer
from plait.session.exchange import Caller, Exchange, Reply
from plait.wire.address import as_raw
from plait.wire.envelope import EMPTY, Fields

SUBSCRIBE = "resources/subscribe"
UNSUBSCRIBE = "resources/unsubscribe"
UPDATED = "notifications/resources/updated"


class Watch:
    """One resource of one server that somebody watches."""

    def __init__(self) -> None:
        self.holders: set[Caller] = set()
        self.lock = asyncio.Lock()
        """The server hears of the first holder before the second is told that all is well."""


class Subscriptions:
    def __init__(self) -> None:
        self._watches: dict[tuple[Offer, str], Watch] = {}

    async def subscribe(self, offer: Offer, exchange: Exchange) -> Reply:
        key = (offer, exchange.address)
        watch = self._watches.setdefault(key, Watch())
        async with watch.lock:
            reply = Reply(result=EMPTY)
            try:
                if not watch.holders:
                    reply = await offer.request(SUBSCRIBE, exchange.params, exchange)
                if reply.error is None:
                    watch.holders.add(exchange.caller)
            finally:
                if watch.holders:
                    self._watches[key] = watch
                else:
                    self._watches.pop(key, None)
        return reply

    async def unsubscribe(self, offer: Offer, exchange: Exchange) -> Reply:
        """Unsubscribing from what one does not watch is no error."""
        watch = self._watches.get((offer, exchange.address))
        if watch is None:
            return Reply(result=EMPTY)
        async with watch.lock:
            watch.holders.discard(exchange.caller)
            if not watch.holders and (offer, exchange.address) in self._watches:
                del self._watches[offer, exchange.address]
                return await offer.request(UNSUBSCRIBE, exchange.params, exchange)
        return Reply(result=EMPTY)

    def updated(self, offer: Offer, uri: str, params: Fields) -> bool:
        """Tell the holders, and nobody else. "The URI [...] might be a sub-resource of the one that the
        client actually subscribed to" (schema): then those who hold what it is part of."""
        holders = self.holders(offer, uri)
        for caller in holders:
            caller.notify(UPDATED, params)
        return bool(holders)

    def holders(self, offer: Offer, uri: str) -> set[Caller]:
        """Who watches this resource, or one that it is part of."""
        found: set[Caller] = set()
        for (owner, watched), watch in self._watches.items():
            if owner is offer and _is_part(uri, watched):
                found |= watch.holders
        return found

    def held(self, caller: Caller) -> list[tuple[Offer, str]]:
        """What this client watches."""
        return [key for key, watch in self._watches.items() if caller in watch.holders]

    async def leave(self, caller: Caller) -> None:
        """A client is gone: what only it watched is watched no longer."""
        alone = []
        for key, watch in list(self._watches.items()):
            if caller in watch.holders:
                watch.holders.discard(caller)
                if not watch.holders:
                    del self._watches[key]
                    alone.append(key)
        for offer, uri in alone:
            with contextlib.suppress(UpstreamError):  # a server that is gone watches nothing
                await offer.request(UNSUBSCRIBE, {"uri": as_raw(uri)})

    def watches(self, offer: Offer) -> bool:
        """Does anybody watch something of this server's?"""
        return any(owner is offer for owner, _ in self._watches)

    def forget(self, offer: Offer) -> None:
        """The server was unmounted."""
        for key in [key for key in self._watches if key[0] is offer]:
            del self._watches[key]

    async def renew(self, offer: Offer) -> None:
        """The server was started anew and knows nothing: subscribe again, and since what happened in
        between is lost, say that everything may have changed."""
        for (owner, uri), watch in list(self._watches.items()):
            if owner is not offer:
                continue
            params = {"uri": as_raw(uri)}
            await offer.request(SUBSCRIBE, params)
            for caller in watch.holders:
                caller.notify(UPDATED, params)


def _is_part(uri: str, whole: str) -> bool:
    """Is it the same resource, or one below it? `x://dir/file` is part of `x://dir`, `x://dir2` is not."""
    if not uri.startswith(whole):
        return False
    return uri == whole or whole.endswith("/") or uri[len(whole)] in "/?#"
