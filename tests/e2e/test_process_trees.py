import asyncio
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator

import pytest

from plait.upstream import process
from plait.upstream.process import Child, Guardian
from processes import (
    PATH,
    PATIENCE,
    alive,
    children_of,
    exists,
    open_descriptors,
    parent_of,
    python,
    read_line,
    until,
    until_gone,
)

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc from outside"),
]

ROUNDS = 300 if os.environ.get("PLAIT_SOAK") else 30

# Ends by SIGTERM only, and says so by its exit code.
SLOW_TO_LEAVE = "trap 'exit 6' TERM; echo ready; while :; do sleep 0.01; done"

# Ends by nothing but SIGKILL, has a grandchild that holds our pipes, and one that a daemon's double
# fork and a session of its own have taken out of every group; prints all three.
FAMILY = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def sleep():
    while True:
        time.sleep(100)
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    sleep()
if os.fork() == 0:
    os.setsid()
    daemon = os.fork()
    if daemon == 0:
        os.setsid()
        sleep()
    os.write(writer, str(daemon).encode())
    os._exit(0)
os.wait()
print(os.getpid(), child, int(os.read(reader, 100)), flush=True)
"""

# A plait that owns servers: prints its guardian and everybody below, then does what it is told.
OWNER = """
import asyncio, json, os, signal, sys
sys.path.insert(0, TESTS)
from processes import PATH, parent_of, python, read_line
from plait.upstream.process import Guardian

async def main():
    guardian = Guardian()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    children = [await guardian.spawn(python(FAMILY), {}) for _ in range(3)]
    echo = await guardian.spawn(["cat"], PATH)
    pids = [guardian.pid, echo.pid, parent_of(echo.pid)]
    for child in children:
        pids += [parent_of(child.pid), *map(int, (await read_line(child.stdout)).split())]
    print(json.dumps(pids), flush=True)
    await stop.wait()
    os.write(echo.stdin, b"still here\\n")
    print(await read_line(echo.stdout), flush=True)
    await echo.stop()
    print(echo.returncode, flush=True)
    await guardian.aclose()

asyncio.run(main())
"""


@pytest.fixture
async def guardian() -> AsyncIterator[Guardian]:
    guardian = Guardian()
    yield guardian
    await guardian.aclose()


@pytest.fixture
def owner() -> Iterator["subprocess.Popen[str]"]:
    code = f"TESTS = {os.path.dirname(os.path.dirname(__file__))!r}\nFAMILY = {FAMILY + 'sleep()'!r}\n{OWNER}"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as owner:
        yield owner
        owner.kill()


async def line_of(owner: "subprocess.Popen[str]") -> str:
    assert owner.stdout is not None
    return (await asyncio.to_thread(owner.stdout.readline)).strip()


async def family(guardian: Guardian, then: str) -> tuple[Child, list[int]]:
    """A server with two kinds of grandchildren, and the process ids of all."""
    child = await guardian.spawn(python(FAMILY + then), {})
    pids = [int(pid) for pid in (await read_line(child.stdout)).split()]
    assert pids[0] == child.pid
    assert all(alive(pid) for pid in pids)
    return child, pids


# ---- leaving in order


async def test_a_server_that_ignores_the_end_of_its_input_is_terminated(guardian: Guardian) -> None:
    child = await guardian.spawn(["sh", "-c", SLOW_TO_LEAVE], PATH)
    await read_line(child.stdout)
    await child.stop(patience=0.5)
    assert child.returncode == 6


async def test_a_stopped_server_wakes_up_to_end_in_order(guardian: Guardian) -> None:
    child = await guardian.spawn(["sh", "-c", SLOW_TO_LEAVE], PATH)
    await read_line(child.stdout)
    os.kill(child.pid, signal.SIGSTOP)
    await child.stop(patience=0.5)
    assert child.returncode == 6


async def test_stop_may_be_called_twice_at_once_and_again_later(guardian: Guardian) -> None:
    script = "trap 'echo term' TERM; echo ready; while :; do sleep 0.01; done"
    child = await guardian.spawn(["sh", "-c", script], PATH)
    await read_line(child.stdout)
    pipes = child.take_pipes()
    async with asyncio.TaskGroup() as both:
        both.create_task(child.stop(patience=0.5))
        both.create_task(child.stop(patience=0.5))
    await child.stop()
    child.kill()
    assert child.returncode == -signal.SIGKILL
    assert os.read(pipes.stdout, 100) == b"term\n"  # one SIGTERM, not two
    pipes.close()


# ---- trees


async def test_a_grandchild_that_holds_stdout_open_does_not_hide_the_exit(guardian: Guardian) -> None:
    child, pids = await family(guardian, "os.read(0, 1); os._exit(3)")
    os.write(child.stdin, b"+")
    assert await asyncio.wait_for(child.wait(), 1) == 3
    await until_gone(pids)
    await child.stop()
    assert not any(exists(pid) for pid in pids)


async def test_nobody_survives_stop_not_even_a_daemon_that_ignores_sigterm(guardian: Guardian) -> None:
    child, pids = await family(guardian, "sleep()")
    await child.stop(patience=0.1)
    assert not any(exists(pid) for pid in pids)
    assert child.returncode == -signal.SIGKILL


async def test_asked_to_terminate_a_grandchild_may_finish_after_the_server(guardian: Guardian) -> None:
    code = """
