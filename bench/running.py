"""A subject that is up: take its turns, count its processor time, weigh its memory."""

import statistics
import time

from bench.clients import Client
from bench.figures import Figures, Round, percentile
from bench.processes import command_line, cpu_seconds, descendants, proportional_bytes, resident_bytes
from bench.raw_client import PATIENCE, SubjectFailed
from bench.subjects import Subject, is_echo_server

WARM_UP = 0.15


class Running:
    """A subject that is up: its client and the processes that count as the gateway."""

    def __init__(self, subject: Subject, client: Client, companion: int | None) -> None:
        self.subject = subject
        self.client = client
        self._roots = [client.process.pid] if companion is None else [client.process.pid, companion]
        self.gateway = [client.process.pid]

    def settle(self) -> None:
        """Wait until all its tools are listed, then warm everything up."""
        self.client.initialize()
        if self.subject.prepare is not None:
            self.subject.prepare()
        deadline = time.perf_counter() + PATIENCE
        while len(names := self.client.list_tools()) < self.subject.tools:
            if time.perf_counter() > deadline:
                raise SubjectFailed(f"listed {len(names)} of {self.subject.tools} tools")
            time.sleep(0.05)
        if self.subject.tool not in names:
            raise SubjectFailed(f"lists no tool {self.subject.tool}")
        self.client.call_one_by_one(self.subject.tool, WARM_UP)
        self.client.call_in_flight(self.subject.tool, self.subject.width, WARM_UP)
        self.gateway = [pid for root in self._roots for pid in descendants(root) if self._counts(pid)]

    def take_turn(self, seconds: float) -> Round:
        """Measure one round."""
        tool = self.subject.tool
        before = self._cpu()
        latencies = self.client.call_one_by_one(tool, seconds)
        between = self._cpu()
        calls, took = self.client.call_in_flight(tool, self.subject.width, seconds)
        after = self._cpu()
        return Round(
            p50=statistics.median(latencies),
            p99=percentile(latencies, 0.99),
            rate_alone=len(latencies) / sum(latencies),
            rate_wide=calls / took,
            cpu_alone=(between - before) / len(latencies),
            cpu_wide=(after - between) / calls,
        )

    def weigh(self, figures: Figures) -> None:
        """Note the memory: the gateway's own, and apart from it that of processes it keeps beside itself."""
        main = [pid for pid in self._roots if pid in self.gateway]
        helpers = [pid for pid in self.gateway if pid not in main]
        figures.resident = sum(map(resident_bytes, main))
        figures.helpers = len(helpers)
        figures.helpers_proportional = sum(map(proportional_bytes, helpers))

    def _counts(self, pid: int) -> bool:
        # The servers behind a gateway are not part of its cost; the bare server is its own subject.
        return not self.subject.is_gateway or not is_echo_server(command_line(pid))

    def _cpu(self) -> float:
        return sum(map(cpu_seconds, self.gateway))
