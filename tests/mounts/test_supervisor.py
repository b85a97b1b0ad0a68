"""Keeps one mount alive: start, and start again with backoff when it ends."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from clock import jumping, now, quiet
from fakes import FakeServer, Held
from plait.config.model import ServerSettings
from plait.errors import ConfigError, UpstreamUnavailable
from plait.mounts.instance import Instance
from plait.mounts.state import MountState
from plait.mounts.supervisor import BREAKER, FIRST_DELAY, LONGEST_DELAY, STABLE, Supervisor, delay
from plait.routing.naming import MountPrefix
from plait.session.exchange import Exchange, Reply
from plait.upstream.opening import Behalf
from plait.wire.address import as_raw
from plait.wire.envelope import EMPTY, Fields
from plait.wire.spec import LATEST_HANDSHAKE
from seams import FakeCaller


class Watch:
    """A mount under supervision, and when it was in which state."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.history: list[tuple[float, MountState]] = []
        self.restarts = 0
        self.instance = Instance(MountPrefix("fs"), "files", server, ServerSettings(), self)
        self.instance.claim(Behalf({}, LATEST_HANDSHAKE))

    def state_changed(self, instance: Instance) -> None:
        self.history.append((now(), instance.state))

    def lists_changed(self, instance: Instance) -> None: ...

    def heard(self, instance: Instance, method: str, params: Fields) -> None: ...

    def watched(self, instance: Instance) -> bool:
        return False

    async def consulted(
        self,
        instance: Instance,
        method: str,
        params: Fields,
        on_progress: Callable[[Fields], None],
        working_for: Sequence[Exchange],
    ) -> Reply:
        raise AssertionError(method)

    async def restarted(self, instance: Instance) -> None:
        assert instance.state is MountState.ACTIVE
        self.restarts += 1

    def states(self) -> list[MountState]:
        return [state for _, state in self.history]

    def waits(self) -> list[float]:
        """How long each backoff took."""
        return [
            later - earlier
            for (earlier, before), (later, after) in zip(self.history, self.history[1:], strict=False)
            if (before, after) == (MountState.FAILED, MountState.PENDING)
        ]

    async def call(self) -> Reply:
        exchange = FakeCaller().exchange("tools/call", name="t")
        return await self.instance.request("tools/call", {"name": as_raw("t"), "arguments": EMPTY}, exchange)


@contextlib.asynccontextmanager
async def watching(server: FakeServer) -> AsyncIterator[Watch]:
    watch = Watch(server)
    supervisor = Supervisor(watch.instance, watch.restarted)
    running = asyncio.get_running_loop().create_task(supervisor.run())
    try:
        yield watch
    finally:
        running.cancel()
        await asyncio.wait((running,))
        assert running.cancelled(), running.exception()
        await watch.instance.aclose()


