"""Clients that leave or change their minds, and servers that ask: row 26, G21, G27 and G28."""

import asyncio
import json
from pathlib import Path

import pytest

from processes import until
from stage import REAL_PROCESSES, SOON, Stage

pytestmark = REAL_PROCESSES


async def calls_arrived(stage: Stage, count: int) -> None:
    await until(lambda: len(stage.received("tools/call")) >= count)


async def test_a_client_that_disconnects_cancels_its_calls_at_the_server(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        assert await stage.say("bad__echo", {"text": "up"}) == "up"
        await stage.begin("bad__slow")
        await calls_arrived(stage, 2)
        stage.hang_up()
        await until(lambda: len(stage.received("notifications/cancelled")) == 1)
    call, cancelled = stage.received("tools/call")[1], stage.received("notifications/cancelled")[0]
    assert isinstance(cancelled["params"], dict)
    assert cancelled["params"]["requestId"] == call["id"]


async def test_a_client_that_closes_its_input_still_gets_its_answers(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        assert await stage.say("bad__echo", {"text": "up"}) == "up"
        slow = await stage.begin("bad__slow")
        release = await stage.begin("bad__release")
        assert stage.process.stdin is not None
        stage.process.stdin.close()
        async with asyncio.timeout(SOON):
            assert "at last" in str(await stage.answer(slow))
            assert "released" in str(await stage.answer(release))


async def test_a_cancelled_call_is_cancelled_at_its_server_and_never_answered(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        assert await stage.say("bad__echo", {"text": "up"}) == "up"
        slow = await stage.begin("bad__slow")
        other = await stage.begin("bad__slow")
        await calls_arrived(stage, 3)
        await stage.notify("notifications/cancelled", {"requestId": slow, "reason": "changed my mind"})
        await until(lambda: len(stage.received("notifications/cancelled")) == 1)
        params = stage.received("notifications/cancelled")[0]["params"]
        assert isinstance(params, dict)
        assert params["requestId"] == stage.received("tools/call")[1]["id"]
        # The server answers both all the same; only the one that is still wanted comes through.
        assert await stage.say("bad__release") == "released"
        async with asyncio.timeout(SOON):
            assert "at last" in str(await stage.answer(other))
        await stage.expect_all_is_well()


async def test_a_cancelled_list_leaves_the_routes_alone(tmp_path: Path) -> None:
    async with Stage(tmp_path, "--mute", plait={"startWait": 60}) as stage:
        await stage.expect_the_good_one_works()
        waiting = await stage.ask("tools/list")
        await stage.notify("notifications/cancelled", {"requestId": waiting})
        await stage.expect_the_good_one_works()
        assert stage.stray_answers(stage.unread) == []


@pytest.mark.parametrize("changed", [True, False])
async def test_a_storm_of_list_changes_is_one_refresh_and_at_most_one_announcement(
    tmp_path: Path, loops: int, changed: bool
) -> None:
    tools = tmp_path / "tools"
    changes = {"method": "notifications/tools/list_changed", "params": {}, "count": 1000 * loops}
    async with Stage(tmp_path, "--tools", str(tools)) as stage:
        await stage.request("tools/list")
        if changed:
            tools.write_text("brand_new")
        assert await stage.say("bad__flood", changes) == "flooded"
        await until(lambda: len(stage.received("tools/list")) > 1)
        if changed:
            async with asyncio.timeout(SOON):
                await stage.heard("notifications/tools/list_changed")
            assert await stage.say("bad__brand_new") == "brand_new"
        await stage.expect_all_is_well()
        assert len(stage.received("tools/list")) < 10
        assert stage.unread == []


async def test_a_server_that_asks_what_the_client_cannot_do_is_told_and_does_not_hang(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        told = json.loads(await stage.say("bad__consult"))
        assert told["id"] == "q"
        assert told["error"]["code"] == -32601
        assert stage.received("initialize")[0]["params"]["capabilities"] == {}  # type: ignore[index]
        await stage.expect_all_is_well()
