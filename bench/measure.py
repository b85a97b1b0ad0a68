"""Run the subjects in turns, round after round; one that fails costs its own row only."""

import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from bench.clients import Client, spawn
from bench.figures import Figures
from bench.raw_client import PATIENCE, RawClient, SubjectFailed
from bench.running import Running
from bench.subjects import ROOT, Subject

Progress = Callable[[str], None]
Step = Callable[[Figures], str]


@dataclass(frozen=True)
class Plan:
    """How long to look at everyone."""

    rounds: int
    seconds: float
    spawns: int


FULL = Plan(rounds=11, seconds=0.8, spawns=7)
QUICK = Plan(rounds=3, seconds=0.25, spawns=2)


@dataclass
class Bench:
    """One run: who takes part, and who is up."""

    plan: Plan
    workspace: Path
    progress: Progress
    results: list[Figures]
    _open: ExitStack = field(default_factory=ExitStack)
    _companions: dict[str, int] = field(default_factory=dict)
    _running: dict[str, Running] = field(default_factory=dict)

    def run(self) -> None:
        """Spawn everyone a few times, then keep everyone up and let them take turns."""
        with self._open:
            self._each("companion", self._start_companion)
            for number in range(1, self.plan.spawns + 1):
                self._each(f"spawn {number}/{self.plan.spawns}", self._spawn)
                self._each(f"handshake {number}/{self.plan.spawns}", self._shake_hands)
            self._each("start and warm up", self._start)
            for number in range(1, self.plan.rounds + 1):
                self._each(f"round {number}/{self.plan.rounds}", self._take_turn)
            self._each("memory", self._weigh)

    def _each(self, phase: str, step: Step) -> None:
        """One phase for all who have not failed before."""
        for figures in self.results:
            if not figures.failure and (news := self._try(figures, step)):
                self.progress(f"{figures.subject.name}: {phase}: {news}")

    def _try(self, figures: Figures, step: Step) -> str:
        """What the step found; whatever the subject did wrong becomes the reason in its row."""
        try:
            return step(figures)
        except (SubjectFailed, OSError, ValueError, subprocess.TimeoutExpired) as error:
            figures.failure = explain(error, self._log(figures.subject))
            return f"did not run: {figures.failure}"

    def _start_companion(self, figures: Figures) -> str:
        subject = figures.subject
        if subject.needs is not None and not subject.needs.exists():
            figures.absent = True
            raise SubjectFailed(f"{subject.needs.relative_to(ROOT)} is not there; `make bench` makes it")
        if not subject.companion:
            return ""
        companion = RawClient(subject.companion, self._log(subject))
        self._open.callback(terminate, companion)
        wait_for_port(subject.port, companion.process)
        self._companions[subject.name] = companion.process.pid
        return "is up"

    def _spawn(self, figures: Figures) -> str:
        with closing(self._client(figures.subject, figures.subject.command)) as client:
            figures.spawns.append(client.initialize())
        return milliseconds(figures.spawns[-1])

    def _shake_hands(self, figures: Figures) -> str:
        """From our client's `initialize` to the tools of servers that all run already, and wait for it.

        An upper bound of the gateway's own handshakes: they take place within this time.
        """
        subject = figures.subject
        if subject.command_with_marks is None:
            return ""
        ready = self.workspace / f"{subject.name}-{len(figures.handshakes)}"
        ready.mkdir()
        with closing(self._client(subject, subject.command_with_marks(ready))) as client:
            wait_for_servers(ready, subject.tools)
            start = time.perf_counter()
            client.initialize()
            names = client.list_tools()
            figures.handshakes.append(time.perf_counter() - start)
        if len(names) < subject.tools:
            raise SubjectFailed(f"listed {len(names)} of {subject.tools} tools of running servers")
        return milliseconds(figures.handshakes[-1])

    def _start(self, figures: Figures) -> str:
        subject = figures.subject
        client = self._client(subject, subject.command)
        self._open.callback(client.close)
        running = Running(subject, client, self._companions.get(subject.name))
        running.settle()
        self._running[subject.name] = running
        return f"{subject.tools} tools, {len(running.gateway)} processes of its own"

    def _take_turn(self, figures: Figures) -> str:
        turn = self._running[figures.subject.name].take_turn(self.plan.seconds)
        figures.rounds.append(turn)
        return f"p50 {milliseconds(turn.p50)}, {turn.rate_alone:,.0f}/s alone, {turn.rate_wide:,.0f}/s wide"

    def _weigh(self, figures: Figures) -> str:
        self._running[figures.subject.name].weigh(figures)
        return f"{figures.resident / 1e6:.1f} MB"

    def _client(self, subject: Subject, command: Sequence[str]) -> Client:
        return spawn(command, subject.endpoint, self._log(subject))

    def _log(self, subject: Subject) -> Path:
        return self.workspace / f"{subject.name}.log"


def explain(error: Exception, log: Path) -> str:
    """The error and the last thing the subject said, without this machine's paths."""
    said = log.read_text(errors="replace").strip().splitlines()[-1:] if log.exists() else []
    reason = "; ".join([f"{error}", *said])
    return reason.replace(f"{log.parent}/", "").replace(f"{ROOT}/", "")[:300]


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until somebody listens there."""
    deadline = time.perf_counter() + PATIENCE
    while process.poll() is None and time.perf_counter() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SubjectFailed(f"nobody listened on its port within {PATIENCE:.0f} s")


def wait_for_servers(directory: Path, count: int) -> None:
    """Until that many echo servers have left their mark (beside the configuration file)."""
    deadline = time.perf_counter() + PATIENCE
    while len(list(directory.glob("*.ready"))) < count:
        if time.perf_counter() > deadline:
            raise SubjectFailed(f"{count} servers were not started before the first message of the client")
        time.sleep(0.005)


def terminate(companion: RawClient) -> None:
    """Stop a process that does not end with its input."""
    companion.process.terminate()
    companion.close()


def milliseconds(seconds: float) -> str:
    """For people."""
    return f"{seconds * 1000:.2f} ms"
