import asyncio
import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import uvloop

from plait.upstream import tree
from plait.upstream.process import BOOT, Child, Guardian
from processes import (
    PATH,
    PATIENCE,
    children_of,
    environment_of,
    exists,
    parent_of,
    python,
    read_line,
    status,
    until,
)

STUBBORN = "trap '' TERM; echo ready; while :; do read -r _ || sleep 0.01; done"

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
async def guardian() -> AsyncIterator[Guardian]:
    guardian = Guardian()
    yield guardian
    await guardian.aclose()


async def shell(guardian: Guardian, script: str) -> Child:
    return await guardian.spawn(["sh", "-c", script], PATH)


async def output_of(child: Child) -> str:
    """What a server wrote that ends by itself, and little."""
    await asyncio.wait_for(child.wait(), PATIENCE)
    return os.read(child.stdout, 65536).decode()


# ---- how a server ends


async def test_an_exit_code_is_reported(guardian: Guardian) -> None:
    child = await shell(guardian, "exit 7")
    assert await asyncio.wait_for(child.wait(), PATIENCE) == 7
    assert child.returncode == 7


async def test_a_signal_is_reported_as_its_negative(guardian: Guardian) -> None:
    child = await shell(guardian, "kill -USR1 $$")
    assert await asyncio.wait_for(child.wait(), PATIENCE) == -signal.SIGUSR1


async def test_what_was_written_before_the_end_can_still_be_read(guardian: Guardian) -> None:
    child = await shell(guardian, "echo out; echo err >&2")
    assert await output_of(child) == "out\n"
    assert os.read(child.stderr, 100) == b"err\n"


async def test_an_output_that_a_living_server_closes_ends_for_us(guardian: Guardian) -> None:
    child = await shell(guardian, "exec >&-; read -r _")
    with pytest.raises(EOFError):
        await read_line(child.stdout)
    assert child.returncode is None


async def test_one_of_two_who_wait_may_be_cancelled(guardian: Guardian) -> None:
    child = await guardian.spawn(["cat"], PATH)
    loop = asyncio.get_running_loop()
    waiting, cancelled = loop.create_task(child.wait()), loop.create_task(child.wait())
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    os.close(child.take_pipes().stdin)
    assert await asyncio.wait_for(waiting, PATIENCE) == 0
    os.close(child.stdout)
    os.close(child.stderr)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_whole_life_works_on_either_event_loop(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def life() -> None:
        guardian = Guardian()
        one, other = [await guardian.spawn(["cat"], {**PATH, "BIG": "x" * 100_000}) for _ in range(2)]
        os.write(one.stdin, b"hello\n")
        assert await read_line(one.stdout) == "hello"
        await one.stop()
        assert one.returncode == 0
        with pytest.raises(FileNotFoundError):
            await guardian.spawn(["no-such-command-anywhere"], PATH)
        assert other.returncode is None
        await guardian.aclose()
        assert not exists(other.pid)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.wait_for(life(), PATIENCE))


# ---- what cannot be started


async def test_a_missing_command_is_file_not_found(guardian: Guardian) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        await guardian.spawn(["no-such-command-anywhere"], PATH)
    assert (caught.value.errno, caught.value.strerror) == (errno.ENOENT, os.strerror(errno.ENOENT))
    assert caught.value.filename == "no-such-command-anywhere"


