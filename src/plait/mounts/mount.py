"""A server by its prefix: the instances of it that run, and everything that must close with it."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence

from plait.config.model import ServerSettings
from plait.errors import LifecycleError, PlaitError
from plait.mounts.instance import Instance
from plait.mounts.profile import EVERYBODY, Profile, nobody, profile_of
from plait.mounts.state import MountState
from plait.mounts.supervisor import Supervisor
from plait.mounts.surroundings import Surroundings
from plait.routing.catalog import Item
from plait.routing.naming import MountPrefix
from plait.tasks import TaskSet, ended, seen_through
from plait.upstream.base import Link
from plait.upstream.belongings import Belongings
from plait.upstream.opening import Behalf, Opener
from plait.wire.spec import Kind

CLEANING_UP = 15.0
"""Seconds that closing all that belongs to a mount may take; each server's own limits are shorter."""

_log = logging.getLogger("plait")


class Mount:
    """One session for each profile of clients, as its `share` says; each has its own supervisor."""

    def __init__(
        self,
        prefix: MountPrefix,
        name: str,
        opener: Opener,
        settings: ServerSettings,
        surroundings: Surroundings,
        restarted: Callable[[Instance], Awaitable[None]],
        *,
        pinned: bool = False,
    ) -> None:
        self.prefix = prefix
        self.name = name
        self.settings = settings
        self.pinned = pinned
        """Is it part of plait itself? Such a mount is there from start to end."""
        self.server: object = None
        """What was mounted, as it was given."""
        self.begun = False
        """May it be opened? A prefix is taken first."""
        self._opener = opener
        self._surroundings = surroundings
        self._restarted = restarted
        self._instances: dict[Profile, Instance] = {}
        self._spare: Instance | None = None
        """Started before any client was there; the first one takes it."""
        self._lives: dict[Instance, asyncio.Task[None]] = {}
        """What drives each instance that is open, be it that nobody is given it any more."""
        self._endings: dict[Instance, asyncio.Task[list[Exception]]] = {}
        self._tasks = TaskSet()
        self._belongings = Belongings()
        self._closing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Mount {self.prefix or '(no prefix)'}: {self.state.value}, {self.reason}>"

    # ---- how it stands: as its first instance does

    @property
    def instances(self) -> Sequence[Instance]:
        spare = () if self._spare is None else (self._spare,)
        return (*self._instances.values(), *spare)

    @property
    def foremost(self) -> Instance | None:
        return next(iter(self.instances), None)

    @property
    def state(self) -> MountState:
        if self._closing is not None:
            return MountState.CLOSED
        return MountState.PENDING if self.foremost is None else self.foremost.state

    @property
    def reason(self) -> str:
        if self._closing is not None:
            return "closed"
        return "not started yet" if self.foremost is None else self.foremost.reason

    @property
    def usable(self) -> bool:
        """Does a call of it have a chance? A server that sleeps is started by the first one."""
        asleep = self.foremost is not None and self.foremost.asleep
        return self.state is MountState.ACTIVE or (self.state is MountState.PENDING and asleep)

    @property
    def absence(self) -> str:
        """Why it is not there, and when that may change."""
        return self.reason if self.foremost is None else self.foremost.standing.absence

    @property
    def problem(self) -> PlaitError | None:
        """What its last start failed with."""
        return None if self.foremost is None else self.foremost.problem

    @property
    def greeted(self) -> bool:
        return self.foremost is not None and self.foremost.greeted

    @property
    def instructions(self) -> str:
        return "" if self.foremost is None else self.foremost.instructions

    @property
    def counters(self) -> Counter[str]:
        """What was dropped, and how often."""
        return sum((instance.counters for instance in self.instances), Counter())

    @property
    def link(self) -> Link | None:
        return None if self.foremost is None else self.foremost.link

    @property
    def child_client(self) -> Link:
        """The open session with the server."""
        if self.link is None or self.state is not MountState.ACTIVE:
            raise LifecycleError(f"mount '{self.prefix}' is not active (state: {self.state.value})")
        return self.link

    def listed(self, kind: Kind) -> Sequence[Item]:
        return () if self.foremost is None else self.foremost.listed(kind)

    def supports(self, capability: str, detail: str | None = None) -> bool:
        return self.foremost is not None and self.foremost.supports(capability, detail)

    # ---- its instances

    def prepare(self) -> Instance:
        """Start the server before there is a client; it is greeted when one comes."""
        if self.settings.share == "all":
            return self.open_for(nobody())
        self._spare = self._begin()
        return self._spare

    def open_for(self, behalf: Behalf) -> Instance:
        """The instance that these clients share; started if there is none yet."""
        shared = self.settings.share == "all"
        profile = EVERYBODY if shared else profile_of(behalf)
        instance = self._instances.get(profile)
        if instance is None:
            instance, self._spare = self._spare or self._begin(), None
            instance.claim(nobody("") if shared else behalf)
            self._instances[profile] = instance
        return instance

    def _begin(self) -> Instance:
        instance = Instance(
            self.prefix, self.name, self._opener, self.settings, self._surroundings, pinned=self.pinned
        )
        supervisor = Supervisor(instance, self._restarted)
        self._lives[instance] = self._tasks.start(supervisor.run())
        return instance

    def retire(self, used: Collection[Instance]) -> list[Instance]:
        """Close the instances whose clients are gone; one stays for whoever comes next.

        At once, and nobody waits: whoever comes while they are being closed must not be given one.
        """
        retired = []
        for profile, instance in list(self._instances.items()):
            if instance not in used and len(self._instances) > 1:
                del self._instances[profile]
                retired.append(instance)
                self._end(instance)
        return retired

    def _end(self, instance: Instance) -> asyncio.Task[list[Exception]]:
        """The closing of an instance, begun once; what goes wrong with it."""
        if instance not in self._endings:
            ending = asyncio.get_running_loop().create_task(self._bring_to_end(instance))
            self._endings[instance] = ending
        return self._endings[instance]

    async def _bring_to_end(self, instance: Instance) -> list[Exception]:
        life = self._lives[instance]
        life.cancel()
        problems = await _problems(ended(life, CLEANING_UP, f"what drives '{self.name}'"))
        closing = asyncio.get_running_loop().create_task(instance.aclose())
        problems += await _problems(ended(closing, CLEANING_UP, f"closing server '{self.name}'"))
        instance.conclude()
        del self._lives[instance], self._endings[instance]
        return problems

    async def up(self) -> None:
        """Wait for its first start; raises what that failed with."""
        instance = self.foremost
        assert instance is not None
        await instance.first_outcome
        self.check_open()
        if instance.state is MountState.FAILED:
            raise instance.problem or PlaitError(f"cannot mount '{self.prefix}': {instance.reason}")

    # ---- what closes with it

    async def own(self, belongings: Sequence[contextlib.AbstractAsyncContextManager[object]]) -> None:
        """Enter what the server needs (a container, a folder); it is left when the mount is closed."""
        await self._belongings.enter(belongings)

    def begin(self) -> None:
        """It may be opened from now on. Once, and not after its end."""
        if self.begun:
            raise LifecycleError(f"mount '{self.prefix}' is already setup")
        self.check_open()
        self.begun = True

    def check_open(self) -> None:
        if self._closing is not None:
            raise LifecycleError(f"'{self.prefix or self.name}' was unmounted before it was up")

    async def finished(self, seconds: float) -> None:
        """Wait for the calls that run now, for so long."""
        async with asyncio.TaskGroup() as group:
            for instance in self.instances:
                group.create_task(instance.calls.finished(seconds))

    async def aclose(self) -> None:
        """Close everything, once, whoever asks for it and whatever happens to them meanwhile; raises what
        went wrong to whoever waited for it."""
        if self._closing is None:
            self._warn_if_starting()
            self._closing = asyncio.get_running_loop().create_task(self._close())
        if not self._closing.done():
            await seen_through(self._closing)

    def _warn_if_starting(self) -> None:
        first = self.foremost
        wanted = first is not None and first.behalf.done() and not first.asleep
        if wanted and self.state is MountState.PENDING:
            _log.warning("'%s' is closed while it is still starting", self.prefix or self.name)

    async def _close(self) -> None:
        problems: list[Exception] = []
        endings = [self._end(instance) for instance in tuple(self._lives)]
        if endings:
            await asyncio.wait(endings)
            problems += [problem for ending in endings for problem in ending.result()]
        problems += await _problems(self._belongings.aclose(CLEANING_UP))
        self._spare = None
        self._instances.clear()
        if problems:
            raise ExceptionGroup(f"closing '{self.prefix or self.name}' failed", problems)


async def _problems(closing: Coroutine[object, object, None]) -> list[Exception]:
    """What it failed with: the rest is closed all the same."""
    try:
        await closing
    except Exception as problem:
        _log.exception("cleaning up failed; the rest is closed all the same")
        return [problem]
    return []
