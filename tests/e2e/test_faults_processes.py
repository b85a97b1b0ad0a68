"""What servers leave behind, take, and inherit: rows 23 to 25 and 32, and the environment."""

import json
import os
import shlex
from pathlib import Path

import pytest

from processes import PATH, alive, parent_of, until_gone
from stage import MARK, REAL_PROCESSES, Stage, descendants, failure_of

pytestmark = REAL_PROCESSES

MEBIBYTE = 1024 * 1024


# ---- what they leave behind: Stage looks for every process when it is left


async def test_a_grandchild_that_holds_the_output_does_not_hide_the_servers_exit(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        before = await stage.pid_of("bad")
        answer = await stage.misbehave("leave_a_child_behind")
        assert "it exited with code 3" in failure_of(answer)
        await stage.expect_all_is_well()
        assert await stage.pid_of("bad") != before


async def test_a_daemon_of_a_server_ends_with_plait(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        daemon = int(await stage.say("bad__daemonize"))
        await stage.expect_all_is_well()
        assert alive(daemon)
    assert not alive(daemon)


async def test_a_daemon_of_a_server_ends_with_its_server(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        daemon = int(await stage.say("bad__daemonize"))
        failure_of(await stage.misbehave("leave"))
        await until_gone([daemon])
        await stage.expect_all_is_well()


async def test_two_hundred_forks_are_gone_afterwards(tmp_path: Path) -> None:
    async with Stage(tmp_path) as stage:
        assert await stage.say("bad__fork_many", {"count": 200}) == "forked"
        await stage.expect_all_is_well()
        assert len(stage.marked()) == 2 + 200


async def test_a_server_behind_two_shells_works_and_ends_with_them(tmp_path: Path) -> None:
    # As `npx` starts one: a shell that starts a shell that starts the server.
    entry = Stage(tmp_path).entry()
    assert isinstance(entry["args"], list)
    inner = shlex.join([str(entry["command"]), *entry["args"]])
    entry |= {"command": "sh", "args": ["-c", f"sh -c {shlex.quote(inner + '; true')}; true"]}
    async with Stage(tmp_path, servers={"wrapped": entry}) as stage:
        server = await stage.pid_of("wrapped")
        assert parent_of(parent_of(parent_of(server))) in descendants(stage.pid)
        await stage.expect_all_is_well()
    assert not alive(server)


async def test_a_server_that_ignores_the_end_of_its_input_and_sigterm_is_killed(tmp_path: Path) -> None:
    async with Stage(tmp_path, "--stubborn") as stage:
        await stage.expect_all_is_well()


async def test_a_killed_plait_leaves_nobody_behind(tmp_path: Path) -> None:
    async with Stage(tmp_path, "--stubborn") as stage:
        daemon = int(await stage.say("bad__daemonize"))
        assert await stage.say("bad__fork_many", {"count": 10}) == "forked"
        stage.family |= {daemon, *descendants(stage.pid)}
        assert len(stage.family) >= 15  # guardian, keepers, servers, daemon, ten forks
        stage.process.kill()
        await stage.process.wait()
        await stage.until_nobody_is_left()


# ---- what they take


async def test_a_memory_hog_is_stopped_by_its_limit_and_started_again(tmp_path: Path) -> None:
    async with Stage(tmp_path, bad={"memory": 128 * MEBIBYTE}) as stage:
        answer = await stage.misbehave("hog")
        assert "it exited with code 1; last stderr: MemoryError" in failure_of(answer)
        await stage.expect_all_is_well()


# ---- what they inherit


@pytest.mark.requirement("K-14")
async def test_a_server_gets_the_listed_variables_and_no_other(tmp_path: Path) -> None:
    passed_on = {
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "LC_ALL": "C",
        "LC_TIME": "C",
        "LOGNAME": "somebody",
        "SHELL": "/bin/sh",
        "TERM": "dumb",
        "TMPDIR": str(tmp_path),
        "USER": "somebody",
        **PATH,
    }
    canaries = dict.fromkeys(
        ("ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "LD_CANARY", "PYTHONCANARY", "LCX", "PWD"), "canary"
    )
    function = {"LC_EVIL": "() { :; }; echo evil"}
    named = {"FOR_ALL": "1", "FOR_BAD": "2"}
    environ = {**passed_on, **canaries, **function, **named}
    async with Stage(
        tmp_path, bad={"env": ["FOR_BAD"]}, plait={"env": ["FOR_ALL"]}, environ=environ
    ) as stage:
        good = json.loads(await stage.say("good__env"))
        assert good == {**passed_on, MARK: stage.mark, "FOR_ALL": "1"}
        bad = json.loads(await stage.say("bad__env"))
        assert bad == {**good, "FOR_BAD": "2"}


async def test_an_entrys_own_variables_go_before_ours(tmp_path: Path) -> None:
    environ = {**os.environ, "TERM": "ours", "TOKEN": "canary"}
    own = Stage(tmp_path).entry()
    own["env"] = {"TERM": "its own", "TOKEN_FILE": "/run/token"}
    async with Stage(tmp_path, servers={"own": own}, environ=environ) as stage:
        inherited = json.loads(await stage.say("own__env"))
        assert inherited["TERM"] == "its own"
        assert inherited["TOKEN_FILE"] == "/run/token"
        assert "canary" not in inherited.values()
