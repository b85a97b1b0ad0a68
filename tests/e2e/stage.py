"""A misbehaving and a healthy server behind one real plait, and what must hold whatever the bad one does."""

import asyncio
import json
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from gateway import Gateway, Message, text_of, write_config
from processes import alive, environment_of, status, until

SOON = 20.0
"""Seconds until a fault must have been answered: far below the deadline of a call, which is 60."""
SERVER = Path(__file__).with_name("misbehaving.py")
MARK = "PLAIT_STAGE"
REAL_PROCESSES = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc from outside"),
]
"""What every module of tests on a Stage is marked with."""


class Stage(Gateway):
    """`bad` takes the flags of misbehaving.py and the settings; `good` is the same server, left in peace.

    Leaving it checks what every fault has in common: plait ended in order, nothing was answered
    twice, and no process of anybody is left.
    """

    def __init__(
        self,
        folder: Path,
        *flags: str,
        bad: Mapping[str, object] | None = None,
        plait: Mapping[str, object] | None = None,
        servers: Mapping[str, object] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.mark = secrets.token_hex(8)
        self.starts = folder / "starts"
        self.record = folder / "record"
        noted = ("--starts", str(self.starts), "--record", str(self.record))
        entries = {
            "bad": self.entry(*noted, *flags, settings={"timeout": 60, **(bad or {})}),
            "good": self.entry(),
            **(servers or {}),
        }
        super().__init__(write_config(folder / "plait.json", entries, plait), environ=environ)
        self.good = 0
        self.family: set[int] = set()

    def entry(self, *flags: str, settings: Mapping[str, object] | None = None) -> Message:
        """What a configuration file says of a server that is misbehaving.py."""
        argv = ["-E", "-s", "-S", str(SERVER), *flags]  # what it imports lies beside it
        entry: Message = {"command": sys.executable, "args": argv, "env": {MARK: self.mark}}
        return entry if settings is None else {**entry, "plait": dict(settings)}

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        try:
            await self.shake_hands()
        except BaseException as error:
            await self.__aexit__(type(error), error, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.family |= descendants(self.pid)
        if error is not None and self.process.returncode is None:
            self.process.kill()  # the test has failed already: do not wait for calls that nobody answers
            await self.process.wait()
        await super().__aexit__(kind, error, trace)
        if error is not None:
            error.add_note(f"plait's own log:\n{self.stderr}")
        await self.until_nobody_is_left()
        if error is None and self.process.returncode == 0:
            assert await self.last_answers() == []
            assert "a bug in plait" not in self.stderr
            assert "Traceback" not in self.stderr

    # ---- what to do

    async def misbehave(self, fault: str, arguments: Message | None = None) -> Message:
        """The one answer to a faulty call; meanwhile the good server works on."""
        id = await self.begin(f"bad__{fault}", arguments)
        async with asyncio.timeout(SOON):
            await self.expect_the_good_one_works()
            return await self.answer(id)

    async def begin(self, tool: str, arguments: Message | None = None, meta: Message | None = None) -> int:
        """Send a call; `answer` waits for its result."""
        params: Message = {"name": tool, "arguments": arguments or {}}
        return await self.ask("tools/call", params if meta is None else {**params, "_meta": meta})

    async def say(self, tool: str, arguments: Message | None = None) -> str:
        """The text that a tool answers with in good time."""
        async with asyncio.timeout(SOON):
            return text_of(await self.call(tool, arguments))

    async def pid_of(self, server: str) -> int:
        return int(await self.say(f"{server}__pid"))

    def hang_up(self) -> None:
        """Leave as a client does that is killed: both pipes are closed."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        # A StreamReader cannot be closed; only the pipe's own transport can.
        self.process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]

    async def started_again(self, times: int = 2) -> None:
        """Wait until the bad server has been started so often."""
        await until(lambda: len(self.started()) >= times, SOON)

    def started(self) -> list[int]:
        """The pids that the bad server has had so far."""
        return [int(pid) for pid in self.starts.read_text().split()] if self.starts.exists() else []

    def received(self, method: str) -> list[Message]:
        """The messages of one method that the bad server has got so far."""
        lines = self.record.read_bytes().splitlines() if self.record.exists() else []
        return [message for message in map(json.loads, lines) if message.get("method") == method]

    def called(self) -> list[object]:
        """The tools that the bad server was asked for so far."""
        params = [message["params"] for message in self.received("tools/call")]
        return [given["name"] for given in params if isinstance(given, dict)]

    # ---- what must hold

    async def expect_the_good_one_works(self) -> None:
        """It answers, and is the process that it has always been."""
        pid = await self.pid_of("good")
        self.good = self.good or pid
        assert pid == self.good

    async def expect_all_is_well(self) -> None:
        """Both servers answer, the session lives, and nobody got a second answer."""
        assert await self.say("bad__echo", {"text": "back again"}) == "back again"
        await self.expect_the_good_one_works()
        assert "result" in await self.request("ping")
        assert self.stray_answers(self.unread) == []

    async def expect_the_same_process(self, fault: str, arguments: Message | None = None) -> Message:
        """The answer to a fault for which a server is not restarted."""
        before = await self.pid_of("bad")
        answer = await self.misbehave(fault, arguments)
        await self.expect_all_is_well()
        assert await self.pid_of("bad") == before
        return answer

    async def until_nobody_is_left(self) -> None:
        """Neither below plait nor anywhere else."""
        try:
            await until(lambda: not any(alive(pid) for pid in self.family) and not self.marked(), SOON)
        except TimeoutError:
            raise AssertionError(f"still alive: {[*filter(alive, self.family), *self.marked()]}") from None

    def marked(self) -> list[int]:
        """Every process that has our servers' environment, wherever it has gone."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._is_marked(pid)]

    def _is_marked(self, pid: int) -> bool:
        try:
            return environment_of(pid).get(MARK) == self.mark and alive(pid)
        except (OSError, ValueError):
            return False  # it ended meanwhile, or is none of ours

    async def last_answers(self) -> list[object]:
        """Answers that came when nobody waited for one any more."""
        assert self.process.stdout is not None
        lines = (await self.process.stdout.read()).splitlines()
        return self.stray_answers([*self.unread, *map(json.loads, lines)])

    def stray_answers(self, messages: list[Message]) -> list[object]:
        return [message.get("id") for message in messages if "method" not in message]

    def peak_memory(self) -> int:
        """The most bytes that plait itself has had in memory so far."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmHWM in /proc")


def descendants(pid: int) -> set[int]:
    """Every process below this one."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    parents = {child: fields[1] for child in pids if len(fields := status(child)) > 1}
    below: set[int] = set()
    born = {pid}
    while born:
        born = {child for child, parent in parents.items() if int(parent) in born}
        below |= born
    return below


def failure_of(answer: Message) -> str:
    """The text of a failed call, which says what happened to a model and, in `_meta`, to a program."""
    result = answer["result"]
    assert isinstance(result, dict)
    assert result["isError"] is True, result
    return text_of(answer)
