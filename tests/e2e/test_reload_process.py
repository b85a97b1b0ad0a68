"""A real plait whose file changes under load, and one that is told to stop: rows 30, 31 and 33."""

import asyncio
import json
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from gateway import Message, text_of
from processes import alive, until, until_gone
from raw_peer import RawPeer
from stage import REAL_PROCESSES, SOON, Stage, descendants

pytestmark = REAL_PROCESSES

ANSWER = b'{"content":[{"type":"text","text":"fine"}]}'
HELD = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"held"}}\n'


class Followed(Stage):
    """A stage whose file is changed while calls are made."""

    def __init__(self, folder: Path, servers: Mapping[str, object] | None = None) -> None:
        super().__init__(folder, servers=servers)
        self._argv += ["--log-level", "info"]
        self.file = folder / "plait.json"

    def change(self, **servers: object) -> None:
        """Put these servers into the file; None takes one out."""
        document = json.loads(self.file.read_text())
        merged = {**document["mcpServers"], **servers}
        document["mcpServers"] = {name: entry for name, entry in merged.items() if entry is not None}
        self.write(json.dumps(document))

    def write(self, text: str) -> None:
        """As editors do: a new file takes the place of the old one."""
        beside = self.file.with_suffix(".new")
        beside.write_text(text)
        beside.rename(self.file)

    def ask_to_reload(self) -> None:
        self.process.send_signal(signal.SIGHUP)

    async def work_until(self, done: Callable[[set[str]], bool]) -> None:
        """Load on the good server, which never fails and never is another one, until the servers that
        are listed are as they should be."""
        async with asyncio.timeout(SOON):
            while True:
                ids = [await self.begin("good__pid") for _ in range(20)]
                answers = {text_of(await self.answer(id)) for id in ids}
                assert answers == {str(await self.pid_of("good"))}
                await self.expect_the_good_one_works()
                if done(await self.servers()):
                    return

    async def servers(self) -> set[str]:
        """Those whose tools are listed."""
        result = (await self.request("tools/list"))["result"]
        assert isinstance(result, dict)
        return {tool["name"].split("__")[0] for tool in result["tools"]}

    async def hold(self) -> int:
        """A call that its server has begun, and does not answer yet."""
        id = await self.begin("raw__echo")
        async with asyncio.timeout(SOON):
            await self.heard("notifications/message")
        return id

    async def expect_fine(self, id: int) -> None:
        async with asyncio.timeout(SOON):
            assert text_of(await self.answer(id)) == "fine"


def peer_in(folder: Path) -> RawPeer:
    made = RawPeer(folder)
    made.says("tools/call", "result", ANSWER)
    made.says("tools/call", "before", HELD)
    return made


# ---- the file changes


async def test_a_file_that_changes_is_followed_by_itself_and_nobody_else_notices(tmp_path: Path) -> None:
    async with Followed(tmp_path) as stage:
        bad = await stage.pid_of("bad")
        await stage.work_until(lambda servers: servers == {"bad", "good"})
        stage.change(more=stage.entry())
        await stage.work_until(lambda servers: "more" in servers)
        assert await stage.pid_of("bad") == bad
        assert await stage.pid_of("more") not in (bad, stage.good)
        await stage.expect_all_is_well()
    assert "configuration read anew: added more" in stage.stderr


async def test_an_invalid_file_keeps_the_old_one_running_and_says_why_and_a_mended_one_is_taken(
    tmp_path: Path,
) -> None:
    async with Followed(tmp_path) as stage:
        bad, text = await stage.pid_of("bad"), stage.file.read_text()
        stage.write('{"mcpServers": {\n  "good": nothing\n}}')
        stage.ask_to_reload()
        await stage.work_until(lambda _: "is not followed, and what ran goes on" in stage.stderr)
        assert f"{stage.file}:2:11: " in stage.stderr
        stage.write(json.dumps({"mcpServers": {"good": {"command": ["a", "list"]}, "other": stage.entry()}}))
        stage.ask_to_reload()
        await stage.work_until(lambda _: "expected a string, got a list" in stage.stderr)
        await stage.expect_all_is_well()
        assert await stage.servers() == {"bad", "good"}
        stage.write(text)
        stage.change(more=stage.entry())
        stage.ask_to_reload()
        await stage.work_until(lambda servers: servers == {"bad", "good", "more"})
        assert await stage.pid_of("bad") == bad


