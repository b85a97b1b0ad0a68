"""Answers that are none, or odd ones: rows 6 and 11 to 16 of the fault matrix."""

import asyncio
import json
from pathlib import Path

import pytest

from gateway import text_of
from stage import REAL_PROCESSES, SOON, Stage, failure_of

pytestmark = REAL_PROCESSES

BROKEN = {
    "wrong_version": '"jsonrpc" must be "2.0"',
    "no_version": '"jsonrpc" must be "2.0"',
    "null_result": "a result that is no object",
    "text_result": "a result that is no object",
    "no_result": "neither a result nor an error",
    "result_and_error": "both a result and an error",
    "error_without_code": "an error without a code and a message",
    "error_as_text": "an error without a code and a message",
    "batch": "one JSON object",
    "nan": "not JSON",
    "nul": "not JSON",
    "python": "not JSON",
    "trailing": "not JSON",
    "cut": "not JSON",
    "deep": "nested too deeply",
    "deep_id_last": "nested too deeply",
    "deeper": "nested too deeply",
    "id_as_text": "an id of the wrong type",
    "id_as_fraction": "an id of the wrong type",
}

ODD = {
    "bom": "ok",
    "crlf": "ok",
    "invalid_utf8": "cut \ufffd here",
    "lone_surrogate": "cut \ufffd here",
    "duplicate_keys": "ok",
    "ansi": " red",
    "twice": "ok",
    "unknown_id": "ok",
    "garbage": "ok",
}


@pytest.mark.parametrize(("fault", "reason"), BROKEN.items(), ids=list(BROKEN))
async def test_a_broken_answer_with_a_readable_id_fails_its_call_at_once(
    tmp_path: Path, fault: str, reason: str
) -> None:
    async with Stage(tmp_path) as stage:
        answer = await stage.expect_the_same_process(fault)
        assert reason in failure_of(answer)
        assert "server 'bad' answered tools/call with" in failure_of(answer)
        result = answer["result"]
        assert isinstance(result, dict)
        assert result["_meta"]["plait/fault"] == {"kind": "broken", "server": "bad"}


@pytest.mark.parametrize(("fault", "text"), ODD.items(), ids=list(ODD))
async def test_an_odd_answer_arrives_all_the_same(tmp_path: Path, fault: str, text: str) -> None:
    async with Stage(tmp_path) as stage:
        assert text_of(await stage.expect_the_same_process(fault)) == text


async def test_an_answer_without_an_id_is_nobodys_and_the_deadline_holds(tmp_path: Path) -> None:
    async with Stage(tmp_path, bad={"timeout": 2}) as stage:
        answer = await stage.expect_the_same_process("id_null")
        assert "did not answer tools/call within 2 s" in failure_of(answer)


@pytest.mark.parametrize(
    ("fault", "kept"),
    [
        ("big_integer", b'"x":' + b"1234567890" * 600 + b"}"),
        ("unknown_content", b'{"content":[{"type":"hologram","z":[1.50]}]}'),
    ],
)
async def test_what_plait_does_not_know_passes_byte_for_byte(tmp_path: Path, fault: str, kept: bytes) -> None:
    async with Stage(tmp_path) as stage:
        assert await stage.say("bad__echo", {"text": "up"}) == "up"
        id = await stage.begin(f"bad__{fault}")
        async with asyncio.timeout(SOON):
            while b'"id":%d,' % id not in (line := await stage.read_line()):
                assert line
        assert kept in line
        await stage.expect_all_is_well()


async def test_every_broken_answer_of_one_session_is_answered_once(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        assert await stage.say("bad__echo", {"text": "up"}) == "up"
        calls = {await stage.begin(f"bad__{fault}"): fault for fault in [*BROKEN, *ODD] * 3}
        async with asyncio.timeout(SOON):
            for id, fault in calls.items():
                assert json.dumps(await stage.answer(id)).count('"isError": true') == (fault in BROKEN)
        await stage.expect_all_is_well()
