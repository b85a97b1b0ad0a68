"""Servers that end, never start, or never come up: rows 1 to 5 of the fault matrix."""

import asyncio
import os
import re
import signal
from pathlib import Path

import pytest

from processes import until
from stage import REAL_PROCESSES, SOON, Stage, failure_of

pytestmark = REAL_PROCESSES

NAMES = ("notifications/tools/list_changed", "notifications/message")


# ---- it ends


@pytest.mark.requirement("S1-021")
async def test_a_server_that_exits_fails_its_calls_at_once_and_is_started_again(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        before = await stage.pid_of("bad")
        others = [await stage.begin("bad__slow") for _ in range(3)]
        answer = await stage.misbehave("leave")
        assert "stopped during tools/call: it exited with code 3" in failure_of(answer)
        assert "I am leaving" in failure_of(answer)
        async with asyncio.timeout(SOON):
            for id in others:
                assert "it exited with code 3" in failure_of(await stage.answer(id))
        await stage.expect_all_is_well()
        assert stage.started() == [before, await stage.pid_of("bad")]
        # Nothing was sent twice.
        assert stage.called() == ["pid", "slow", "slow", "slow", "leave", "echo", "pid"]


async def test_a_server_that_is_killed_mid_call_comes_back_with_its_tools(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        before = await stage.pid_of("bad")
        listed = await stage.request("tools/list")
        id = await stage.begin("bad__slow")
        await until(lambda: len(stage.received("tools/call")) == 2)
        os.kill(before, signal.SIGKILL)
        async with asyncio.timeout(SOON):
            assert "it was ended by signal 9" in failure_of(await stage.answer(id))
        await stage.expect_all_is_well()
        assert (await stage.request("tools/list"))["result"] == listed["result"]
        assert not any(message.get("method") in NAMES for message in stage.unread)


async def test_a_server_that_is_killed_while_idle_is_restarted_and_no_client_notices(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        before = await stage.pid_of("bad")
        await stage.request("tools/list")
        os.kill(before, signal.SIGKILL)
        await stage.started_again()
        await stage.expect_all_is_well()
        assert await stage.pid_of("bad") != before
        assert stage.unread == []


async def test_a_server_that_comes_back_with_other_tools_is_announced(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    async with Stage(tmp_path, "--tools", str(tools)) as stage:
        before = await stage.pid_of("bad")
        await stage.request("tools/list")
        tools.write_text("brand_new")
        os.kill(before, signal.SIGKILL)
        async with asyncio.timeout(SOON):
            await stage.heard("notifications/tools/list_changed")
        assert await stage.say("bad__brand_new") == "brand_new"
        assert "bad__brand_new" in str((await stage.request("tools/list"))["result"])
        await stage.expect_all_is_well()


async def test_a_crash_loop_is_refused_at_once_with_the_reason_and_the_next_try(tmp_path: Path) -> None:
    killer, tools = tmp_path / "killer", tmp_path / "tools"
    async with Stage(tmp_path, "--die-if", str(killer), "--tools", str(tools)) as stage:
        await stage.expect_all_is_well()
        await stage.request("tools/list")
        killer.touch()
        answer = await stage.misbehave("leave")
        async with asyncio.timeout(3 * SOON):
            while "next try in" not in (text := failure_of(answer)):
                answer = await stage.call("bad__echo", {"text": "?"})
        assert re.search(r"stopped ([5-9]|\d\d) times in a row: .*next try in \d+ s", text)
        assert "the file that kills me is there" in text
        refused = [await stage.begin("bad__echo", {"text": "?"}) for _ in range(20)]
        for id in refused:
            assert "next try in" in failure_of(await stage.answer(id))
        await stage.expect_the_good_one_works()
        tools.write_text("brand_new")
        killer.unlink()
        await stage.heard("notifications/tools/list_changed")  # it is back
        # From now on it is like any other server: the next crash is its first.
        assert "it exited with code 3" in failure_of(await stage.misbehave("leave"))
        await stage.expect_all_is_well()


# ---- it never starts


async def test_a_server_that_never_came_up_says_when_the_next_try_is(tmp_path: Path) -> None:
    async with Stage(tmp_path, "--die") as stage:
        await stage.started_again(5)
        async with asyncio.timeout(SOON):
            while "next try in" not in (text := failure_of(await stage.call("bad__echo"))):
                await stage.started_again(len(stage.started()) + 1)
        assert re.search(r"stopped \d+ times in a row: .*code 3; next try in \d+ s", text)
        await stage.expect_the_good_one_works()


@pytest.mark.requirement("S1-017")
async def test_a_command_that_is_nowhere_says_where_we_looked_and_the_rest_is_served(tmp_path: Path) -> None:
    nowhere = {"command": "no-such-command-anywhere"}
    async with Stage(tmp_path, servers={"nowhere": nowhere}) as stage:
        await stage.expect_all_is_well()
        text = failure_of(await stage.call("nowhere__echo"))
        assert "command 'no-such-command-anywhere' is not on PATH: looked in " in text
        assert os.environ["PATH"].split(":")[0] in text


@pytest.mark.parametrize(
    ("mode", "content", "reason"),
    [
        (0o644, b"#!/bin/sh\n", "is not executable"),
        (0o755, b"\x00\x01 no program\n", "Exec format error"),
        (0o755, b"#!/no/such/interpreter\n", "No such file"),
    ],
)
async def test_a_file_that_is_no_program_says_so_and_the_rest_is_served(
    tmp_path: Path, mode: int, content: bytes, reason: str
) -> None:
    file = tmp_path / "program"
    file.write_bytes(content)
    file.chmod(mode)
    async with Stage(tmp_path, servers={"broken": {"command": str(file)}}) as stage:
        await stage.expect_all_is_well()
        text = failure_of(await stage.call("broken__echo"))
        assert reason in text
        assert str(file) in text


@pytest.mark.requirement("S1-E3")
async def test_a_server_that_dies_when_it_is_greeted_is_left_out(tmp_path: Path) -> None:
    async with Stage(tmp_path, "--die") as stage:
        await stage.expect_the_good_one_works()
        text = failure_of(await stage.call("bad__echo"))
        assert "server 'bad' is not up" in text
        assert "it exited with code 3" in text


# ---- it never comes up


@pytest.mark.parametrize("flag", ["--deaf", "--mute"])
async def test_a_server_that_hangs_in_the_handshake_delays_nobody(tmp_path: Path, flag: str) -> None:
    # Whoever waits for the bad one here waits for a minute, and the test fails.
    async with Stage(tmp_path, flag, plait={"startWait": 60}) as stage:
        await stage.expect_the_good_one_works()
        waiting = await stage.begin("bad__echo", {"text": "?"})
        await stage.expect_the_good_one_works()
        await stage.notify("notifications/cancelled", {"requestId": waiting})
        assert "result" in await stage.request("ping")


async def test_the_first_list_waits_for_a_hanging_server_only_so_long(tmp_path: Path) -> None:
    async with Stage(tmp_path, "--mute", plait={"startWait": 1}) as stage:
        async with asyncio.timeout(SOON):
            listed = str((await stage.request("tools/list"))["result"])
        assert "good__echo" in listed
        assert "bad__echo" not in listed
        text = failure_of(await stage.call("bad__echo", {"text": "?"}))
        assert "server 'bad' is not up (starting)" in text


async def test_a_server_that_does_not_answer_initialize_is_started_again(tmp_path: Path) -> None:
    async with Stage(tmp_path, "--mute", bad={"startTimeout": 1}, plait={"startWait": 60}) as stage:
        text = await stage.say("bad__echo", {"text": "?"})
        assert "did not answer initialize within 1 s" in text
        await stage.expect_the_good_one_works()
        await stage.started_again()


async def test_a_late_server_announces_itself(tmp_path: Path) -> None:
    killer = tmp_path / "killer"
    killer.touch()
    async with Stage(tmp_path, "--die-if", str(killer)) as stage:
        async with asyncio.timeout(SOON):
            assert "bad__" not in str((await stage.request("tools/list"))["result"])
            killer.unlink()
            await stage.heard("notifications/tools/list_changed")
        await stage.expect_all_is_well()
