"""The one client that measures every subject: bytes on two pipes, no event loop, every wait bounded."""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

PATIENCE = 30.0  # no single answer of any subject may take longer
GOODBYE = 5.0  # to leave by itself once its input has ended
CHUNK = 1 << 16
TEXT = "the quick brown fox jumps over the lazy dog"

CALL = (
    b'{"jsonrpc":"2.0","id":%%d,"method":"tools/call","params":{"name":"%%b","arguments":{"text":"%b"}}}\n'
    % TEXT.encode()
)
NOTIFICATION = b'"method"'  # no answer to our calls contains it

Message = dict[str, object]


class SubjectFailed(Exception):
    """A subject did not do its part: it ended, stayed silent or answered something else."""


class RawClient:
    """One spawned MCP server and both ends of its pipes."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        """Start the command; what it says on stderr goes to the log."""
        self.started = time.perf_counter()
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                bufsize=0,
                start_new_session=True,
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._output = self.process.stdin.fileno()
        self._input = self.process.stdout.fileno()
        self._readable = select.poll()
        self._readable.register(self._input, select.POLLIN)
        self._rest = b""
        self._identifier = 0

    def request(self, method: str, params: Message) -> Message:
        """Ask and wait for the answer; whatever else arrives meanwhile is dropped."""
        self._identifier += 1
        self.send({"jsonrpc": "2.0", "id": self._identifier, "method": method, "params": params})
        return self._answer_to(self._identifier)

    def send(self, message: Message) -> None:
        """Write one message as one line."""
        self._write(json.dumps(message).encode() + b"\n")

    def initialize(self) -> float:
        """Open the conversation; says how long the answer took since the process was spawned."""
        client = {"name": "bench", "version": "1"}
        params: Message = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        answer = self.request("initialize", params)
        took = time.perf_counter() - self.started
        if "result" not in answer:
            raise SubjectFailed(f"initialize was answered with {answer.get('error')}")
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return took

    def list_tools(self) -> list[str]:
        """The names of all tools, page by page."""
        return tool_names(lambda params: self.request("tools/list", params))

    def call_one_by_one(self, tool: str, seconds: float) -> list[float]:
        """Keep one call in flight for that long; the latency of each."""
        latencies: list[float] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            line = self._calls(tool, 1)
            start = time.perf_counter()
            self._write(line)
            reply = self._reply()
            latencies.append(time.perf_counter() - start)
            # Read after the clock has stopped: our own parsing is nobody's latency.
            check([reply], [self._identifier])
        return latencies

    def call_in_flight(self, tool: str, width: int, seconds: float) -> tuple[int, float]:
        """Keep that many calls in flight for that long; how many were answered, and in what time.

        Every answer is replaced by one new call, all answers of one read by one write.
        """
        first = self._identifier + 1
        chunks = [self._rest]
        start = time.perf_counter()
        end = start + seconds
        self._write(self._calls(tool, width))
        unanswered = width - answers(self._rest)
        while unanswered > 0:
            chunk = self._read(PATIENCE)
            chunks.append(chunk)
            unanswered -= answers(chunk)
            if unanswered < width and time.perf_counter() < end:
                self._write(self._calls(tool, width - unanswered))
                unanswered = width
        took = time.perf_counter() - start
        *lines, self._rest = b"".join(chunks).split(b"\n")
        asked = range(first, self._identifier + 1)
        check(lines, asked)
        return len(asked), took

    def close(self) -> None:
        """End its input and wait; after a bounded time end the process as well."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(GOODBYE)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(GOODBYE)
        finally:
            self.process.stdout.close()

    def _calls(self, tool: str, count: int) -> bytes:
        """The next calls, one per line."""
        first = self._identifier + 1
        self._identifier += count
        return b"".join([CALL % (identifier, tool.encode()) for identifier in range(first, first + count)])

    def _answer_to(self, identifier: int) -> Message:
        deadline = time.perf_counter() + PATIENCE
        while True:
            message = json.loads(self._line(deadline - time.perf_counter()))
            if isinstance(message, dict) and message.get("id") == identifier and "method" not in message:
                return message

    def _reply(self) -> bytes:
        """The next line that is no notification."""
        while NOTIFICATION in (line := self._line(PATIENCE)):
            pass
        return line

    def _line(self, patience: float) -> bytes:
        while b"\n" not in self._rest:
            self._rest += self._read(patience)
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _read(self, patience: float) -> bytes:
        if not self._readable.poll(max(patience, 0.0) * 1000):
            raise SubjectFailed(f"no answer within {patience:.1f} s")
        chunk = os.read(self._input, CHUNK)
        if not chunk:
            raise SubjectFailed("closed its output")
        return chunk

    def _write(self, data: bytes) -> None:
        # At most 32 short lines are ever unread, far less than a pipe holds, so this cannot block.
        try:
            os.write(self._output, data)
        except BrokenPipeError:
            raise SubjectFailed("closed its input") from None


def tool_names(ask: Callable[[Message], Message]) -> list[str]:
    """The names of all tools, page by page."""
    names: list[str] = []
    params: Message = {}
    while True:
        result = ask(params).get("result")
        if not isinstance(result, dict):
            raise SubjectFailed("tools/list was answered with an error")
        names += [str(tool["name"]) for tool in result["tools"]]
        if not (cursor := result.get("nextCursor")):
            return names
        params = {"cursor": cursor}


def answers(chunk: bytes) -> int:
    """How many answers end in it; a server may say something of its own in between."""
    return chunk.count(b"\n") - chunk.count(NOTIFICATION)


def check(lines: Sequence[bytes], asked: Sequence[int]) -> None:
    """Every call has exactly one answer, and it is the echo."""
    missing = set(asked)
    for line in lines:
        message = json.loads(line)
        if "method" in message:
            continue
        try:
            missing.remove(message["id"])
            text = message["result"]["content"][0]["text"]
        except (KeyError, IndexError, TypeError):
            raise SubjectFailed(f"not the answer to a call of ours: {line[:200]!r}") from None
        if text != TEXT:
            raise SubjectFailed(f"a call was answered with another text: {text[:200]!r}")
    if missing:
        raise SubjectFailed(f"{len(missing)} calls were not answered")
