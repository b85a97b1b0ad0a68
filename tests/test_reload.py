"""Following the files of a configuration while it is served."""

import asyncio
import contextlib
import logging
import os
from pathlib import Path

import pytest

from clock import jumping
from plait.compositor import Compositor
from plait.config.model import Config
from plait.errors import ConfigError
from plait.mounts.state import MountState
from plait.reload import Reloader
from plait.routing.naming import MountPrefix
from plait.session.exchange import Exchange, Handler, Reply
from processes import until
from reloading import ONE, PATIENCE, Desk, desk, server

LISTS_CHANGED = "notifications/tools/list_changed"


@pytest.fixture(autouse=True)
def _log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "plait")


async def began(desk: Desk, tool: str, number: int) -> asyncio.Task[str]:
    """A call that is held by the how-manieth server that was made."""
    call = asyncio.get_running_loop().create_task(desk.say(tool))
    async with asyncio.timeout(PATIENCE):
        await desk.made[number - 1].began.wait()
    return call


# ---- servers


async def test_what_has_not_changed_stays_wherever_it_stands_in_the_file(tmp_path: Path) -> None:
    async with desk(tmp_path, {"a": ONE, "b": ONE}) as made:
        assert await made.say("a__which") == "number 1"
        before = made.compositor.registry.mounts
        made.file.write_text("// a new first line\n" + made.file.read_text())
        step = await made.reloader.reload()
        assert str(step) == ""
        assert made.compositor.registry.mounts == before
        config = made.compositor.config
        assert config is not None
        assert [each.where.line for each in config.servers if each.where] == [4, 9]
        assert len(made.made) == 2


async def test_what_is_new_is_mounted_in_its_place_and_clients_hear_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with desk(tmp_path, {"b": ONE}, rules=[{"deny": "*__wait"}]) as made:
        await made.until_listed("b__which")
        made.client.notes.clear()
        await made.reload({"a": ONE, "b": ONE, "c": ONE}, rules=[{"deny": "*__wait"}])
        await made.until_listed("a__which", "b__which", "c__which")
        assert made.client.told(LISTS_CHANGED)
        assert await made.say("b__which") == "number 1"
        assert "configuration read anew: added a, c" in caplog.messages


async def test_what_is_removed_is_not_listed_any_more_while_its_last_call_finishes(tmp_path: Path) -> None:
    async with desk(tmp_path, {"a": ONE, "b": ONE}, rules=[{"deny": "b__wait"}]) as made:
        call = await began(made, "a__wait", 1)
        [leaving] = [each for each in made.compositor.registry.mounts if each.prefix == "a"]
        step = await made.reload({"b": ONE}, rules=[{"deny": "b__wait"}])
        assert str(step) == "removed a"
        assert await made.client.names() == ["b__which"]
        assert leaving.state is MountState.ACTIVE
        made.made[0].held.set()
        assert await call == "number 1 at last"
        await until(lambda: leaving.reason == "closed")


async def test_what_has_changed_is_there_anew_before_the_last_call_of_the_old_one_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with desk(tmp_path, {"a": ONE, "b": ONE}) as made:
        call = await began(made, "a__wait", 1)
        events: list[tuple[str, str]] = []
        made.compositor.add_mount_listener(lambda prefix, event: events.append((prefix, event.value)))
        await made.reload({"a": server(timeout=30), "b": ONE})
        assert events[:2] == [("a", "unmounted"), ("a", "mounted")]
        await made.until_listed("a__which", "a__wait", "b__which", "b__wait")
        assert await made.say("a__which") == "number 3"
        assert await made.say("b__which") == "number 2"
        made.made[0].held.set()
        assert await call == "number 1 at last"
        assert "configuration read anew: restarted a" in caplog.messages


async def test_a_call_of_a_server_that_is_just_being_restarted_waits_for_it(tmp_path: Path) -> None:
    async with desk(tmp_path, {"a": ONE}) as made:
        assert await made.say("a__which") == "number 1"
        await made.reload({"a": server(timeout=30)})
        assert await made.say("a__which") == "number 2"


async def test_reloads_that_come_at_once_are_done_one_by_one_and_the_newest_file_counts(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path, {"a": ONE}) as made:
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            for seconds in range(10, 20):
                made.write({"a": server(timeout=seconds), f"s{seconds}": ONE})
                group.create_task(made.reloader.reload())
        prefixes = [str(each.prefix) for each in made.compositor.registry.mounts if not each.pinned]
        assert prefixes == ["a", "s19"]
        assert made.compositor.registry.find("a").settings.timeout == 19


async def test_leaving_does_not_wait_for_the_calls_of_what_was_removed(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE):  # the call itself would have a minute, and so would the drain
        async with desk(tmp_path, {"a": ONE}) as made:
            call = await began(made, "a__wait", 1)
            leaving = made.compositor.registry.find("a")
            await made.reload({})
            await made.compositor.__aexit__(None, None, None)
        with contextlib.suppress(Exception):
            await call
    assert leaving.state is MountState.CLOSED


