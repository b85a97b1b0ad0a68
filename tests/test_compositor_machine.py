"""Whatever order servers and clients come, crash and go in: a state machine that checks every step."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Literal, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from clients import ALONE, RawClient, result_of
from clock import JumpingLoop, quiet
from fakes import FakeServer, Held, Message
from plait.compositor import Compositor, CompositorState
from plait.config.model import ServerSettings
from plait.errors import LifecycleError, NotMounted, PlaitError, UpstreamUnavailable
from plait.mounts.instance import Instance
from plait.mounts.mount import Mount
from plait.mounts.state import TRANSITIONS, MountState
from plait.routing.naming import MountPrefix

Result = TypeVar("Result")

PREFIXES = st.sampled_from(("a", "b", "c"))
IDENTITIES = st.sampled_from(("ann", "bob"))
ABLE: tuple[Message, ...] = ({}, {"roots": {}})
Share = Literal["identity", "all", "call"]
SHARES: st.SearchStrategy[Share] = st.sampled_from(("identity", "all", "call"))


class Server(FakeServer):
    """Answers a call at once, or never if it is asked for that."""

    def __init__(self, name: str) -> None:
        super().__init__(name, tools=["t"])
        self.answers["tools/call"] = self._call

    def _call(self, params: Message) -> object:
        if params["arguments"] == {"for": "ever"}:
            return Held()
        return {"content": [{"type": "text", "text": self.name}]}

    @property
    def open_wires(self) -> int:
        return sum(not wire.closed for wire in self.wires)


class Watch(logging.Handler):
    """What plait calls a bug of its own, and moves between states that the table does not have."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.problems: list[str] = []
        self.states: dict[Instance, MountState] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("a bug in plait"):
            self.problems.append(logging.Formatter().format(record))

    def look(self, mounts: list[Mount]) -> None:
        """At every event: each change of a state is one."""
        for mount in mounts:
            for instance in mount.instances:
                before = self.states.get(instance, MountState.PENDING)
                if instance.state is not before and instance.state not in TRANSITIONS[before]:
                    self.problems.append(f"{before} to {instance.state}")
                self.states[instance] = instance.state


