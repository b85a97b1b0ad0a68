"""Names that clash, are too long or illegal: G14 to G17 of the gauntlet, with real servers."""

import re
from pathlib import Path

import pytest

from gateway import Message
from stage import REAL_PROCESSES, Stage, failure_of

pytestmark = REAL_PROCESSES

LONG = "a_tool_whose_name_alone_takes_up_most_of_what_model_interfaces_allow"


def names_in(answer: Message) -> list[str]:
    result = answer["result"]
    assert isinstance(result, dict)
    return [tool["name"] for tool in result["tools"]]


async def listed(stage: Stage) -> list[str]:
    return names_in(await stage.request("tools/list"))


@pytest.mark.requirement("S1-E10")
async def test_the_same_tool_of_two_servers_is_two_tools(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        assert {"bad__pid", "good__pid"} <= set(await listed(stage))
        assert await stage.pid_of("bad") == stage.started()[0]
        assert await stage.pid_of("good") != stage.started()[0]
        text = failure_of(await stage.call("pid"))
        assert "bad__pid, good__pid" in text


async def test_every_name_fits_the_strictest_reader_whatever_the_server_calls_it(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    natives = ["a.b", "a_b", "a/b", "a:b", "größe", LONG, LONG + "_2"]
    tools.write_text("\n".join(natives))
    async with Stage(tmp_path, "--tools", str(tools), plait={"nameBudget": 12}) as stage:
        names = await listed(stage)
        assert len(set(names)) == len(names)
        assert all(re.fullmatch("[A-Za-z0-9_-]{1,52}", name) for name in names)
        ours = [name for name in names if name.startswith("bad__")][-len(natives) :]
        assert [await stage.say(name) for name in ours] == natives


async def test_two_names_that_meet_withhold_one_tool_and_nothing_else(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.write_text("twin\ntwin\nb_c")
    clash = {"a": Stage(tmp_path).entry("--tools", str(tools)), "a-b": Stage(tmp_path).entry()}
    async with Stage(tmp_path, servers=clash, plait={"separator": "_"}) as stage:
        names = await listed(stage)
        assert len(set(names)) == len(names)
        assert {"a_twin", "a_b_c", "a-b_echo", "bad_echo", "good_echo"} <= set(names)
        assert await stage.say("a_twin") == "twin"
    assert "a_twin is taken by a" in stage.stderr


async def test_one_more_server_changes_no_name(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        before = await listed(stage)
    more = {"third": Stage(tmp_path).entry(), "bad2": Stage(tmp_path).entry()}
    async with Stage(tmp_path, servers=more) as stage:
        after = await listed(stage)
    assert [name for name in after if name in before] == before
