"""Which client a subject is measured with: bytes on pipes, or HTTP."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from bench.http_client import Endpoint, HttpClient
from bench.raw_client import RawClient


class Client(Protocol):
    """A spawned MCP server and the conversation with it."""

    process: subprocess.Popen[bytes]

    def initialize(self) -> float:
        """Open the conversation; says how long the answer took since the process was spawned."""

    def list_tools(self) -> list[str]:
        """The names of all tools."""

    def call_one_by_one(self, tool: str, seconds: float) -> list[float]:
        """Keep one call in flight for that long; the latency of each."""

    def call_in_flight(self, tool: str, width: int, seconds: float) -> tuple[int, float]:
        """Keep that many calls in flight for that long; how many were answered, and in what time."""

    def close(self) -> None:
        """End the process, within a bounded time."""


def spawn(command: Sequence[str], endpoint: Endpoint | None, log: Path) -> Client:
    """Start it: behind its endpoint when it has one, else on its pipes."""
    return RawClient(command, log) if endpoint is None else HttpClient(command, log, endpoint)