async def test_what_a_program_has_mounted_is_left_alone(tmp_path: Path) -> None:
    async with desk(tmp_path, {"a": ONE}) as made:
        foreign = await made.compositor.mount(MountPrefix("own"), made.make())
        with pytest.raises(ConfigError, match="own is already mounted"):
            await made.reload({"a": ONE, "own": ONE})
        await made.reload({})
        assert [each for each in made.compositor.registry.mounts if not each.pinned] == [foreign]


async def test_what_somebody_unmounted_is_mounted_again_as_the_file_says(tmp_path: Path) -> None:
    async with desk(tmp_path, {"a": ONE}) as made:
        await made.compositor.unmount(MountPrefix("a"))
        assert str(await made.reload({"a": ONE})) == "added a"
        assert await made.say("a__which") == "number 2"


# ---- a file that cannot be followed


@pytest.mark.parametrize(
    ("servers", "words"),
    [
        ({"a": {"type": "python", "module": 7}}, "plait.json:5:14: expected a string, got a number"),
        ({"a": {"type": "python", "module": "nowhere:x"}}, "plait.json:3:3: cannot load nowhere:x"),
        ({"a": ONE, "new": server(prefix="a")}, "plait.json:8:3: a is already mounted"),
        ({"new": server(prefix="a"), "a": ONE}, "plait.json:10:3: a is already mounted"),
        ({"a": server(colour="red")}, "plait.json:7:5: unknown field 'colour'"),
    ],
)
async def test_a_file_with_a_mistake_changes_nothing_and_the_mistake_is_told_with_its_place(
    servers: dict[str, object], words: str, tmp_path: Path
) -> None:
    async with desk(tmp_path, {"a": ONE}) as made:
        before, config = made.compositor.registry.mounts, made.compositor.config
        with pytest.raises(ConfigError) as caught:
            await made.reload(servers)
        assert words in str(caught.value)
        assert made.compositor.registry.mounts == before
        assert made.compositor.config is config
        assert await made.say("a__which") == "number 1"


async def test_a_guard_that_cannot_be_read_leaves_the_old_ones_in_force(tmp_path: Path) -> None:
    async with desk(tmp_path, {"a": ONE}, rules=[{"deny": "a__wait"}]) as made:
        with pytest.raises(ConfigError, match="unknown field 'denny'") as caught:
            await made.reload({"a": ONE}, rules=[{"denny": "a__wait"}])
        assert "every call is denied" not in str(caught.value)
        await made.until_listed("a__which")
        assert await made.say("a__which") == "number 1"


async def test_what_was_wrong_from_the_start_does_not_stop_what_is_better_now(tmp_path: Path) -> None:
    wrong = {"lost": {"type": "python", "module": "nowhere:x"}, "odd": {"command": 7}}
    async with desk(tmp_path, wrong) as made:
        assert len(made.compositor.complaints) == 2
        step = await made.reload({**wrong, "a": ONE})
        assert str(step) == "added a"
        assert len(made.compositor.complaints) == 2
        assert await made.say("a__which") == "number 1"
        await made.reload({"a": ONE})
        assert made.compositor.complaints == []


async def test_without_any_file_what_ran_goes_on(tmp_path: Path) -> None:
    async with desk(tmp_path, {"a": ONE}) as made:
        async with Reloader(made.compositor, lambda: None, look=3600) as other:
            with pytest.raises(ConfigError, match="no configuration file any more"):
                await other.reload()
        assert await made.say("a__which") == "number 1"


# ---- settings