import os, signal, sys, time
reader, writer = os.pipe()
if os.fork() == 0:
    def finish(*_):
        while os.getppid() == parent:   # until the server is gone
            time.sleep(0.001)
        os.write(1, b"finished in order\\n")
        os._exit(0)
    parent = os.getppid()
    signal.signal(signal.SIGTERM, finish)
    os.write(writer, b"+")
    while True:
        time.sleep(100)
os.read(reader, 1)
print("ready", flush=True)
time.sleep(100)
"""
    child = await guardian.spawn(python(code), {})
    assert await read_line(child.stdout) == "ready"
    pipes = child.take_pipes()
    await child.stop(patience=0.5)
    assert child.returncode == -signal.SIGTERM
    assert os.read(pipes.stdout, 100) == b"finished in order\n"
    pipes.close()


async def test_two_hundred_grandchildren_are_gone_after_stop(guardian: Guardian) -> None:
    code = """
import os, signal, time
pids = []
for number in range(200):
    pid = os.fork()
    if pid == 0:
        if number % 2:
            os.setsid()
        if number % 3:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(100)
    pids.append(pid)
print(*pids, flush=True)
time.sleep(100)
"""
    child = await guardian.spawn(python(code), {})
    pids = [int(pid) for pid in (await read_line(child.stdout)).split()]
    assert len(pids) == 200
    await child.stop(patience=0.1)
    assert not any(exists(pid) for pid in pids)


async def test_a_tree_that_grows_while_it_is_killed_is_gone(guardian: Guardian) -> None:
    # 511 processes in 511 sessions if nobody stops them; they are stopped on the way.
    code = """
import os, time
def grow(depth):
    os.write(1, f"{os.getpid()}\\n".encode())
    for _ in range(2):
        if depth and os.fork() == 0:
            os.setsid()
            grow(depth - 1)
    time.sleep(100)
grow(8)
"""
    child = await guardian.spawn(python(code), {})
    pids = [int(await read_line(child.stdout)) for _ in range(40)]
    pipes = child.take_pipes()
    child.kill()
    await asyncio.wait_for(asyncio.shield(child.gone), PATIENCE)
    pids += [int(pid) for pid in os.read(pipes.stdout, 65536).split()]
    assert not any(exists(pid) for pid in pids)
    pipes.close()


async def test_a_process_that_runs_from_fork_to_fork_is_caught(guardian: Guardian) -> None:
    code = """