async def test_a_call_in_flight_on_a_server_that_is_removed_finishes_and_then_it_is_gone(
    tmp_path: Path,
) -> None:
    peer = peer_in(tmp_path)
    async with Followed(tmp_path, {"raw": peer.entry()}) as stage:
        await stage.work_until(lambda servers: "raw" in servers)
        before = processes(stage, peer)
        with peer.gate("tools/call") as gate:
            id = await stage.hold()
            stage.change(raw=None)
            stage.ask_to_reload()
            await stage.work_until(lambda servers: servers == {"bad", "good"})
            assert before <= processes(stage, peer)
            gate.open()
            await stage.expect_fine(id)
        await until_gone(before)
        await stage.expect_all_is_well()
    assert "configuration read anew: removed raw" in stage.stderr


async def test_a_server_whose_command_changes_is_there_anew_before_the_last_call_of_the_old_one_ends(
    tmp_path: Path,
) -> None:
    peer, successor = peer_in(tmp_path), peer_in(tmp_path / "successor")
    async with Followed(tmp_path, {"raw": peer.entry()}) as stage:
        await stage.work_until(lambda servers: "raw" in servers)
        before = processes(stage, peer)
        with peer.gate("tools/call") as gate:
            id = await stage.hold()
            stage.change(raw=successor.entry())
            stage.ask_to_reload()
            await stage.work_until(lambda _: "configuration read anew: restarted raw" in stage.stderr)
            # No waiting for the new one: a call does that.
            await stage.expect_fine(await stage.begin("raw__echo"))
            assert len(successor.heard("tools/call")) == 1
            gate.open()
            await stage.expect_fine(id)
        await until_gone(before)
        assert len(peer.heard("tools/call")) == 1
        await stage.expect_all_is_well()


async def test_changes_faster_than_they_can_be_followed_end_with_the_newest(tmp_path: Path) -> None:
    async with Followed(tmp_path) as stage:
        for number in range(10):
            stage.change(**{f"s{number}": stage.entry(), f"s{number - 1}": None})
            stage.ask_to_reload()
            await stage.expect_the_good_one_works()
        await stage.work_until(lambda servers: servers == {"bad", "good", "s9"})
        await stage.expect_all_is_well()


def processes(stage: Stage, peer: RawPeer) -> set[int]:
    """The processes of a raw server."""
    return {pid for pid in descendants(stage.pid) if str(peer.folder) in command_of(pid) and alive(pid)}


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


# ---- told to stop


async def test_told_to_stop_with_a_hundred_calls_in_flight_all_are_answered_and_everybody_goes(
    tmp_path: Path,
) -> None:
    async with Followed(tmp_path) as stage:
        assert await stage.say("bad__echo", {"text": "up"}) == "up"
        ids = [await stage.begin("bad__slow") for _ in range(100)]
        await stage.begin("bad__echo", {"text": "all have arrived"})
        async with asyncio.timeout(SOON):
            await stage.until(lambda message: "all have arrived" in str(message))
        stage.process.send_signal(signal.SIGTERM)
        await until(lambda: "told to stop" in stage.stderr, SOON)
        late = await stage.begin("bad__release")
        async with asyncio.timeout(SOON):
            for id in ids:
                assert text_of(await stage.answer(id)) == "at last"
            await stage.answer(late)  # it came when we were stopping: its result, or that we are
            assert await stage.process.wait() == 0
        await stage.until_nobody_is_left()


async def test_told_to_stop_twice_whoever_still_waits_is_told_so(tmp_path: Path) -> None:
    async with Followed(tmp_path) as stage:
        assert await stage.say("bad__echo", {"text": "up"}) == "up"
        id = await stage.begin("bad__slow")
        await stage.begin("bad__echo", {"text": "it has arrived"})
        async with asyncio.timeout(SOON):
            await stage.until(lambda message: "it has arrived" in str(message))
            stage.process.send_signal(signal.SIGTERM)
            await until(lambda: "told to stop" in stage.stderr, SOON)
            stage.process.send_signal(signal.SIGTERM)
            answer: Message = await stage.answer(id)
            assert "plait was told to stop" in str(answer["error"])
            assert await stage.process.wait() == 0
        await stage.until_nobody_is_left()