async def test_new_rules_count_for_new_calls_and_clients_hear_that_their_lists_are_old(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with desk(tmp_path, {"a": ONE}) as made:
        call = await began(made, "a__wait", 1)
        await made.until_listed("a__which", "a__wait")
        made.client.notes.clear()
        await made.reload({"a": ONE}, rules=[{"deny": "a__wait"}])
        assert await made.client.names() == ["a__which"]
        assert made.client.told(LISTS_CHANGED)
        assert "a__wait" in await made.say("a__wait")
        made.made[0].held.set()
        assert await call == "number 1 at last"
        assert "configuration read anew: changed rules" in caplog.messages


async def test_a_rule_that_has_moved_is_no_change_but_its_new_place_is_known(tmp_path: Path) -> None:
    async with desk(tmp_path, {}, rules=[{"deny": "x"}]) as made:
        before = made.compositor.settings.rules[0].where
        made.file.write_text("\n\n" + made.file.read_text())
        assert str(await made.reloader.reload()) == ""
        assert made.compositor.settings.rules[0].where != before


async def test_the_record_of_calls_and_a_programs_own_layers_stay(tmp_path: Path) -> None:
    seen: list[str] = []

    async def own(exchange: Exchange, call_next: Handler) -> Reply:
        seen.append(exchange.method)
        return await call_next(exchange)

    async with desk(tmp_path, {"a": ONE}, layers=[own]) as made:
        outfit = made.compositor.outfit
        assert outfit is not None
        audit, store = outfit.audit, outfit.store
        step = await made.reload({"a": ONE}, results={"maxBytes": 100})
        assert str(step) == "changed results"
        assert made.compositor.outfit is outfit
        assert (outfit.audit, outfit.store) == (audit, store)
        await made.say("a__which")
        assert seen == ["tools/call"]


async def test_what_cannot_change_while_we_run_is_named_and_the_rest_is_done(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with desk(tmp_path, {"a": ONE}) as made:
        results = {"tool": True, "maxBytes": 5000}
        step = await made.reload({"a": ONE, "b": ONE}, separator=".", nameBudget=12, results=results)
        assert str(step) == "added b; changed results"
        assert "takes effect at the next start: separator, nameBudget, results.tool" in caplog.messages
        settings = made.compositor.settings
        assert (settings.separator, settings.results.max_bytes, settings.results.tool) == ("__", 5000, False)
        assert await made.say("b__which") == "number 2"


async def test_our_own_tools_come_and_go_and_follow_their_policy(tmp_path: Path) -> None:
    async with desk(tmp_path, {}) as made:
        assert str(await made.reload({}, builtin=True)) == "added builtin; changed builtin"
        before = made.compositor.registry.find("builtin")
        policy = {"commands": {"allow": ["ls"]}}
        assert str(await made.reload({}, builtin=True, policy=policy)) == "restarted builtin; changed policy"
        assert made.compositor.registry.find("builtin") is not before
        assert "removed builtin" in str(await made.reload({}, builtin=False, policy=policy))
        assert await made.client.names() == []


async def test_variables_that_every_server_gets_restart_those_that_have_an_environment(
    tmp_path: Path,
) -> None:
    stdio = {"command": "true", "plait": {"start": "lazy"}}
    async with desk(tmp_path, {"a": ONE, "s": stdio}) as made:
        assert str(await made.reload({"a": ONE, "s": stdio}, env=["LANG"])) == "restarted s; changed env"


async def test_limits_for_all_restart_whoever_says_nothing_of_its_own(tmp_path: Path) -> None:
    servers = {"a": ONE, "b": server(timeout=9)}
    async with desk(tmp_path, servers) as made:
        assert str(await made.reload(servers, limits={"timeout": 7})) == "restarted a; changed limits"


# ---- looking


async def test_a_file_that_changes_is_followed_by_itself_and_a_mistake_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with desk(tmp_path, {"a": ONE}, look=0.002) as made:
        await made.until_listed("a__which", "a__wait")
        made.file.write_text('{"mcpServers": {\n "a" 7}}')
        await until_logged(caplog, "is not followed, and what ran goes on")
        [told] = [text for text in caplog.messages if "is not followed" in text]
        assert f"{made.file}:2:6: " in told
        made.write({"b": ONE})
        await made.until_listed("b__which", "b__wait")
        made.file.unlink()
        await until_logged(caplog, f"cannot read {made.file}: no such file")
        made.write({"c": ONE})
        await made.until_listed("c__which", "c__wait")
        assert len([text for text in caplog.messages if "is not followed" in text]) == 2


async def until_logged(caplog: pytest.LogCaptureFixture, words: str) -> None:
    await until(lambda: any(words in text for text in caplog.messages))


@jumping
async def test_a_file_that_is_still_being_written_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "plait.json"
    file.write_text("")
    config = Config(files=(str(file),))
    reads: list[str] = []

    def read() -> Config:
        reads.append(file.read_text())
        return config

    async def until_read(times: int) -> None:
        await until(lambda: len(reads) >= times, 3600)  # seconds of the clock that jumps

    async with Compositor(config) as compositor, Reloader(compositor, read, look=1.0) as reloader:
        await until_read(1)
        assert repr(reloader) == f"<Reloader of {file}: 0 mounts are leaving>"
        await asyncio.sleep(100)
        for _ in range(10):
            with file.open("a") as writing:
                writing.write("x")
            await asyncio.sleep(0.5)  # so that there is a change between any two looks
        assert reads == [""]
        await until_read(2)
        await asyncio.sleep(100)
        assert reads == ["", "x" * 10]


async def test_a_bug_in_reading_ends_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "plait.json"
    file.write_text("{}")
    config = Config(files=(str(file),))
    done = asyncio.Event()
    loop = asyncio.get_running_loop()

    def read() -> Config:
        if os.path.getsize(file) == 2:
            raise ZeroDivisionError
        loop.call_soon_threadsafe(done.set)
        return config

    async with Compositor(config) as compositor, Reloader(compositor, read, look=0.002):
        await until_logged(caplog, "a bug in plait: the configuration could not be followed")
        file.write_text("{ }")
        async with asyncio.timeout(PATIENCE):
            await done.wait()
