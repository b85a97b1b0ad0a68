"""One server behind us: its prefix, its state, its lists, and everything that must close with it."""

import asyncio
import contextlib
import enum
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from plait.config.model import ServerSettings
from plait.errors import (
    LocalProtocolError,
    UpstreamBusy,
    UpstreamError,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from plait.mounts.lists import Lists
from plait.mounts.turnstile import Turnstile
from plait.routing.catalog import Item, matches
from plait.routing.naming import MountPrefix
from plait.session.exchange import Exchange, Reply
from plait.session.negotiation import fields_of
from plait.tasks import TaskSet
from plait.upstream.base import Link
from plait.upstream.client import Listener
from plait.upstream.opening import Behalf, Opener
from plait.wire.address import as_raw
from plait.wire.envelope import Fields
from plait.wire.spec import CHANGED, Kind
from plait.wire.text import printable

PATIENCE = 5.0
"""Seconds that a call waits for a server that is being restarted."""


class MountState(enum.Enum):
    PENDING = "pending"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


TRANSITIONS = {
    MountState.PENDING: {MountState.ACTIVE, MountState.FAILED, MountState.CLOSED},
    MountState.ACTIVE: {MountState.FAILED, MountState.CLOSED},
    MountState.FAILED: {MountState.PENDING, MountState.CLOSED},
    MountState.CLOSED: set[MountState](),
}
"""All that can happen to a mount. FAILED to PENDING is a restart."""


class Surroundings(Protocol):
    """What a mount tells the rest of the compositor."""

    def state_changed(self, mount: "Mount") -> None: ...
    def lists_changed(self, mount: "Mount") -> None: ...
    def heard(self, mount: "Mount", method: str, params: Fields) -> None: ...
    async def consulted(
        self, mount: "Mount", method: str, params: Fields, on_progress: Callable[[Fields], None]
    ) -> Reply: ...


class Mount(Listener):
    """A server and all that belongs to it. The supervisor drives its life; requests only use it."""

    def __init__(
        self,
        prefix: MountPrefix,
        name: str,
        opener: Opener,
        settings: ServerSettings,
        surroundings: Surroundings,
        *,
        pinned: bool = False,
    ) -> None:
        self.pinned = pinned
        """Is it part of plait itself? Such a mount is there from start to end."""
        self.prefix = prefix
        self.name = name
        self.settings = settings
        self.state = MountState.PENDING
        self.reason = "starting"
        """Why it is in this state, in words."""
        self._retry_at: float | None = None
        self.counters: Counter[str] = Counter()
        """What was dropped, and how often."""
        self.link: Link | None = None
        self._last_link: Link | None = None
        """The one there is, or was: what the server declared stays known while it is started again."""
        self.greeted = False
        """Has it said what it can do? Once it has, that stays known while it is started again."""
        self.served = 0
        """How many requests of clients it was given since it was started."""
        self.level: str | None = None
        loop = asyncio.get_running_loop()
        self.first_outcome: asyncio.Future[None] = loop.create_future()
        """Done when the first start has succeeded or failed."""
        self._opener = opener
        self._surroundings = surroundings
        self._turnstile = Turnstile(name, settings.concurrency, settings.queue)
        self._tasks = TaskSet()
        self._questions: dict[bytes, asyncio.Task[None]] = {}
        self._lists = Lists(
            lambda: self.link, self._tasks, lambda: surroundings.lists_changed(self), self.counted
        )
        self._ended: asyncio.Future[str] = loop.create_future()
        self._turns: list[asyncio.Future[None]] = []
        self._log = logging.getLogger(f"plait.{prefix or name or 'server'}")

    def __repr__(self) -> str:
        return f"<Mount {self.prefix or '(no prefix)'}: {self.state.value}, {self.reason}>"

    # ---- its life (the supervisor calls these)

    def become(self, state: MountState, reason: str) -> None:
        if state not in TRANSITIONS[self.state]:
            raise LocalProtocolError(f"a mount cannot go from {self.state.value} to {state.value}")
        self.state = state
        self.reason = reason
        self._log.log(
            logging.WARNING if state is MountState.FAILED else logging.INFO, "%s: %s", state.value, reason
        )
        if state is not MountState.PENDING and not self.first_outcome.done():
            self.first_outcome.set_result(None)
        for turn in self._turns:
            if not turn.done():
                turn.set_result(None)
        self._turns.clear()
        self._surroundings.state_changed(self)

    async def start(self, behalf: Awaitable[Behalf]) -> None:
        """Open the server and read its lists. Whatever was opened before a failure is closed again."""
        self._ended = asyncio.get_running_loop().create_future()
        self.served = 0
        link = await self._opener.open(self, behalf)
        try:
            async with asyncio.timeout(self.settings.start_timeout):
                await self._lists.read_all(link)
        except TimeoutError:
            await link.aclose()
            raise UpstreamTimeout(f"no lists within {self.settings.start_timeout:g} s") from None
        except BaseException:
            await link.aclose()
            raise
        self.link = self._last_link = link
        self.retry_in = None
        self.greeted = True
        self._surroundings.lists_changed(self)
        self.become(MountState.ACTIVE, link.warning or "running")
        if self.level is not None:
            self.set_level(self.level)
        self._lists.refresh_soon()  # what was said to have changed while it was being read

    async def run_out(self) -> str:
        """Wait until the server ends; why it did."""
        reason = await self._ended
        await self._let_go()
        return reason

    async def aclose(self) -> None:
        """Close everything that belongs to it, once and for good."""
        try:
            await self._let_go()
            await self._tasks.aclose()
        finally:
            if self.state is not MountState.CLOSED:
                self.become(MountState.CLOSED, "closed")

    async def _let_go(self) -> None:
        link, self.link = self.link, None
        for question in tuple(self._questions.values()):
            question.cancel()
        if link is not None:
            await link.aclose()

    @property
    def instructions(self) -> str:
        """As it says them now, or as it said them last time."""
        return self.link.instructions if self.link is not None else self._opener.instructions

    # ---- requests

    async def request(self, method: str, params: Fields | None, exchange: Exchange | None = None) -> Reply:
        link = self.link
        if link is None:
            if exchange is None:
                # Ours, not a client's: what it would say is said anew after every start.
                raise UpstreamUnavailable(f"server '{self.name}' is not there: {self.absence}")
            link = await self._wait_for_link()
        if exchange is None:
            return await link.request(method, params)
        self.served += 1
        turnstile = self._turnstile
        if turnstile.inside < turnstile.places:
            turnstile.inside += 1
        else:
            await self._turn(turnstile)
        try:
            return await link.request(method, params, exchange)
        finally:
            turnstile.leave()

    async def _turn(self, turnstile: Turnstile) -> None:
        """Wait for a place, but no longer than a call may take: whoever waits gets its answer too."""
        try:
            async with asyncio.timeout(self.settings.timeout):
                await turnstile.wait()
        except TimeoutError:
            seconds = f"{self.settings.timeout:g} s"
            raise UpstreamTimeout(
                f"server '{self.name}' had no place for this call within {seconds}"
            ) from None

    @property
    def retry_in(self) -> float | None:
        """Seconds to the next try, while it crashes again and again: calls are refused at once until then."""
        if self._retry_at is None:
            return None
        return max(0.0, self._retry_at - asyncio.get_running_loop().time())

    @retry_in.setter
    def retry_in(self, seconds: float | None) -> None:
        self._retry_at = None if seconds is None else asyncio.get_running_loop().time() + seconds

    @property
    def absence(self) -> str:
        """Why it is not there, and when that may change."""
        return self.reason if self.retry_in is None else f"{self.reason}; next try in {self.retry_in:.0f} s"

    async def _wait_for_link(self) -> Link:
        """A server that is just being restarted is worth a moment; one in a crash loop is not."""
        if len(self._turns) >= self.settings.concurrency + self.settings.queue:
            waiting = f"{len(self._turns)} calls wait for its start"
            raise UpstreamBusy(f"server '{self.name}' is busy: {waiting}; try again later")
        try:
            async with asyncio.timeout(PATIENCE):
                while self.link is None and self.retry_in is None and self.state is not MountState.CLOSED:
                    turn = asyncio.get_running_loop().create_future()
                    self._turns.append(turn)
                    try:
                        await turn
                    finally:
                        with contextlib.suppress(ValueError):  # usually all of them are gone at once
                            self._turns.remove(turn)
        except TimeoutError:
            raise UpstreamUnavailable(f"server '{self.name}' is not there: {self.reason}") from None
        if self.link is None:
            raise UpstreamUnavailable(f"server '{self.name}' is not there: {self.absence}")
        return self.link

    def notify(self, method: str, params: Fields | None = None) -> None:
        if self.link is not None:
            self.link.notify(method, params)

    def supports(self, capability: str, detail: str | None = None) -> bool:
        return self._last_link is not None and self._last_link.supports(capability, detail)

    def set_level(self, level: str) -> None:
        """Ask for log messages of this level and above, now and after every restart."""
        self.level = level
        if self.supports("logging"):
            self._tasks.start(self._send_level(level))

    async def _send_level(self, level: str) -> None:
        with contextlib.suppress(UpstreamError):
            await self.request("logging/setLevel", {"level": as_raw(level)})

    # ---- lists

    def listed(self, kind: Kind) -> Sequence[Item]:
        """The last known list: a server that is being restarted keeps its place."""
        return self._lists.of(kind)

    def exposes(self, tool: str) -> bool:
        shown = self.settings.tools is None or matches(self.settings.tools, tool)
        return shown and not matches(self.settings.hidden_tools, tool)

    # ---- what the server says unasked

    def heard(self, method: str, params: Fields) -> None:
        kinds = CHANGED.get(method)
        if kinds is None:
            self._surroundings.heard(self, method, params)
            return
        self._lists.outdated(kinds)

    def consulted(self, id: bytes, method: str, params: Fields, answer: Callable[[Reply], None]) -> None:
        self._questions[id] = self._tasks.start(self._put(id, method, params, answer))

    async def _put(self, id: bytes, method: str, params: Fields, answer: Callable[[Reply], None]) -> None:
        token = fields_of(params.get("_meta")).get("progressToken")

        def on_progress(progress: Fields) -> None:
            if token is not None:
                self.notify("notifications/progress", {**progress, "progressToken": token})

        try:
            answer(await self._surroundings.consulted(self, method, params, on_progress))
        finally:
            self._questions.pop(id, None)

    def retracted(self, id: bytes) -> None:
        question = self._questions.get(id)
        if question is not None:
            question.cancel()

    def counted(self, what: str, detail: str) -> None:
        self.counters[what] += 1
        if self.counters[what] == 1:
            self._log.warning("%s %s (further ones are counted)", what, printable(detail[:200]))

    def ended(self, reason: str) -> None:
        if not self._ended.done():
            self._ended.set_result(reason)
