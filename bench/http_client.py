"""The one client that measures every subject over HTTP: kept connections, no event loop, bounded waits."""

import json
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.http_answers import is_whole, messages, session_of, status_of
from bench.raw_client import GOODBYE, PATIENCE, TEXT, Message, SubjectFailed, check, tool_names

CHUNK = 1 << 16
START = 120.0  # until it listens: ContextForge makes its tables first
REVISION = "2025-06-18"  # the newest that everybody here speaks
CALL = (
    b'{"jsonrpc":"2.0","id":%%d,"method":"tools/call","params":{"name":"%%b","arguments":{"text":"%b"}}}'
    % TEXT.encode()
)


@dataclass(frozen=True)
class Endpoint:
    """Where a subject serves MCP: a loopback port and a path."""

    port: int
    path: str = "/mcp"


class Lane:
    """One kept connection, with at most one request on its way.

    It lives for one turn: several servers close a connection that was idle while the others had theirs.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.socket = socket.create_connection(("127.0.0.1", endpoint.port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._data = b""

    def receive(self) -> bytes | None:
        """Read once; the answer, when it is whole."""
        try:
            chunk = self.socket.recv(CHUNK)
        except TimeoutError:
            raise SubjectFailed(f"no answer within {PATIENCE:.1f} s") from None
        if not chunk:
            raise SubjectFailed(f"closed a connection that it was asked to keep, after {self._data[:200]!r}")
        self._data += chunk
        if not is_whole(self._data):
            return None
        answer, self._data = self._data, b""
        return answer

    def close(self) -> None:
        """Hang up."""
        self.socket.close()

    def ask(self, request: bytes) -> bytes:
        """Send, and wait for the whole answer."""
        self.socket.sendall(request)
        while (answer := self.receive()) is None:
            pass
        return answer


class HttpClient:
    """One spawned MCP server, and the connections to it."""

    def __init__(self, command: Sequence[str], log: Path, endpoint: Endpoint) -> None:
        """Start the command; what it says goes to the log."""
        self._endpoint = endpoint
        self._identifier = 0
        self._head = self._header("")
        self.started = time.perf_counter()
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=out, stderr=out, start_new_session=True
            )

    def initialize(self) -> float:
        """Open a session; says how long the answer took since the process was spawned."""
        self._wait_until_it_listens()
        params: Message = {
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        raw, answer = self._request("initialize", params)
        took = time.perf_counter() - self.started
        if "result" not in answer:
            raise SubjectFailed(f"initialize was answered with {answer.get('error')}")
        self._head = self._header(session_of(raw))
        told = self._ask(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        if status_of(told) not in (200, 202):
            raise SubjectFailed(f"notifications/initialized was answered with {told[:200]!r}")
        return took

    def list_tools(self) -> list[str]:
        """The names of all tools, page by page."""
        return tool_names(lambda params: self._request("tools/list", params)[1])

    def call_one_by_one(self, tool: str, seconds: float) -> list[float]:
        """Keep one call in flight for that long; the latency of each."""
        latencies: list[float] = []
        with closing(Lane(self._endpoint)) as lane:
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                request = self._call(tool)
                start = time.perf_counter()
                answer = lane.ask(request)
                latencies.append(time.perf_counter() - start)
                check(messages(answer), [self._identifier])
        return latencies

    def call_in_flight(self, tool: str, width: int, seconds: float) -> tuple[int, float]:
        """Keep a call in flight on each of so many connections; how many were answered, in what time."""
        first = self._identifier + 1
        answers: list[bytes] = []
        with ExitStack() as stack:
            opened = [stack.enter_context(closing(Lane(self._endpoint))) for _ in range(width)]
            lanes = {lane.socket.fileno(): lane for lane in opened}
            readable = stack.enter_context(select.epoll())
            start = time.perf_counter()
            for fileno, lane in lanes.items():
                readable.register(fileno, select.EPOLLIN)
                lane.socket.sendall(self._call(tool))
            self._keep_going(tool, lanes, readable, answers, start + seconds)
            took = time.perf_counter() - start
        asked = range(first, self._identifier + 1)
        check([line for answer in answers for line in messages(answer)], asked)
        return len(asked), took

    def _keep_going(
        self, tool: str, lanes: dict[int, Lane], readable: select.epoll, answers: list[bytes], end: float
    ) -> None:
        unanswered = len(lanes)
        while unanswered:
            ready = readable.poll(PATIENCE)
            if not ready:
                raise SubjectFailed(f"no answer within {PATIENCE:.1f} s")
            for fileno, _ in ready:
                lane = lanes[fileno]
                if (answer := lane.receive()) is None:
                    continue
                answers.append(answer)
                if time.perf_counter() < end:
                    lane.socket.sendall(self._call(tool))
                else:
                    unanswered -= 1

    def close(self) -> None:
        """Say goodbye and wait; after a bounded time end the process and all it started."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.terminate()
        try:
            self.process.wait(GOODBYE)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(GOODBYE)

    def _wait_until_it_listens(self) -> None:
        while time.perf_counter() < self.started + START:
            try:
                Lane(self._endpoint).close()
            except ConnectionRefusedError:
                if self.process.poll() is not None:
                    raise SubjectFailed("ended before it listened") from None
                time.sleep(0.005)
            else:
                return
        raise SubjectFailed(f"did not listen within {START:.0f} s")

    def _ask(self, body: bytes) -> bytes:
        with closing(Lane(self._endpoint)) as lane:
            return lane.ask(self._post(body))

    def _request(self, method: str, params: Message) -> tuple[bytes, Message]:
        self._identifier += 1
        request = {"jsonrpc": "2.0", "id": self._identifier, "method": method, "params": params}
        raw = self._ask(json.dumps(request).encode())
        for line in messages(raw):
            message: Message = json.loads(line)
            if message.get("id") == self._identifier:
                return raw, message
        raise SubjectFailed(f"{method} was answered with {raw[:300]!r}")

    def _header(self, session: str) -> bytes:
        lines = [
            f"POST {self._endpoint.path} HTTP/1.1",
            f"Host: 127.0.0.1:{self._endpoint.port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"MCP-Protocol-Version: {REVISION}",
            *([f"Mcp-Session-Id: {session}"] if session else []),
            "Content-Length: ",
        ]
        return "\r\n".join(lines).encode()

    def _post(self, body: bytes) -> bytes:
        return b"%b%d\r\n\r\n%b" % (self._head, len(body), body)

    def _call(self, tool: str) -> bytes:
        self._identifier += 1
        return self._post(CALL % (self._identifier, tool.encode()))