class Life(RuleBasedStateMachine):
    """A compositor, three servers, and clients of two identities."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=JumpingLoop)
        self.watch = Watch()
        logging.getLogger("plait").addHandler(self.watch)
        self.servers = {name: Server(name) for name in ("a", "b", "c")}
        self.mounted: dict[str, Mount] = {}
        """The model: what should be there, in order."""
        self.clients: list[RawClient] = []
        self.ids = iter(range(10, 1_000_000))
        self.made = self.do(self._enter())

    async def _enter(self) -> Compositor:
        made = Compositor(ALONE)
        made.add_mount_listener(lambda prefix, event: self.watch.look(made.registry.mounts))
        return await made.__aenter__()

    def do(self, work: Coroutine[object, object, Result]) -> Result:
        async def bounded() -> Result:
            async with asyncio.timeout(10_000):
                result = await work
                await quiet()
                return result

        return self.runner.run(bounded())

    @property
    def open(self) -> bool:
        return not self.made._closing

    # ---- servers

    @rule(
        prefix=PREFIXES,
        share=SHARES,
        idle=st.sampled_from((None, 20.0)),
        wait=st.booleans(),
        failures=st.sampled_from((0, 0, 1, 7)),
        times=st.integers(1, 2),
    )
    def mount(
        self, prefix: str, share: Share, idle: float | None, wait: bool, failures: int, times: int
    ) -> None:
        """Once, or twice at the same time."""
        settings = ServerSettings(share=share, idle=idle)
        known = prefix in self.mounted
        if not known:
            unable = [UpstreamUnavailable("no such file") for _ in range(failures)]
            self.servers[prefix].failures = [*unable]
        outcomes = self.do(self._at_once(times, lambda: self._mount(prefix, settings, wait)))
        if not self.open:
            assert outcomes == ["LifecycleError"] * times
        elif known:
            assert outcomes == ["AlreadyMounted"] * times
        else:
            first = "UpstreamUnavailable" if failures and wait else "done"
            assert sorted(outcomes) == sorted(["AlreadyMounted"] * (times - 1) + [first])

    async def _mount(self, prefix: str, settings: ServerSettings, wait: bool) -> str:
        try:
            mount = await self.made.mount(
                MountPrefix(prefix), self.servers[prefix], settings=settings, wait=wait
            )
        except PlaitError as problem:
            return type(problem).__name__
        self.mounted[prefix] = mount
        return "done"

    @staticmethod
    async def _at_once(times: int, work: Callable[[], Coroutine[object, object, str]]) -> list[str]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work()) for _ in range(times)]
        return [task.result() for task in tasks]

    @rule(prefix=PREFIXES, drain=st.sampled_from((0.0, 5.0)), times=st.integers(1, 2))
    def unmount(self, prefix: str, drain: float, times: int) -> None:
        async def unmount() -> str:
            try:
                await self.made.unmount(MountPrefix(prefix), drain=drain)
            except (NotMounted, LifecycleError) as problem:
                return type(problem).__name__
            return "done"

        outcomes = self.do(self._at_once(times, unmount))
        if not self.open:
            assert outcomes == ["LifecycleError"] * times
        elif self.mounted.pop(prefix, None) is None:
            assert outcomes == ["NotMounted"] * times
        else:
            assert sorted(outcomes) == ["NotMounted"] * (times - 1) + ["done"]

    @rule(prefix=PREFIXES, failures=st.sampled_from((0, 2, 7)))
    def crash(self, prefix: str, failures: int) -> None:
        """All its sessions end, and the next starts fail."""
        server = self.servers[prefix]
        server.failures += [UpstreamUnavailable("no such file") for _ in range(failures)]
        self.do(self._crash(server))

    async def _crash(self, server: Server) -> None:
        for wire in server.wires:
            wire.abort("it exited with code 1")

    # ---- clients

    @rule(identity=IDENTITIES, able=st.sampled_from(ABLE))
    def connect(self, identity: str, able: Message) -> None:
        async def connect() -> RawClient:
            client = await RawClient(self.made, identity).__aenter__()
            client.initialize(**able)
            return client

        self.clients.append(self.do(connect()))

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 100))
    def disconnect(self, number: int) -> None:
        client = self.clients.pop(number % len(self.clients))
        self.do(client.__aexit__())

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 100), prefix=PREFIXES)
    def call(self, number: int, prefix: str) -> None:
        """It is answered, by that server or with the reason why not."""
        client = self.clients[number % len(self.clients)]
        id = next(self.ids)

        async def call() -> None:
            client.say("tools/call", id, name=f"{prefix}__t", arguments={})
            # Other calls hang for ever: wait for this one alone.
            await client.connection._running[b"%d" % id]

        self.do(call())
        result = result_of(client.answer(id))
        if result.get("isError") is not True:
            assert prefix in self.mounted
            assert result["content"] == [{"type": "text", "text": prefix}]

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 100), prefix=PREFIXES, cancel=st.booleans())
    def call_that_hangs(self, number: int, prefix: str, cancel: bool) -> None:
        client = self.clients[number % len(self.clients)]
        id = next(self.ids)

        async def call() -> None:
            client.say("tools/call", id, name=f"{prefix}__t", arguments={"for": "ever"})
            await quiet()
            if cancel:
                client.say("notifications/cancelled", requestId=id)

        self.do(call())

    # ---- time, and the end

    @rule(seconds=st.sampled_from((0.1, 3.0, 45.0, 200.0)))
    def let_time_pass(self, seconds: float) -> None:
        self.do(asyncio.sleep(seconds))

    @precondition(lambda self: self.open)
    @rule(chance=st.integers(0, 9))
    def close(self, chance: int) -> None:
        if chance == 0:
            self.do(self.made.close())
            self.mounted.clear()

    # ---- what holds after every step

    @invariant()
    def nothing_went_wrong_inside(self) -> None:
        assert self.watch.problems == []

    @invariant()
    def what_is_mounted_is_what_was_mounted(self) -> None:
        assert self.made.registry.mounts == list(self.mounted.values())
        assert all(mount.state is not MountState.CLOSED for mount in self.mounted.values())
        assert self.made.registry.clients == len(self.clients)

    @invariant()
    def every_client_lists_what_is_mounted(self) -> None:
        for client in self.clients:
            view = self.made.registry.view(client.connection)
            expected = [f"{each.prefix}__t" for each in view.instances if each.greeted]
            assert [str(each.prefix) for each in view.instances] == list(self.mounted)
            assert list(view.catalog.tools.routes) == expected

    @invariant()
    def no_profile_has_two_sessions(self) -> None:
        for name, server in self.servers.items():
            mount = self.mounted.get(name)
            if mount is None:
                assert server.open_wires == 0
                continue
            single = sum(instance.calls.running for instance in mount.instances)
            own = single if mount.settings.share == "call" else 0
            assert server.open_wires <= len(mount.instances) + own
            if mount.settings.share == "all":
                assert len(mount.instances) <= 1

    def teardown(self) -> None:
        try:
            self.do(self._leave())
        finally:
            logging.getLogger("plait").removeHandler(self.watch)
            self.runner.close()

    async def _leave(self) -> None:
        await self.made.__aexit__(None, None, None)
        for client in self.clients:
            await client.__aexit__()
        assert self.made.state is CompositorState.CLOSED
        assert self.made.registry.mounts == []
        assert [server.open_wires for server in self.servers.values()] == [0, 0, 0]
        await quiet()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left
        assert self.watch.problems == []


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
pytestmark = pytest.mark.requirement("S3-16", "S3-18")