import os, time
end = time.monotonic() + 30
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
"""
    child = await guardian.spawn(python(code), {})
    await asyncio.wait_for(asyncio.shield(child.gone), PATIENCE)
    assert child.returncode == 0


async def test_where_orphans_cannot_be_adopted_the_group_and_ps_find_them(
    guardian: Guardian, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_on_macos = "from plait.upstream import tree\ntree.prctl = lambda *_: False\n"
    as_on_macos += "tree.process_table = tree.table_from_ps\nmain()"
    monkeypatch.setattr(process, "BOOT", process.BOOT.replace("main()", as_on_macos))
    script = "sh -c 'sleep 100 & echo $!' & wait; sleep 100 & echo $!; read -r _; exit 3"
    child = await guardian.spawn(["sh", "-c", script], PATH)
    pids = [int(await read_line(child.stdout)) for _ in range(2)]
    os.write(child.stdin, b"\n")
    assert await asyncio.wait_for(child.wait(), PATIENCE) == 3
    await child.stop()
    await until_gone(pids)


# ---- somebody is killed


async def test_nothing_is_left_when_plait_is_killed(owner: "subprocess.Popen[str]") -> None:
    pids: list[int] = json.loads(await line_of(owner))
    assert all(alive(pid) for pid in pids)
    owner.kill()
    await until_gone(pids, 2)


async def test_a_killed_guardian_is_replaced_and_its_servers_are_still_kept(guardian: Guardian) -> None:
    child, pids = await family(guardian, "sleep()")
    first = guardian.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    other = await guardian.spawn(["cat"], PATH)
    assert guardian.pid != first
    os.write(other.stdin, b"hello\n")
    assert await read_line(other.stdout) == "hello"
    assert all(alive(pid) for pid in pids)
    assert child.returncode is None
    await child.stop(patience=0.1)
    await until_gone(pids)
    assert not exists(first)


async def test_spawns_that_are_under_way_survive_a_killed_guardian(guardian: Guardian) -> None:
    await guardian.spawn(["cat"], PATH)
    first = guardian.pid
    assert first is not None
    async with asyncio.TaskGroup() as group:
        spawning = [group.create_task(guardian.spawn(["cat"], PATH)) for _ in range(20)]
        await asyncio.sleep(0)
        os.kill(first, signal.SIGKILL)
    assert len({task.result().pid for task in spawning}) == 20
    assert all(alive(task.result().pid) for task in spawning)


async def test_a_killed_keeper_takes_its_whole_tree_along(guardian: Guardian) -> None:
    other = await guardian.spawn(["cat"], PATH)
    child, pids = await family(guardian, "sleep()")
    os.kill(parent_of(child.pid), signal.SIGKILL)
    assert await asyncio.wait_for(child.wait(), PATIENCE) == -signal.SIGKILL
    await until_gone(pids)
    assert alive(other.pid)


async def test_without_guardian_and_keeper_the_server_itself_still_dies(guardian: Guardian) -> None:
    child = await guardian.spawn(["cat"], PATH)
    keeper = parent_of(child.pid)
    assert guardian.pid is not None
    os.kill(guardian.pid, signal.SIGKILL)
    os.kill(keeper, signal.SIGKILL)
    assert await asyncio.wait_for(child.wait(), PATIENCE) == -signal.SIGKILL
    await until_gone([child.pid])


async def test_a_guardian_that_hangs_does_not_hang_us(
    guardian: Guardian, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "START_LIMIT", 0.2)
    await guardian.spawn(["cat"], PATH)
    assert guardian.pid is not None
    os.kill(guardian.pid, signal.SIGSTOP)
    with pytest.raises(TimeoutError, match="not started within"):
        await guardian.spawn(["cat"], PATH)
    monkeypatch.setattr(process, "START_LIMIT", PATIENCE)
    await guardian.spawn(["cat"], PATH)


async def test_ctrl_c_reaches_plait_and_not_its_servers(owner: "subprocess.Popen[str]") -> None:
    pids: list[int] = json.loads(await line_of(owner))
    os.killpg(owner.pid, signal.SIGINT)
    assert await line_of(owner) == "still here"
    assert await line_of(owner) == "0"  # it ended with its input, not by the signal
    await until_gone(pids)
    assert await asyncio.to_thread(owner.wait, PATIENCE) == 0


async def test_a_service_managers_sigterm_to_everybody_leaves_the_order_to_plait(guardian: Guardian) -> None:
    child, pids = await family(guardian, "sleep()")
    assert guardian.pid is not None
    for pid in (guardian.pid, parent_of(child.pid)):
        os.kill(pid, signal.SIGTERM)
    other = await guardian.spawn(["cat"], PATH)
    assert parent_of(parent_of(other.pid)) == guardian.pid
    assert alive(child.pid)
    await child.stop(patience=0.1)
    assert not any(exists(pid) for pid in pids)


# ---- many, and often


async def test_fifty_servers_start_at_once(guardian: Guardian) -> None:
    async with asyncio.TaskGroup() as group:
        spawning = [group.create_task(guardian.spawn(["cat"], PATH)) for _ in range(50)]
    children = [task.result() for task in spawning]
    for number, child in enumerate(children):
        os.write(child.stdin, f"{number}\n".encode())
    assert [int(await read_line(child.stdout)) for child in children] == list(range(50))
    async with asyncio.TaskGroup() as group:
        for child in children:
            group.create_task(child.stop())
    assert {child.returncode for child in children} == {0}


async def test_more_than_the_guardian_can_take_at_once_wait_for_their_turn(guardian: Guardian) -> None:
    await guardian.spawn(["cat"], PATH)
    assert guardian.pid is not None
    assert guardian._channel is not None
    guardian._channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # takes a few, not hundreds
    os.kill(guardian.pid, signal.SIGSTOP)
    async with asyncio.TaskGroup() as group:
        spawning = [group.create_task(guardian.spawn(["cat"], PATH)) for _ in range(20)]
        await asyncio.sleep(0)
        with pytest.raises(BlockingIOError):
            guardian._channel.send(b"-")
        os.kill(guardian.pid, signal.SIGCONT)
    assert len({task.result().pid for task in spawning}) == 20


async def test_many_starts_and_stops_leave_no_descriptor_and_no_process(guardian: Guardian) -> None:
    await (await guardian.spawn(["cat"], PATH)).stop()
    assert guardian.pid is not None
    pids = (os.getpid(), guardian.pid)
    await until(lambda: not children_of(pids[1]))
    before = [open_descriptors(pid) for pid in pids]
    for number in range(ROUNDS):
        if number % 3 == 0:
            with pytest.raises(FileNotFoundError):
                await guardian.spawn(["no-such-command-anywhere"], PATH)
        script = ("cat", "sleep 100 & cat", "exec sleep 100")[number % 3]
        child = await guardian.spawn(["sh", "-c", script], PATH)
        await child.stop(patience=0.02)
        assert not exists(child.pid)
    await until(lambda: not children_of(pids[1]))
    assert children_of(pids[0]).count(pids[1]) == 1
    assert [open_descriptors(pid) for pid in pids] == before


# ---- limits


async def test_a_memory_hog_is_stopped_by_its_limit(guardian: Guardian) -> None:
    code = "hog = []\nwhile True:\n    hog.append(bytearray(1 << 20)); print(len(hog), flush=True)"
    child = await guardian.spawn(python(code), {}, memory=64 << 20)
    assert await asyncio.wait_for(child.wait(), PATIENCE) == 1
    assert b"MemoryError" in os.read(child.stderr, 65536)
    assert 30 < int(os.read(child.stdout, 65536).split()[-1]) < 64
    assert (await guardian.spawn(["cat"], PATH)).returncode is None


async def test_a_limit_on_processes_stops_a_fork_bomb(guardian: Guardian) -> None:
    code = """
import os, signal, time
if os.getuid() == 0:
    os.setuid(54321)   # root is exempt, and nobody else is this user
signal.signal(signal.SIGTERM, signal.SIG_IGN)
born = 0
try:
    while os.fork():
        born += 1
    time.sleep(100)
except BlockingIOError:
    print(born, flush=True)
    time.sleep(100)
"""
    child = await guardian.spawn(python(code), {}, processes=20)
    assert int(await read_line(child.stdout)) < 20
    await child.stop(patience=0.05)
    assert not exists(child.pid)


async def test_a_limit_above_our_own_is_ours(guardian: Guardian) -> None:
    await guardian.spawn(["cat"], PATH)
    if sys.platform == "linux" and guardian.pid is not None:
        resource.prlimit(guardian.pid, resource.RLIMIT_DATA, (1 << 30, 1 << 30))
    child = await guardian.spawn(["sh", "-c", "ulimit -d"], PATH, memory=1 << 32)
    await asyncio.wait_for(child.wait(), PATIENCE)
    assert int(os.read(child.stdout, 100)) == (1 << 30) // 1024