@pytest.fixture(autouse=True)
def _no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every wait is as long as it can be; one test is about the jitter itself."""
    monkeypatch.setattr(random, "uniform", lambda least, most: most)


def unavailable(times: int) -> list[UpstreamUnavailable | ConfigError]:
    return [UpstreamUnavailable(f"no such command ({number})") for number in range(times)]


# ---- how long to wait


def test_the_wait_doubles_from_a_quarter_of_a_second_to_half_a_minute() -> None:
    assert [delay(failures) for failures in range(1, 10)] == [0.25, 0.5, 1, 2, 4, 8, 16, 30, 30]


@pytest.mark.parametrize("failures", [100, 10_000])
def test_the_wait_never_overflows(failures: int) -> None:
    assert delay(failures) == LONGEST_DELAY


@jumping
async def test_the_wait_is_anything_from_nothing_to_the_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float, float]] = []

    def uniform(least: float, most: float) -> float:
        asked.append((least, most))
        return 0.1

    monkeypatch.setattr(random, "uniform", uniform)
    server = FakeServer()
    server.failures = [*unavailable(2)]
    async with watching(server) as watch:
        await watch.instance.first_outcome
        await asyncio.sleep(1)
        assert asked == [(0, 0.25), (0, 0.5)]
        assert watch.waits() == pytest.approx([0.1, 0.1])


# ---- starting


@jumping
async def test_a_server_that_starts_is_active_and_left_alone() -> None:
    server = FakeServer(tools=["t"])
    async with watching(server) as watch:
        await asyncio.sleep(10_000)
        assert watch.states() == [MountState.ACTIVE]
        assert (len(server.wires), watch.restarts) == (1, 0)


@jumping
async def test_a_start_that_fails_is_repeated_with_longer_and_longer_waits() -> None:
    server = FakeServer()
    server.failures = [*unavailable(4)]
    async with watching(server) as watch:
        await asyncio.sleep(60)
        assert watch.waits() == pytest.approx([0.25, 0.5, 1, 2])
        assert watch.states()[-1] is MountState.ACTIVE
        assert watch.states()[:2] == [MountState.FAILED, MountState.PENDING]


@jumping
async def test_the_reason_of_a_failed_start_is_kept_while_it_is_tried_again() -> None:
    server = FakeServer()
    server.failures = [*unavailable(1)]
    async with watching(server) as watch:
        await quiet()
        assert (watch.instance.state, watch.instance.reason) == (MountState.FAILED, "no such command (0)")
        held = Held()
        server.answers["initialize"] = lambda params: held
        await asyncio.sleep(1)
        assert watch.instance.state is MountState.PENDING
        assert watch.instance.reason == "starting again; before: no such command (0)"


# ---- starting again


@jumping
async def test_a_server_that_ends_is_started_again_and_what_hangs_on_it_is_told() -> None:
    server = FakeServer(tools=["t"])
    async with watching(server) as watch:
        await asyncio.sleep(1)
        server.end("it was ended by signal 9")
        await asyncio.sleep(5)
        assert watch.states() == [
            MountState.ACTIVE,
            MountState.FAILED,
            MountState.PENDING,
            MountState.ACTIVE,
        ]
        assert (len(server.wires), watch.restarts) == (2, 1)
        assert watch.waits() == pytest.approx([FIRST_DELAY])


@jumping
async def test_a_call_during_a_restart_waits_and_then_works() -> None:
    server = FakeServer(tools=["t"])
    async with watching(server) as watch:
        await asyncio.sleep(1)
        server.end()
        await quiet()
        assert watch.instance.state is MountState.FAILED
        assert (await watch.call()).result is not None
        assert now() == pytest.approx(1 + FIRST_DELAY, abs=0.01)


@jumping
async def test_a_call_is_never_sent_twice() -> None:
    server = FakeServer(tools=["t"])
    server.answers["tools/call"] = lambda params: Held()
    async with watching(server) as watch:
        await asyncio.sleep(1)
        async with asyncio.TaskGroup() as group:
            calling = group.create_task(_outcome(watch))
            await quiet()
            server.end("it crashed")
        assert "stopped during tools/call: it crashed" in calling.result()
        await asyncio.sleep(60)
        assert len(server.wires) == 2
        assert len(server.asked("tools/call")) == 1


async def _outcome(watch: Watch) -> str:
    with pytest.raises(UpstreamUnavailable) as caught:
        await watch.call()
    return str(caught.value)


# ---- crash loops


@jumping
async def test_after_five_failures_in_a_row_calls_are_refused_at_once_with_a_hint() -> None:
    server = FakeServer()
    server.failures = [*unavailable(BREAKER + 3)]
    async with watching(server) as watch:
        await asyncio.sleep(sum(delay(failures) for failures in range(1, BREAKER)) + 0.01)
        assert watch.states().count(MountState.FAILED) == BREAKER
        began = now()
        refusal = await _outcome(watch)
        assert now() == began
        assert "stopped 5 times in a row: no such command (4)" in refusal
        assert "next try in 4 s" in refusal


@jumping
async def test_below_five_failures_a_call_still_waits() -> None:
    server = FakeServer(tools=["t"])
    server.failures = [*unavailable(BREAKER - 1)]
    async with watching(server) as watch:
        assert (await watch.call()).result is not None
        assert now() == pytest.approx(0.25 + 0.5 + 1 + 2, abs=0.01)


@jumping
async def test_a_server_that_dies_right_after_each_start_is_in_a_crash_loop() -> None:
    server = FakeServer(tools=["t"])
    async with watching(server) as watch:
        for number in range(BREAKER):
            await asyncio.sleep(delay(number) + 0.01)
            assert watch.states().count(MountState.ACTIVE) == number + 1
            server.end("it exited with code 1")
        await quiet()
        assert "stopped 5 times in a row: it exited with code 1" in watch.instance.reason
        assert watch.instance.standing.retry_in == pytest.approx(4, abs=0.1)


@jumping
async def test_a_start_that_works_ends_the_refusals() -> None:
    server = FakeServer(tools=["t"])
    server.failures = [*unavailable(BREAKER)]
    async with watching(server) as watch:
        await asyncio.sleep(60)
        assert watch.instance.state is MountState.ACTIVE
        assert watch.instance.standing.retry_in is None
        assert (await watch.call()).result is not None


@pytest.mark.parametrize("proof", ["a call", "a minute"])
@jumping
async def test_a_server_that_worked_has_not_failed_to_start(proof: str) -> None:
    server = FakeServer(tools=["t"])
    server.failures = [*unavailable(4)]
    async with watching(server) as watch:
        await asyncio.sleep(30)
        if proof == "a call":
            await watch.call()
        else:
            await asyncio.sleep(STABLE)
        server.end()
        await asyncio.sleep(5)
        assert watch.waits()[-1] == pytest.approx(FIRST_DELAY)
        assert watch.instance.state is MountState.ACTIVE


@jumping
async def test_one_that_only_lived_a_moment_counts_as_one_failure_more() -> None:
    server = FakeServer(tools=["t"])
    server.failures = [*unavailable(2)]
    async with watching(server) as watch:
        await asyncio.sleep(10)
        server.end()
        await asyncio.sleep(10)
        assert watch.waits() == pytest.approx([0.25, 0.5, 1])


@jumping
async def test_a_server_of_a_kind_that_cannot_be_opened_fails_and_does_not_take_us_along() -> None:
    server = FakeServer()
    server.failures = [ConfigError("no such folder")]
    async with watching(server) as watch:
        await quiet()
        assert (watch.instance.state, watch.instance.reason) == (MountState.FAILED, "no such folder")
