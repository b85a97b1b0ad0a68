"""Lines without an end, floods, and pipes that nobody reads: rows 7 to 10, 17, 18 and 20 to 22."""

import asyncio
from pathlib import Path

import pytest

from gateway import text_of
from processes import until_gone
from stage import REAL_PROCESSES, SOON, Stage, failure_of

pytestmark = REAL_PROCESSES

MEBIBYTE = 1024 * 1024


# ---- lines that do not end, or not soon


@pytest.mark.requirement("S1-R2")
async def test_half_a_line_and_then_silence_ends_at_the_deadline_and_the_server_is_restarted(
    tmp_path: Path,
) -> None:
    async with Stage(tmp_path, bad={"timeout": 2}) as stage:
        before = await stage.pid_of("bad")
        answer = await stage.misbehave("half_line_then_hang")
        assert "did not answer tools/call within 2 s" in failure_of(answer)
        await stage.expect_all_is_well()
        assert await stage.pid_of("bad") != before


async def test_half_a_line_and_then_an_exit_fails_the_call_at_once(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        answer = await stage.misbehave("half_line_then_exit")
        assert "it exited with code 3" in failure_of(answer)
        await stage.expect_all_is_well()


@pytest.mark.parametrize("megabytes", [20, 100])
async def test_a_line_that_is_too_long_fails_its_call_within_bounded_memory(
    tmp_path: Path, megabytes: int
) -> None:
    async with Stage(tmp_path) as stage:
        await stage.expect_all_is_well()
        before = stage.peak_memory()
        answer = await stage.expect_the_same_process("long_line", {"megabytes": megabytes})
        assert f"longer than {16 * MEBIBYTE} bytes" in failure_of(answer)
        assert stage.peak_memory() - before < 2 * 16 * MEBIBYTE


async def test_a_line_just_below_the_limit_passes_whole(tmp_path: Path) -> None:
    async with Stage(tmp_path, plait={"results": {"maxBytes": 16 * MEBIBYTE}}) as stage:
        answer = await stage.expect_the_same_process("long_line", {"megabytes": 15})
        assert text_of(answer) == "x" * 15 * MEBIBYTE


@pytest.mark.parametrize("readable", [True, False])
async def test_a_line_without_end_fails_its_call_and_the_server_is_restarted(
    tmp_path: Path, readable: bool
) -> None:
    async with Stage(tmp_path, bad={"maxMessageBytes": MEBIBYTE}) as stage:
        before = await stage.pid_of("bad")
        answer = await stage.misbehave("endless_line", {"readable": readable})
        assert ("longer than" if readable else "a line without end") in failure_of(answer)
        await stage.started_again()
        await until_gone([before])
        await stage.expect_all_is_well()


# ---- floods


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("notifications/message", {"level": "info", "data": "x" * 100}),
        ("notifications/progress", {"progressToken": 12345, "progress": 1}),
        ("notifications/nobody_knows_this", {}),
        ("notifications/tools/list_changed", {}),
    ],
)
async def test_a_flood_of_notifications_delays_nobody_and_takes_no_memory(
    tmp_path: Path, loops: int, method: str, params: dict[str, object]
) -> None:
    async with Stage(tmp_path) as stage:
        await stage.expect_all_is_well()
        before = stage.peak_memory()
        flood = {"method": method, "params": params, "count": 1000 * loops}
        answer = await stage.expect_the_same_process("flood", flood)
        assert text_of(answer) == "flooded"
        assert stage.peak_memory() - before < 32 * MEBIBYTE
        heard = {message.get("method") for message in stage.unread}
        assert heard <= {"notifications/message"}


async def test_a_flood_of_complaints_on_stderr_is_drained(tmp_path: Path, loops: int) -> None:
    async with Stage(tmp_path) as stage:
        await stage.expect_all_is_well()
        before = stage.peak_memory()
        answer = await stage.expect_the_same_process("complain", {"megabytes": loops})
        assert text_of(answer) == "complained"
        assert stage.peak_memory() - before < 16 * MEBIBYTE


async def test_complaints_before_the_handshake_do_not_block_it(tmp_path: Path) -> None:
    async with Stage(tmp_path, "--noisy") as stage:
        await stage.expect_all_is_well()


async def test_progress_for_finished_and_unknown_requests_is_dropped(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        assert await stage.say("bad__echo", {"text": "up"}) == "up"
        id = await stage.begin("bad__stale_progress", meta={"progressToken": "mine"})
        async with asyncio.timeout(SOON):
            assert text_of(await stage.answer(id)) == "ok"
        await stage.expect_all_is_well()
        progress = [message["params"] for message in stage.unread if "params" in message]
        assert progress == [{"progressToken": "mine", "progress": 3}]


# ---- pipes that are not used as they should be


async def test_a_server_that_stops_reading_is_restarted_when_calls_to_it_expire(tmp_path: Path) -> None:
    async with Stage(tmp_path, bad={"timeout": 2}) as stage:
        before = await stage.pid_of("bad")
        assert await stage.say("bad__stop_reading") == "I read no more"
        calls = [await stage.begin("bad__echo", {"text": "x" * MEBIBYTE}) for _ in range(8)]
        async with asyncio.timeout(SOON):
            await stage.expect_the_good_one_works()
            for id in calls:
                assert "bad" in failure_of(await stage.answer(id))
        await until_gone([before])
        await stage.expect_all_is_well()
        assert await stage.pid_of("bad") != before


async def test_calls_to_a_server_that_does_not_read_take_bounded_memory(tmp_path: Path) -> None:
    async with Stage(tmp_path, bad={"timeout": 2}) as stage:
        assert await stage.say("bad__stop_reading") == "I read no more"
        before = stage.peak_memory()
        calls = [await stage.begin("bad__echo", {"text": "x" * 100_000}) for _ in range(100)]
        for id in calls:
            failure_of(await stage.answer(id))
        assert stage.peak_memory() - before < 48 * MEBIBYTE
        await stage.expect_all_is_well()


async def test_a_server_that_closes_its_output_and_lives_counts_as_ended(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        before = await stage.pid_of("bad")
        answer = await stage.misbehave("close_output")
        assert "it closed its output" in failure_of(answer)
        await stage.expect_all_is_well()
        await until_gone([before])
