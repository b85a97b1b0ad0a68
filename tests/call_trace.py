"""What happens to one proxied tool call: every Python function that runs for it, in order.

`python tests/call_trace.py` prints it (`make trace`); test_budget.py counts it. The client is a thread
with blocking reads, so that only the gateway's own functions are seen.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from types import CodeType, FrameType

import uvloop

from plait.assemble import assembled
from plait.config.model import AuditSettings, Config, Settings, StdioServer
from plait.downstream.stdio import StdioClient

ECHO = Path(__file__).with_name("echo_server.py")
HELLO = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}\n'
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)
CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"fs__echo","arguments":{"a":1}}}\n'
WARM_UP = 20
CALLS = 100


class Client:
    """The other ends of the pipes, used from a thread."""

    def __init__(self) -> None:
        self._input, self.theirs_out = os.pipe()
        self.theirs_in, self._output = os.pipe()

    def say(self, line: bytes) -> bytes:
        os.write(self._output, line)
        return os.read(self._input, 1_000_000)

    def talk(self, line: bytes, times: int) -> bytes:
        for _ in range(times):
            answer = self.say(line)
        return answer

    def close(self) -> None:
        for fd in (self._input, self._output):
            os.close(fd)


class Recorder:
    """Notes the code of every Python function that is entered.

    A coroutine that goes on after an await is entered again, but it is the same activation: its frame
    is remembered, and kept alive so that no other gets its place.
    """

    def __init__(self) -> None:
        self.seen: list[CodeType] = []
        self._entered: dict[int, FrameType] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and id(frame) not in self._entered:
            self._entered[id(frame)] = frame
            self.seen.append(frame.f_code)


async def _record(calls: int) -> tuple[list[CodeType], bytes]:
    """With every guard on, as `plait mcp-server -c FILE` has them."""
    with tempfile.TemporaryDirectory() as folder:
        return await _record_in(folder, calls)


async def _record_in(folder: str, calls: int) -> tuple[list[CodeType], bytes]:
    client, recorder, loop = Client(), Recorder(), asyncio.get_running_loop()
    server = StdioServer(name="fs", command=sys.executable, args=[str(ECHO)])
    config = Config(servers=(server,), settings=Settings(audit=AuditSettings(dir=folder)))
    async with assembled(config, os.environ) as assembly:
        compositor = assembly.compositor
        stdio = StdioClient(client.theirs_in, client.theirs_out)
        await stdio.open_output()
        connection = compositor.connect(stdio)
        reading = loop.create_task(stdio.serve(connection))
        async with asyncio.timeout(30):
            await loop.run_in_executor(None, client.say, HELLO)
            answer = await loop.run_in_executor(None, client.talk, CALL, WARM_UP)
            sys.setprofile(recorder)
            await loop.run_in_executor(None, client.talk, CALL, calls)
            sys.setprofile(None)
        reading.cancel()
        await compositor.disconnect(connection)
        await stdio.aclose()
    client.close()
    return recorder.seen, answer


def record(calls: int) -> tuple[list[CodeType], bytes]:
    """The functions that ran for so many proxied calls, and the last answer."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_record(calls))


def main() -> None:
    # What a timer does now and then is no part of a call: the shortest of a few has none of it.
    seen = min((record(1)[0] for _ in range(6)), key=len)
    ours = [code for code in seen if "/plait/" in code.co_filename and "/tests/" not in code.co_filename]
    for code in ours:
        module = code.co_filename.split("/plait/")[-1]
        print(f"    {module:28} {code.co_qualname}")


if __name__ == "__main__":
    main()
