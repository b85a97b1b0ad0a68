"""All mounts. Each change publishes a new catalog, and tells the clients whose lists are old."""

import asyncio
import logging
from collections.abc import Callable

from msgspec import MsgspecError

from plait.config.model import ServerSettings
from plait.errors import ConfigError, UpstreamError
from plait.mounts.mount import Mount, MountState
from plait.mounts.supervisor import Supervisor
from plait.routing.backchannel import BackChannel
from plait.routing.catalog import Catalog, Offer, build
from plait.routing.naming import MountPrefix, Naming
from plait.routing.notifications import Audience
from plait.routing.subscriptions import UPDATED, Subscriptions
from plait.session.exchange import Reply
from plait.session.negotiation import relayable
from plait.tasks import TaskSet
from plait.upstream.opening import Behalf, Opener
from plait.wire.address import read_text
from plait.wire.envelope import Fields

_log = logging.getLogger("plait")


class AlreadyMounted(ConfigError, ValueError):
    """The prefix is taken."""


class Registry:
    """Owns the mounts and what drives them."""

    def __init__(self, naming: Naming, start_wait: float) -> None:
        self.catalog = Catalog()
        self.audience = Audience()
        self.subscriptions = Subscriptions()
        self._back_channel = BackChannel(self.audience)
        self._naming = naming
        self._start_wait = start_wait
        self._mounts: dict[str, Mount] = {}
        """By prefix; several may have none, those by their name."""
        self._lives: dict[Mount, asyncio.Task[None]] = {}
        self._tasks = TaskSet()
        self._behalf: asyncio.Future[Behalf] = asyncio.get_running_loop().create_future()
        self._wait_until = float("inf")
        self._level: str | None = None

    # ---- mounting

    def mount(
        self,
        prefix: MountPrefix,
        name: str,
        opener: Opener,
        settings: ServerSettings,
        *,
        pinned: bool = False,
    ) -> Mount:
        """Put a server behind us. It starts by itself; nobody waits for it here."""
        key = prefix or f"({name})"
        if key in self._mounts:
            raise AlreadyMounted(f"{key} is already mounted")
        mount = Mount(prefix, name, opener, settings, self, pinned=pinned)
        mount.level = self._level
        self._mounts[key] = mount
        supervisor = Supervisor(mount, lambda: asyncio.shield(self._behalf), self._restarted)
        self._lives[mount] = self._tasks.start(supervisor.run())
        return mount

    def greeted(self, capabilities: Fields, revision: str) -> None:
        """A client is known: servers may be greeted on its behalf. The first one counts."""
        if not self._behalf.done():
            self._behalf.set_result(Behalf(relayable(capabilities), revision))
            self._wait_until = asyncio.get_running_loop().time() + self._start_wait

    async def aclose(self) -> None:
        """End all of them at once, and every one of them whatever happens to another."""
        await self._tasks.aclose()
        async with asyncio.TaskGroup() as group:
            for mount in self.mounts:
                group.create_task(_close(mount))
        self._behalf.cancel()

    @property
    def mounts(self) -> list[Mount]:
        return list(self._mounts.values())

    # ---- for the router

    @property
    def offers(self) -> list[Offer]:
        return list(self._mounts.values())

    def capable(self, capability: str) -> list[Offer]:
        """The servers, not what is part of plait itself, that declare this."""
        return [mount for mount in self.mounts if not mount.pinned and mount.supports(capability)]

    async def settled(self, enough: Callable[[], bool] | None = None) -> None:
        """Wait for servers that start for the first time, until a few seconds after the client came.

        Whoever needs one of them only says what is `enough`: one that hangs must not delay the others.
        """
        loop = asyncio.get_running_loop()
        until = min(self._wait_until, loop.time() + self._start_wait)
        while enough is None or not enough():
            starting = [mount.first_outcome for mount in self.mounts if not mount.first_outcome.done()]
            seconds = until - loop.time()
            if not starting or seconds <= 0:
                return
            await asyncio.wait(starting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)

    def starting(self, name: str) -> str | None:
        for mount in self._mounts.values():
            # Followed by any of the separators: `ab__c` is none of the server `a`'s.
            named = mount.prefix and name.startswith((f"{mount.prefix}_", f"{mount.prefix}."))
            if named and mount.state is not MountState.ACTIVE:
                return f"server '{mount.name}' is not up ({mount.absence})"
        return None

    def set_level(self, level: str) -> None:
        self._level = level
        for mount in self._mounts.values():
            mount.set_level(level)

    # ---- what mounts tell us

    def state_changed(self, mount: Mount) -> None:
        """The list of a mount that ends stays: its server is being started again."""

    def lists_changed(self, mount: Mount) -> None:
        older, self.catalog = self.catalog, build(self.offers, self._naming)
        for withheld in set(self.catalog.withheld).difference(older.withheld):
            _log.warning("%s: %s withheld: %s", withheld.prefix, withheld.name, withheld.reason)
        changes = self.catalog.changes(older)
        if changes:
            starting = any(not other.first_outcome.done() for other in self.mounts)
            self.audience.lists_changed(changes, starting=starting)

    def heard(self, mount: Mount, method: str, params: Fields) -> None:
        match method:
            case "notifications/message":
                self.audience.message(mount.prefix, params)
            case "notifications/resources/updated":
                self._updated(mount, params)
            case "notifications/elicitation/complete":
                self.audience.elicitation_completed(params)
            case _:
                mount.counted("unknown notification", method)

    def _updated(self, mount: Mount, params: Fields) -> None:
        try:
            uri = read_text(params["uri"])
        except (KeyError, MsgspecError, UnicodeDecodeError):
            mount.counted("malformed notification", UPDATED)
            return
        if not self.subscriptions.updated(mount, uri, params):
            mount.counted("update of a resource that nobody watches", uri)

    async def consulted(
        self, mount: Mount, method: str, params: Fields, on_progress: Callable[[Fields], None]
    ) -> Reply:
        working_for = mount.link.working_for() if mount.link is not None else []
        return await self._back_channel.ask(mount.prefix, method, params, working_for, on_progress)

    async def _restarted(self, mount: Mount) -> None:
        try:
            await self.subscriptions.renew(mount)
        except UpstreamError as problem:
            mount.counted("subscription that could not be renewed", str(problem))


async def _close(mount: Mount) -> None:
    try:
        await mount.aclose()
    except Exception:
        _log.exception("closing %s failed; the other servers are closed all the same", mount)
