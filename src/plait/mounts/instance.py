"""One opening of a server, on behalf of the clients that share it: its state, its lists, its requests."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from plait.config.model import ServerSettings
from plait.errors import PlaitError, UpstreamError, UpstreamTimeout
from plait.mounts.calls import Calls
from plait.mounts.lists import Lists
from plait.mounts.questions import Questions
from plait.mounts.standing import Standing
from plait.mounts.state import MountState
from plait.mounts.surroundings import Supporting, Surroundings
from plait.routing.catalog import Item, matches
from plait.routing.naming import MountPrefix
from plait.session.eras.results import Freshness
from plait.session.exchange import Exchange, OnProgress, Reply
from plait.tasks import TaskSet
from plait.upstream.base import Link
from plait.upstream.client import Answer, Listener
from plait.upstream.opening import Behalf, Declaring, Opener, Remembering
from plait.upstream.recollection import Recalled
from plait.wire.address import as_raw
from plait.wire.envelope import Fields
from plait.wire.spec import CHANGED, LEVELS, Kind
from plait.wire.text import printable

QUIET_CHECKS = 4
"""A server is idle when it was found quiet so many times in a row, the last time after its idle time."""


class Instance(Listener):
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
        self.prefix = prefix
        self.name = name
        self.settings = settings
        self.counters: Counter[str] = Counter()
        """What was dropped, and how often."""
        self.link: Link | None = None
        self._unclosed: Link | None = None
        """What has to be closed: the link, also when it is no longer to be used."""
        self._known: Supporting | None = None
        """What the server has declared: it stays known while it is started again, and from last time."""
        self.served = 0
        """How many requests of clients it was given since it was started."""
        self.level: str | None = None
        self._levels: WeakKeyDictionary[object, str] = WeakKeyDictionary()
        self.problem: PlaitError | None = None
        """What its last start failed with."""
        self.asleep = False
        """Is it stopped until somebody uses it?"""
        self.opener = opener
        self._surroundings = surroundings
        self._tasks = TaskSet()
        self._questions = Questions(self._tasks, self.notify)
        self._lists = Lists(
            lambda: self.link, self._tasks, lambda: surroundings.lists_changed(self), self.counted
        )
        self._log = logging.getLogger(f"plait.{prefix or name or 'server'}")
        self.standing = Standing(self._log, lambda: surroundings.state_changed(self))
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[str] = loop.create_future()
        self._wanted = asyncio.Event()
        self.behalf: asyncio.Future[Behalf] = loop.create_future()
        """On whose behalf the server is greeted, once that is known. Until then it may be started."""
        self.calls = Calls(self, self._tasks)
        self.request = self.calls.request
        """Not a method around it: every call goes through here."""

    def __repr__(self) -> str:
        return f"<Instance {self.prefix or '(no prefix)'}: {self.state.value}, {self.reason}>"

    # ---- how it stands

    @property
    def state(self) -> MountState:
        return self.standing.state

    @property
    def reason(self) -> str:
        return self.standing.reason

    @property
    def first_outcome(self) -> asyncio.Future[None]:
        return self.standing.first_outcome

    @property
    def greeted(self) -> bool:
        """Has it said what it can do?"""
        return self._known is not None

    @property
    def instructions(self) -> str:
        """As it says them now, or as it said them last time."""
        return self.link.instructions if self.link is not None else self.opener.instructions

    # ---- its life (the supervisor calls these)

    def claim(self, behalf: Behalf) -> None:
        """These clients are the ones that it runs for."""
        if not self.behalf.done():
            self.behalf.set_result(behalf)

    async def recall(self) -> bool:
        """Take its lists from last time, so that it need not run to be listed. Are there any?"""
        if not isinstance(self.opener, Remembering):
            return False
        behalf = await asyncio.shield(self.behalf)
        recalled = self.opener.recollection.recall_lists(behalf.capabilities)
        if recalled is None:
            return False
        self._known = recalled
        self._lists.restore(recalled)
        self._surroundings.lists_changed(self)
        return True

    async def start(self) -> None:
        """Open the server and read its lists. Whatever was opened before a failure is closed again."""
        self._ended = asyncio.get_running_loop().create_future()
        self.served = 0
        self._wanted.clear()
        link = self._unclosed = await self.opener.open(self, asyncio.shield(self.behalf))
        try:
            async with asyncio.timeout(self.settings.start_timeout):
                await self._lists.read_all(link)
        except TimeoutError:
            await self._let_go()
            raise UpstreamTimeout(f"no lists within {self.settings.start_timeout:g} s") from None
        except BaseException:
            await self._let_go()
            raise
        self.link = self._known = link
        self.asleep = False
        self.problem = None
        self.standing.retry_in = None
        self._surroundings.lists_changed(self)
        self.standing.become(MountState.ACTIVE, link.warning or "running")
        self._remember(link)
        if self.level is not None:
            self._ask_for_level(self.level)
        self._lists.refresh_soon()  # what was said to have changed while it was being read

    def _remember(self, link: Link) -> None:
        """Only for servers that are listed without running: nobody else asks for it."""
        if self.settings.start == "lazy" and isinstance(self.opener, Remembering):
            declared = link.capabilities if isinstance(link, Declaring) else {}
            recalled = Recalled(declared, self._lists.recorded())
            self.opener.recollection.remember_lists(self.behalf.result().capabilities, recalled)

    async def run_out(self) -> str | None:
        """Wait until the server ends; why it did. None: nobody used it, and it may rest."""
        if self.calls.per_call:
            reason = self._ended.result() if self._ended.done() else None  # all that it was for are its lists
        elif self.settings.idle is not None:
            reason = await self._until_idle(self.settings.idle)
        else:
            reason = await self._ended
        if reason is None:
            self.asleep = True  # whoever calls while it is being stopped waits for its whole start
            if not self.stale:
                self._wanted.clear()  # whoever wanted it before has had it
        await self._let_go()
        return reason

    async def _until_idle(self, seconds: float) -> str | None:
        quiet = 0
        while quiet < QUIET_CHECKS:
            served = self.served
            await asyncio.wait((self._ended,), timeout=seconds / QUIET_CHECKS)
            if self._ended.done():
                return self._ended.result()
            busy = self.calls.running or len(self._questions) or self._surroundings.watched(self)
            quiet = 0 if busy or served != self.served else quiet + 1
        return None

    async def rest(self, reason: str) -> None:
        """Stay stopped until somebody uses it, and keep its lists."""
        self.asleep = True
        if self.calls.per_call and not self.stale:
            self._wanted.clear()  # calls go to servers of their own
        if self.state is MountState.PENDING:
            self.standing.settle()
            self.standing.explain(reason)
        else:
            self.standing.become(MountState.PENDING, reason)
        await self._wanted.wait()

    def wake(self) -> None:
        """Somebody wants to use it, or its lists are old."""
        self._wanted.set()

    async def wanted(self) -> None:
        """Wait until somebody uses it."""
        self._wanted.clear()
        await self._wanted.wait()

    async def aclose(self) -> None:
        """Close everything that belongs to it, once and for good."""
        try:
            await self.calls.aclose()
            await self._let_go()
            await self._tasks.aclose()
        finally:
            self.conclude()

    def conclude(self) -> None:
        """It is closed, as far as it could be."""
        self.behalf.cancel()
        if self.state is not MountState.CLOSED:
            self.standing.become(MountState.CLOSED, "closed")

    async def _let_go(self) -> None:
        """Close the link; once more if that was torn."""
        self.link = None
        self._questions.retract_all()
        if self._unclosed is not None:
            await self._unclosed.aclose()
            self._unclosed = None

    # ---- what is said to it (requests: see calls.py)

    def notify(self, method: str, params: Fields | None = None) -> None:
        if self.link is not None:
            self.link.notify(method, params)

    def supports(self, capability: str, detail: str | None = None) -> bool:
        if self.calls.per_call and detail == "subscribe":
            return False  # nobody would be there to say what has changed
        return self._known is not None and self._known.supports(capability, detail)

    def set_level(self, level: str, wanted_by: object) -> None:
        """Ask for log messages of the least severe level that anybody wants, now and after every restart."""
        self._levels[wanted_by] = level
        self.level = min(self._levels.values(), key=LEVELS.index)
        self._ask_for_level(self.level)

    def _ask_for_level(self, level: str) -> None:
        if self.link is not None and self.supports("logging"):
            self._tasks.start(self._send_level(level))

    async def _send_level(self, level: str) -> None:
        with contextlib.suppress(UpstreamError):
            await self.request("logging/setLevel", {"level": as_raw(level)})

    # ---- lists

    def listed(self, kind: Kind) -> Sequence[Item]:
        """The last known list: a server that is being restarted keeps its place."""
        return self._lists.of(kind)

    def freshness(self, kind: Kind) -> Freshness | None:
        """How long that list holds; None where it says nothing of the whole: it has none, or is ours."""
        if self.pinned or (self.greeted and not self.supports(kind.capability)):
            return None
        return self._lists.freshness(kind)

    @property
    def stale(self) -> bool:
        """Has it said that they have changed, and are they not read again yet?"""
        return self._lists.stale

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

    def consulted(
        self,
        id: bytes,
        method: str,
        params: Fields,
        answer: Answer,
        exchange: Exchange | None,
    ) -> None:
        self.put(self._questions, id, method, params, answer, exchange)

    def put(
        self,
        questions: Questions,
        id: bytes,
        method: str,
        params: Fields,
        answer: Answer,
        exchange: Exchange | None,
    ) -> None:
        """Put a question to the client whose request raised it, as far as that is known."""

        async def ask(method: str, params: Fields, on_progress: OnProgress) -> Reply:
            known = self.link.working_for() if exchange is None and self.link is not None else []
            working_for = known if exchange is None else [exchange]
            return await self._surroundings.consulted(self, method, params, on_progress, working_for)

        questions.add(id, method, params, ask, answer)

    def retracted(self, id: bytes) -> None:
        self._questions.retract(id)

    def counted(self, what: str, detail: str) -> None:
        self.counters[what] += 1
        if self.counters[what] == 1:
            self._log.warning("%s %s (further ones are counted)", what, printable(detail[:200]))

    def ended(self, reason: str) -> None:
        if not self._ended.done():
            self._ended.set_result(reason)
