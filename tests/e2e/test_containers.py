"""Servers in containers, with a stand-in for docker on PATH: whatever happens, no container is left."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from engine import StandIn
from plait.config.model import Settings, StdioServer
from plait.errors import UpstreamError, UpstreamUnavailable
from plait.upstream import containers
from plait.upstream.base import Link
from plait.upstream.client import Listener
from plait.upstream.opening import Behalf, StdioOpener
from plait.upstream.process import Guardian
from plait.upstream.stderr import StderrLog
from plait.wire.address import as_raw
from plait.wire.spec import LATEST_HANDSHAKE
from processes import PATIENCE, until

pytestmark = [pytest.mark.e2e, pytest.mark.requirement("S3-18")]

Open = Callable[[StdioServer], "asyncio.Task[Link]"]


@pytest.fixture
def engine(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path)


@pytest.fixture
async def guardian() -> AsyncIterator[Guardian]:
    guardian = Guardian()
    yield guardian
    await guardian.aclose()


@pytest.fixture
async def start(engine: StandIn, guardian: Guardian) -> Open:
    loop = asyncio.get_running_loop()
    behalf: asyncio.Future[Behalf] = loop.create_future()
    behalf.set_result(Behalf({}, LATEST_HANDSHAKE))

    def start(server: StdioServer) -> "asyncio.Task[Link]":
        opener = StdioOpener(server, Settings(), engine.environ, guardian, StderrLog())
        return loop.create_task(opener.open(Listener(), behalf))

    return start


async def call(link: Link, tool: str, text: str = "") -> None:
    async with asyncio.timeout(PATIENCE):
        await link.request("tools/call", {"name": as_raw(tool), "arguments": as_raw({"text": text})})


async def ended(opening: "asyncio.Task[Link]") -> None:
    await asyncio.wait((opening,), timeout=2 * PATIENCE)
    assert opening.done()


def rewrite_age(engine: StandIn) -> None:
    """Let a minute pass for everything that is written down."""
    for path in engine.claims:
        os.utime(path, (0, 0))


# ---- every way in which a server ends


@pytest.mark.parametrize("options", [(), ("--rm",), ("--name", "box")], ids=["plain", "rm", "name"])
async def test_a_server_that_is_closed_leaves_no_container(
    engine: StandIn, start: Open, options: tuple[str, ...]
) -> None:
    link = await start(engine.server(*options))
    assert len(engine.containers) == 1
    assert len(engine.claims) == 2  # how to remove it, and its id
    await call(link, "echo", "hello")
    await link.aclose()
    await link.aclose()
    assert engine.left == []


async def test_a_server_that_crashed_leaves_no_container_and_can_have_its_name_again(
    engine: StandIn, start: Open
) -> None:
    for _ in range(2):
        link = await start(engine.server("--name", "box"))
        with pytest.raises(UpstreamUnavailable):
            await call(link, "leave")
        assert len(engine.containers) == 1
        await link.aclose()
        assert engine.left == []


async def test_a_server_that_is_closed_in_the_middle_of_a_call_leaves_no_container(
    engine: StandIn, start: Open
) -> None:
    link = await start(engine.server())
    loop = asyncio.get_running_loop()
    calling = loop.create_task(call(link, "slow"))
    await call(link, "echo")
    calling.cancel()
    await link.aclose()
    assert engine.left == []


async def test_an_engine_that_was_killed_leaves_no_container(
    engine: StandIn, start: Open, guardian: Guardian
) -> None:
    link = await start(engine.server())
    (child,) = guardian._children
    os.kill(child.pid, signal.SIGKILL)
    await child.wait()
    assert len(engine.containers) == 1
    await link.aclose()
    assert engine.left == []


async def test_a_server_that_does_not_greet_leaves_no_container(engine: StandIn, start: Open) -> None:
    server = engine.server()
    with pytest.raises(UpstreamError):
        await start(StdioServer(name="boxed", command=server.command, args=(*server.args, "--die")))
    assert engine.left == []


async def test_where_no_container_was_made_nobody_is_asked_to_remove_one(
    engine: StandIn, start: Open
) -> None:
    engine.begin("refuse-run")
    with pytest.raises(UpstreamUnavailable, match="Cannot connect"):
        await start(engine.server())
    assert engine.claims == []
    assert engine.calls("rm") == engine.calls("ps") == []


async def test_where_there_is_no_engine_nothing_is_left_to_be_done(engine: StandIn, start: Open) -> None:
    (engine.bin / "docker").unlink()
    server = engine.server(engine=(str(engine.bin / "docker"),))
    with pytest.raises(UpstreamUnavailable, match="does not exist"):
        await start(server)
    assert engine.claims == []


# ---- cancelled


async def test_a_start_that_is_cancelled_at_any_time_leaves_no_container(
    engine: StandIn, start: Open
) -> None:
    for turns in (0, 1, 2, 5, 20, 100):
        opening = start(engine.server())
        for _ in range(turns):
            await asyncio.sleep(0)
        opening.cancel()
        await ended(opening)
        assert opening.cancelled()
        assert engine.containers == []
        rewrite_age(engine)
    await (await start(engine.server())).aclose()
    assert engine.left == []


async def test_a_start_that_is_cancelled_before_the_id_is_known_leaves_no_container(
    engine: StandIn, start: Open
) -> None:
    engine.begin("slow-id")
    opening = start(engine.server())
    await until(lambda: len(engine.containers) == 1)
    opening.cancel()
    await ended(opening)
    assert opening.cancelled()
    assert engine.left == []


async def test_a_container_that_the_daemon_makes_late_is_removed_by_the_next_start(
    engine: StandIn, start: Open
) -> None:
    engine.begin("slow-create")
    opening = start(engine.server())
    await until(lambda: len(engine.calls("run")) == 1)
    opening.cancel()
    await ended(opening)
    (words,) = [run["words"] for run in engine.calls("run")]
    assert isinstance(words, list)
    engine.make("late", label=words[words.index("--label") + 1])
    engine.end("slow-create")
    link = await start(engine.server())
    assert "late" not in engine.containers
    await link.aclose()
    assert engine.left == []


async def test_closing_that_is_cancelled_removes_the_container_all_the_same(
    engine: StandIn, start: Open
) -> None:
    link = await start(engine.server())
    engine.begin("slow-rm")
    closing = asyncio.get_running_loop().create_task(link.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    await until(lambda: len(engine.calls("rm")) == 1)
    closing.cancel()
    engine.end("slow-rm")
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(closing, PATIENCE)
    assert engine.left == []


# ---- how the engine is called


@pytest.mark.parametrize(
    "words",
    [
        ("podman",),
        ("docker", "--context", "run"),
        ("docker", "-H", "tcp://127.0.0.1:2", "container"),
        ("sudo", "-n", "docker", "--debug"),
        ("env", "A=1", "docker"),
    ],
    ids=lambda words: " ".join(words),
)
async def test_the_container_is_removed_by_the_engine_and_the_daemon_that_made_it(
    engine: StandIn, start: Open, words: tuple[str, ...]
) -> None:
    link = await start(engine.server(engine=words))
    (id,) = engine.containers
    await link.aclose()
    assert engine.left == []
    (removal,) = engine.calls("rm")
    options = [word for word in words[1:] if word not in ("container", "-n", "docker", "A=1")]
    assert removal == {"words": [*options, "rm", "-f", id], "host": "tcp://127.0.0.1:1", "secret": None}


async def test_an_absolute_engine_is_found_without_a_path(engine: StandIn, start: Open) -> None:
    link = await start(engine.server(engine=(str(engine.bin / "docker"),)))
    await link.aclose()
    assert engine.left == []


async def test_a_cidfile_of_the_users_own_is_used_and_left_alone(
    engine: StandIn, start: Open, tmp_path: Path
) -> None:
    cidfile = tmp_path / "mine.cid"
    link = await start(engine.server("--cidfile", str(cidfile)))
    (id,) = engine.containers
    await link.aclose()
    assert engine.left == []
    assert cidfile.read_text() == id
    assert engine.calls("ps") == []


async def test_an_old_cidfile_of_the_users_own_does_not_cost_somebody_elses_container(
    engine: StandIn, start: Open, tmp_path: Path
) -> None:
    cidfile = tmp_path / "mine.cid"
    cidfile.write_text("other")
    engine.make("other")
    with pytest.raises(UpstreamUnavailable, match="container ID file found"):
        await start(engine.server(f"--cidfile={cidfile}"))
    assert engine.containers == ["other"]
    assert engine.claims == []
    assert cidfile.read_text() == "other"


async def test_an_engine_that_may_not_write_to_our_folder_is_asked_what_it_made(
    engine: StandIn, start: Open
) -> None:
    os.rename(engine.bin / "docker", engine.bin / "snap")
    os.symlink("snap", engine.bin / "docker")
    link = await start(engine.server())
    assert "--cidfile" not in str(engine.calls("run"))
    assert len(engine.containers) == 1
    await link.aclose()
    assert engine.left == []


async def test_other_servers_have_nothing_to_do_with_it(engine: StandIn, start: Open) -> None:
    _, *words = engine.argv()
    server = words[words.index("image") + 1 :]
    link = await start(StdioServer(name="plain", command=server[0], args=server[1:]))
    await link.aclose()
    assert not (engine.state / "plait" / "containers").exists()


# ---- what cannot be removed


async def test_a_container_that_cannot_be_removed_is_told_of_and_removed_by_the_next_start(
    engine: StandIn, start: Open, caplog: pytest.LogCaptureFixture
) -> None:
    link = await start(engine.server())
    (id,) = engine.containers
    engine.begin("refuse-rm")
    await link.aclose()
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "server 'boxed': docker could not remove its container" in line
    assert id in line
    assert "Cannot connect to the daemon" in line
    assert "hunter2" not in caplog.text
    assert [path.suffix for path in engine.claims] == [".cid", ".json"]
    engine.end("refuse-rm")
    link = await start(engine.server())
    assert id not in engine.containers
    await link.aclose()
    assert engine.left == []


async def test_an_engine_that_hangs_is_not_waited_for_long(
    engine: StandIn, start: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(containers, "REMOVAL", 0.3)
    link = await start(engine.server())
    engine.begin("slow-rm")
    await asyncio.wait_for(link.aclose(), PATIENCE)
    assert "no answer within 0.3 s" in caplog.text
    assert len(engine.containers) == 1
    assert len(engine.claims) == 2


async def test_where_ids_cannot_be_written_down_no_container_is_started(engine: StandIn, start: Open) -> None:
    engine.state.write_text("no folder")
    with pytest.raises(UpstreamUnavailable, match="set XDG_STATE_HOME"):
        await start(engine.server())
    assert engine.calls("run") == []
