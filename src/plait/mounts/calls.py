"""The requests of clients to one instance: waiting for the server, and for a place at it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from plait.errors import SessionLost, UpstreamBusy, UpstreamTimeout, UpstreamUnavailable
from plait.mounts.questions import Questions
from plait.mounts.state import MountState
from plait.mounts.turnstile import Turnstile
from plait.session.exchange import Exchange, Reply
from plait.tasks import Interruptible, TaskSet, to_the_end
from plait.upstream.base import Link
from plait.upstream.client import Answer, Listener
from plait.wire.envelope import Fields

if TYPE_CHECKING:
    from plait.mounts.instance import Instance

PATIENCE = 5.0
"""Seconds that a call waits for a server that is being restarted."""
LAST_WAIT = 10.0
"""Seconds for the servers of single calls to close when nobody may use them any more."""


class Calls:
    def __init__(self, instance: Instance, tasks: TaskSet) -> None:
        settings = instance.settings
        self.per_call = settings.share == "call"
        """Does each request get a server of its own?"""
        self._instance = instance
        self._tasks = tasks
        self._turnstile = Turnstile(instance.name, settings.concurrency, settings.queue)
        self._single = Interruptible()

    async def aclose(self) -> None:
        """End the calls that have a server of their own; the others end with the server that they share."""
        await self._single.aclose(LAST_WAIT)

    @property
    def running(self) -> int:
        return self._turnstile.inside

    async def finished(self, seconds: float) -> None:
        """Wait for the calls that run now, for so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._turnstile.empty()

    async def request(self, method: str, params: Fields | None, exchange: Exchange | None = None) -> Reply:
        instance = self._instance
        link = instance.link
        if exchange is None:
            if link is None:
                # Ours, not a client's: what it would say is said anew after every start.
                raise UpstreamUnavailable(self._absence)
            return await link.request(method, params)
        if link is None and not self.per_call:
            link = await self._wait_for_link(None)
        instance.served += 1
        turnstile = self._turnstile
        if turnstile.inside < turnstile.places:
            turnstile.inside += 1
        else:
            await self._turn(turnstile)
        try:
            if link is None or self.per_call:
                return await self._on_its_own(method, params, exchange)
            return await link.request(method, params, exchange)
        except SessionLost:
            # The server has not looked at the request: this is no second try.
            return await (await self._wait_for_link(link)).request(method, params, exchange)
        finally:
            turnstile.leave()

    @property
    def _absence(self) -> str:
        return f"server '{self._instance.name}' is not there: {self._instance.standing.absence}"

    async def _turn(self, turnstile: Turnstile) -> None:
        """Wait for a place, but no longer than a call may take: whoever waits gets its answer too."""
        seconds = self._instance.settings.timeout
        try:
            async with asyncio.timeout(seconds):
                await turnstile.wait()
        except TimeoutError:
            name = self._instance.name
            raise UpstreamTimeout(
                f"server '{name}' had no place for this call within {seconds:g} s"
            ) from None

    async def _wait_for_link(self, lost: Link | None) -> Link:
        """A server that is just being restarted is worth a moment, one that sleeps its whole start; one
        in a crash loop is not. `lost` is a link that is no longer any good."""
        instance, standing = self._instance, self._instance.standing
        if standing.waiting >= instance.settings.concurrency + instance.settings.queue:
            waiting = f"{standing.waiting} calls wait for its start"
            raise UpstreamBusy(f"server '{instance.name}' is busy: {waiting}; try again later")
        instance.wake()
        slept = instance.asleep
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(instance.settings.start_timeout + PATIENCE if slept else PATIENCE):
                while (instance.link is None or instance.link is lost) and self._may_come(slept=slept):
                    await standing.move()
        if instance.link is None or instance.link is lost:
            raise UpstreamUnavailable(self._absence)
        return instance.link

    def _may_come(self, *, slept: bool) -> bool:
        hopeless = (MountState.CLOSED, MountState.FAILED) if slept else (MountState.CLOSED,)
        standing = self._instance.standing
        return standing.retry_in is None and standing.state not in hopeless

    async def _on_its_own(self, method: str, params: Fields | None, exchange: Exchange) -> Reply:
        """A server for this one request, which ends with the mount if not before."""
        try:
            async with self._single.timeout(None):
                return await self._with_its_own(method, params, exchange)
        except TimeoutError:
            raise UpstreamUnavailable(
                f"server '{self._instance.name}' stopped during {method}: closed"
            ) from None

    async def _with_its_own(self, method: str, params: Fields | None, exchange: Exchange) -> Reply:
        """Opened for it, and closed after it on every path."""
        instance = self._instance
        single = SingleCall(instance, exchange, self._tasks)
        link = await instance.opener.open(single, asyncio.shield(instance.behalf))
        single.link = link
        try:
            return await link.request(method, params, exchange)
        finally:
            single.questions.retract_all()
            await to_the_end(link.aclose())
            if instance.stale:
                instance.wake()  # it said that its lists have changed: read them again


class SingleCall(Listener):
    """A server that was opened for one request: whatever it says belongs to that."""

    def __init__(self, instance: Instance, exchange: Exchange, tasks: TaskSet) -> None:
        self._instance = instance
        self._exchange = exchange
        self.link: Link | None = None
        self.questions = Questions(tasks, self._notify)

    def _notify(self, method: str, params: Fields) -> None:
        if self.link is not None:
            self.link.notify(method, params)

    def heard(self, method: str, params: Fields) -> None:
        self._instance.heard(method, params)

    def consulted(
        self,
        id: bytes,
        method: str,
        params: Fields,
        answer: Answer,
        exchange: Exchange | None,
    ) -> None:
        self._instance.put(self.questions, id, method, params, answer, self._exchange)

    def retracted(self, id: bytes) -> None:
        self.questions.retract(id)

    def counted(self, what: str, detail: str) -> None:
        self._instance.counted(what, detail)