async def test_a_file_that_may_not_be_run_is_a_permission_error(guardian: Guardian, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a program")
    with pytest.raises(PermissionError):
        await guardian.spawn([str(tmp_path / "data")], PATH)


async def test_an_unfit_command_early_on_the_path_says_more_than_its_absence_later(
    guardian: Guardian, tmp_path: Path
) -> None:
    (tmp_path / "data").write_text("not a program")
    with pytest.raises(PermissionError):
        await guardian.spawn(["data"], {"PATH": f"{tmp_path}:/nowhere"})


async def test_a_program_of_no_known_format_is_an_exec_format_error(
    guardian: Guardian, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text("no interpreter line")
    program.chmod(0o755)
    with pytest.raises(OSError, match=os.strerror(errno.ENOEXEC)) as caught:
        await guardian.spawn([str(program)], PATH)
    assert caught.value.errno == errno.ENOEXEC


async def test_a_missing_directory_is_not_mistaken_for_a_missing_command(guardian: Guardian) -> None:
    with pytest.raises(FileNotFoundError, match="working directory") as caught:
        await guardian.spawn(["cat"], PATH, "/no/such/directory")
    assert caught.value.filename == "/no/such/directory"


async def test_after_a_failed_start_the_next_one_works(guardian: Guardian) -> None:
    with pytest.raises(FileNotFoundError):
        await guardian.spawn(["no-such-command-anywhere"], PATH)
    assert await output_of(await shell(guardian, "echo ok")) == "ok\n"


@pytest.mark.parametrize(
    ("argv", "env"),
    [
        ([], {}),
        ([""], {}),
        (["cat", "a\0b"], {}),
        (["cat"], {"NAME": "a\0b"}),
        (["cat"], {"NA=ME": "x"}),
        (["cat"], {"": "x"}),
    ],
)
async def test_what_no_system_could_run_is_refused_without_telling_values(
    guardian: Guardian, argv: list[str], env: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match=r"command|NUL|variable") as caught:
        await guardian.spawn(argv, env)
    assert "a\0b" not in str(caught.value)
    assert guardian.pid is None


# ---- what a server starts with


async def test_the_environment_is_exactly_what_was_given(
    guardian: Guardian, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_TEST_SECRET", "must not arrive")
    given = {**PATH, "ONE": "1", "EMPTY": "", "SPACED": " a=b ", "NOT_ASCII": "žluť \udcff"}
    child = await guardian.spawn(["env", "-0"], given)
    await asyncio.wait_for(child.wait(), PATIENCE)
    pairs = os.fsdecode(os.read(child.stdout, 65536)).split("\0")[:-1]
    assert dict(pair.split("=", 1) for pair in pairs) == given


async def test_the_command_is_looked_up_on_the_servers_own_path(guardian: Guardian, tmp_path: Path) -> None:
    program = tmp_path / "sh"
    program.write_text("#!/bin/sh\necho mine\n")
    program.chmod(0o755)
    child = await guardian.spawn(["sh"], {"PATH": f"/nowhere:{tmp_path}"})
    assert await output_of(child) == "mine\n"


async def test_it_runs_in_the_directory_that_was_given(guardian: Guardian, tmp_path: Path) -> None:
    child = await guardian.spawn(["pwd"], PATH, str(tmp_path))
    assert await output_of(child) == f"{tmp_path}\n"


@linux_only
async def test_it_has_no_descriptor_but_the_three_standard_ones(guardian: Guardian) -> None:
    other = await guardian.spawn(["cat"], PATH)
    code = (
        "import os; [print(n) for n in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{n}')]"
    )
    child = await guardian.spawn(python(code), {})
    assert sorted((await output_of(child)).split()) == ["0", "1", "2"]
    assert other.returncode is None


@linux_only
async def test_it_ignores_and_blocks_no_signal(guardian: Guardian) -> None:
    child = await guardian.spawn(["grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"], PATH)
    masks = [int(line.split()[1], 16) for line in (await output_of(child)).splitlines()]
    # 32 and 33 belong to the C library itself; nobody can send them, and some launchers leave them ignored.
    assert [mask & ~(0b11 << 31) for mask in masks] == [0, 0]


@linux_only
async def test_it_leads_a_session_and_a_group_of_its_own(guardian: Guardian) -> None:
    child = await guardian.spawn(["cat"], PATH)
    _, _, group, session, *_ = status(child.pid)
    assert group == session == str(child.pid)


async def test_an_order_bigger_than_a_socket_buffer_arrives_whole(guardian: Guardian) -> None:
    big = {f"NAME_{number}": "x" * 100_000 for number in range(8)}
    child = await guardian.spawn(["sh", "-c", "printf %s $NAME_7 | wc -c"], {**PATH, **big})
    assert (await output_of(child)).strip() == "100000"


async def test_what_goes_in_comes_out(guardian: Guardian) -> None:
    child = await guardian.spawn(["cat"], PATH)
    os.write(child.stdin, b"a message\n")
    assert await read_line(child.stdout) == "a message"


async def test_our_ends_do_not_block_and_nobody_inherits_them(guardian: Guardian) -> None:
    child = await guardian.spawn(["cat"], PATH)
    for descriptor in (child.stdin, child.stdout, child.stderr):
        assert not os.get_blocking(descriptor)
        assert not os.get_inheritable(descriptor)


@linux_only
async def test_pipes_hold_a_quarter_of_a_mebibyte(guardian: Guardian) -> None:
    if sys.platform == "linux":
        child = await guardian.spawn(["cat"], PATH)
        sizes = [fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ) for descriptor in (child.stdin, child.stdout)]
        assert sizes == [256 * 1024] * 2


# ---- stopping


async def test_a_server_that_ends_with_its_input_is_not_signalled(guardian: Guardian) -> None:
    child = await shell(guardian, "read -r line || exit 5")
    await asyncio.wait_for(child.stop(PATIENCE), PATIENCE)
    assert child.returncode == 5
    assert not exists(child.pid)


async def test_a_server_that_ignores_that_too_is_killed(guardian: Guardian) -> None:
    child = await shell(guardian, STUBBORN)
    await read_line(child.stdout)
    await child.stop(patience=0.05)
    assert child.returncode == -signal.SIGKILL
    assert not exists(child.pid)


async def test_a_cancelled_stop_still_kills(guardian: Guardian) -> None:
    child = await shell(guardian, STUBBORN)
    await read_line(child.stdout)
    stopping = asyncio.get_running_loop().create_task(child.stop(patience=60))
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert await asyncio.wait_for(child.wait(), PATIENCE) == -signal.SIGKILL


async def test_pipes_that_nobody_took_are_closed(guardian: Guardian) -> None:
    child = await guardian.spawn(["cat"], PATH)
    await child.stop()
    for descriptor in (child.stdin, child.stdout, child.stderr):
        with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
            os.fstat(descriptor)
    with pytest.raises(RuntimeError, match="taken or closed"):
        child.take_pipes()


async def test_pipes_that_were_taken_are_left_alone(guardian: Guardian) -> None:
    child = await guardian.spawn(["cat"], PATH)
    pipes = child.take_pipes()
    child.kill()
    await asyncio.wait_for(child.wait(), PATIENCE)
    pipes.close()


# ---- the guardian


@linux_only
async def test_a_cancelled_spawn_leaves_no_process(guardian: Guardian) -> None:
    await guardian.spawn(["cat"], PATH)
    pid = guardian.pid
    assert pid is not None
    spawning = asyncio.get_running_loop().create_task(guardian.spawn(["cat"], PATH))
    await asyncio.sleep(0)
    spawning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await spawning
    await guardian.spawn(["cat"], PATH)
    await until(lambda: len(children_of(pid)) == 2)


async def test_closing_ends_every_server_and_the_guardian() -> None:
    guardian = Guardian()
    child = await shell(guardian, STUBBORN)
    await read_line(child.stdout)
    pid = guardian.pid
    assert pid is not None
    await asyncio.wait_for(guardian.aclose(), PATIENCE)
    assert not exists(child.pid)
    assert not exists(pid)
    assert child.returncode == -signal.SIGKILL
    await guardian.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await guardian.spawn(["cat"], PATH)


async def test_a_guardian_that_starts_nothing_is_no_process() -> None:
    guardian = Guardian()
    assert guardian.pid is None
    await guardian.aclose()


@linux_only
async def test_the_guardian_knows_nothing_of_our_environment(
    guardian: Guardian, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_TEST_SECRET", "must not arrive")
    child = await guardian.spawn(["cat"], {**PATH, "TOKEN": "secret"})
    assert guardian.pid is not None
    for pid in (guardian.pid, parent_of(child.pid)):
        assert not {"PLAIT_TEST_SECRET", "TOKEN"} & environment_of(pid).keys()
    assert "secret" not in repr(child)


@linux_only
async def test_the_guardian_is_out_of_reach_of_our_terminal(guardian: Guardian) -> None:
    child = await guardian.spawn(["cat"], PATH)
    assert guardian.pid is not None
    for pid in (guardian.pid, parent_of(child.pid)):
        assert status(pid)[2:4] == [str(guardian.pid)] * 2  # group and session


def test_the_guardian_imports_nothing_slow() -> None:
    package = str(Path(tree.__file__).parents[1])
    code = BOOT.replace("main()", "print(*sys.modules)")
    printed = subprocess.run([*python(code), package], capture_output=True, text=True, check=True).stdout
    assert "plait.upstream.guardian" in printed.split()
    assert not {"enum", "re", "typing", "socket", "signal", "contextlib", "ctypes"} & set(printed.split())


# ---- the process table


@linux_only
async def test_ps_and_proc_tell_the_same(guardian: Guardian) -> None:
    child = await guardian.spawn(["cat"], PATH)
    ours = {os.getpid(), guardian.pid, parent_of(child.pid), child.pid}
    by_proc = [row for row in tree.table_from_proc() if row[0] in ours]
    by_ps = [row for row in tree.table_from_ps() if row[0] in ours]
    assert sorted(by_proc) == sorted(by_ps)
    assert len(by_proc) == 4


@linux_only
async def test_descendants_are_found_below_us_but_not_below_the_spared(guardian: Guardian) -> None:
    child = await guardian.spawn(["cat"], PATH)
    keeper = parent_of(child.pid)
    found = dict(tree.descendants())
    assert {keeper, child.pid} <= found.keys()
    assert found[child.pid] == child.pid
    assert not {keeper, child.pid} & dict(tree.descendants(spare={keeper})).keys()
    assert child.pid in dict(tree.descendants(group=child.pid, spare={keeper}))
