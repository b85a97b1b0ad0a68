import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import uvloop

from plait.errors import ExecutionFailed
from plait.pipeline.commands import CommandPolicy
from plait.pipeline.commands.syntax import ShellText
from plait.pipeline.commands.verdicts import Unacceptable
from plait.providers.tools.shell import BOOT, ShellTools
from plait.upstream.process import Guardian
from processes import PATIENCE, open_descriptors, until, until_gone

pytestmark = pytest.mark.e2e

ALLOW = [
    "ls",
    "cat",
    "env",
    "echo",
    "pwd",
    "yes",
    "head",
    "sleep",
    "wc",
    "true",
    "false",
    "sh -c",
    "python3 -c",
    "sort",
]


@pytest.fixture
async def guardian() -> AsyncIterator[Guardian]:
    guardian = Guardian()
    yield guardian
    await guardian.aclose()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def shell(workspace: Path, guardian: Guardian) -> ShellTools:
    return ShellTools(workspace, CommandPolicy(ALLOW, shell=True, roots=[workspace]), guardian)


@pytest.mark.requirement("BC-48", "S1-T7.9")
async def test_a_command_s_end_and_output_come_back(shell: ShellTools, workspace: Path) -> None:
    (workspace / "file").write_text("x")
    ran = await shell.exec_shell(argv=["ls", "-la"])
    assert ran.exit_code == 0
    assert "file" in ran.stdout
    assert ran.stderr == ""
    assert 0 < ran.duration_ms < PATIENCE * 1000
    failed = await shell.exec_shell(command="ls nothing-here")
    assert failed.exit_code == 2
    assert "nothing-here" in failed.stderr


async def test_a_signal_is_an_exit_code_above_128(shell: ShellTools) -> None:
    assert (await shell.exec_shell(argv=["sh", "-c", "kill -9 $$"])).exit_code == 137
    assert (await shell.exec_shell(command="true && sh -c 'kill -9 $$'")).exit_code == 137


async def test_it_runs_where_it_is_told_to(shell: ShellTools, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    assert (await shell.exec_shell(argv=["pwd"])).stdout == f"{workspace}\n"
    assert (await shell.exec_shell(argv=["pwd"], cwd="sub")).stdout == f"{workspace}/sub\n"


@pytest.mark.requirement("K-14")
async def test_a_command_sees_nothing_of_our_environment(
    shell: ShellTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    ran = await shell.exec_shell(argv=["env"])
    assert {line.partition("=")[0] for line in ran.stdout.splitlines()} == {"PATH", "HOME", "TMPDIR", "LANG"}


async def test_its_input_is_empty(shell: ShellTools) -> None:
    assert (await shell.exec_shell(argv=["cat"])).stdout == ""
    assert (await shell.exec_shell(command="cat | wc -c")).stdout == "0\n"


async def test_its_temporary_folder_goes_with_it(shell: ShellTools) -> None:
    ran = await shell.exec_shell(
        argv=["sh", "-c", 'echo x > "$TMPDIR/file" && cat "$TMPDIR/file" && echo $TMPDIR']
    )
    content, folder = ran.stdout.split()
    assert content == "x"
    assert folder.startswith(tempfile.gettempdir())
    assert os.path.basename(folder) not in os.listdir(tempfile.gettempdir())


@pytest.mark.requirement("K-17")
async def test_both_streams_are_read_while_it_runs_and_what_is_cut_is_counted(shell: ShellTools) -> None:
    size = 5_000_000
    code = f"import sys; sys.stderr.write('e' * {size}); sys.stdout.write('o' * {size} + 'end')"
    ran = await shell.exec_shell(argv=["python3", "-c", code])
    assert ran.exit_code == 0
    for text, cut, total in ((ran.stdout, ran.stdout_cut, size + 3), (ran.stderr, ran.stderr_cut, size)):
        head, marker, tail = text.split("\n")
        assert marker == f"[… {cut} bytes cut …]"
        assert len(head) + len(tail) + cut == total
    assert ran.stdout.endswith("oend")


async def test_output_without_end_ends_the_command(shell: ShellTools) -> None:
    with pytest.raises(
        ExecutionFailed, match=r"it wrote more than 64 MiB, and was ended\n--- stdout so far ---\ny\n"
    ):
        await shell.exec_shell(argv=["yes"], timeout=60)


@pytest.mark.requirement("K-17", "BC-48")
async def test_at_its_deadline_the_whole_tree_is_killed(shell: ShellTools, workspace: Path) -> None:
    code = """
import os, time
open("first", "w").write(str(os.getpid()))
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("second", "w").write(str(os.getpid()))
        print("from below", flush=True)
    time.sleep(600)
time.sleep(600)
"""
    with pytest.raises(
        ExecutionFailed, match=r"not done after 1\.5 s, and was ended\n--- stdout so far ---\nfrom below"
    ):
        await shell.exec_shell(argv=["python3", "-c", code], timeout=1.5)
    await until_gone([int((workspace / name).read_text()) for name in ("first", "second")])


async def test_what_a_command_leaves_behind_ends_with_it(shell: ShellTools, workspace: Path) -> None:
    code = """
import os, time
if os.fork() == 0:
    os.setsid()
    open("left", "w").write(str(os.getpid()))
    time.sleep(600)
while not os.path.exists("left") or not open("left").read():
    time.sleep(0.01)
"""
    ran = await shell.exec_shell(argv=["python3", "-c", code])
    assert ran.exit_code == 0
    await until_gone([int((workspace / "left").read_text())])


async def test_a_cancelled_call_leaves_nothing_running(shell: ShellTools, workspace: Path) -> None:
    code = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    call = asyncio.get_running_loop().create_task(shell.exec_shell(argv=["python3", "-c", code]))
    await until(lambda: (workspace / "pid").exists() and bool((workspace / "pid").read_text()))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(call, PATIENCE)
    await until_gone([int((workspace / "pid").read_text())])


async def test_nothing_of_a_call_stays_open(shell: ShellTools) -> None:
    async def calls() -> None:
        await shell.exec_shell(argv=["true"])
        await shell.exec_shell(command="ls nothing | wc")
        with pytest.raises(ExecutionFailed):
            await shell.exec_shell(argv=["sleep", "60"], timeout=0.2)

    await calls()
    before = open_descriptors(os.getpid())
    for _ in range(3):
        await calls()
    await until(lambda: open_descriptors(os.getpid()) <= before)


async def test_many_run_at_once(shell: ShellTools) -> None:
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(shell.exec_shell(argv=["echo", str(number)])) for number in range(12)]
    assert [call.result().stdout for call in calls] == [f"{number}\n" for number in range(12)]


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_words_of_a_megabyte_arrive_on_either_event_loop(
    new_loop: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path
) -> None:
    async def life() -> None:
        guardian = Guardian()
        try:
            shell = ShellTools(tmp_path, CommandPolicy(), guardian)
            ran = await shell.exec_shell(argv=["echo", *["x" * 100_000] * 10])
            assert len(ran.stdout) == 1_000_010
        finally:
            await guardian.aclose()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.wait_for(life(), PATIENCE))


# ---- plans: what a shell would do, without one


def in_a_real_shell(text: str, workspace: Path) -> "subprocess.CompletedProcess[str]":
    for path in workspace.iterdir():
        path.unlink()
    return subprocess.run(
        ["sh", "-c", text], cwd=workspace, capture_output=True, text=True, check=False, timeout=PATIENCE
    )


@pytest.mark.parametrize(
    "text",
    [
        "true && echo a || echo b",
        "false && echo a || echo b",
        "false || false || echo c; echo d",
        "true; false",
        "false; true && false",
        "echo x | cat | wc -c",
        "yes | head -3",
        "false | true",
        "true | false",
        "echo out > file; cat file; echo more >> file; wc -l < file",
        "ls nothing 2>&1 | wc -l",
        "ls nothing 2>/dev/null || echo no",
        "ls nothing > both 2>&1; wc -l < both",
        "echo a > one 2>&1 && cat one",
        "echo a >&2 2>/dev/null",
        "cat < nothing",
        "cat < nothing || echo failed",
        "echo a > sub/none; echo b",
        "echo 'a b'  c\\ d | cat",
    ],
)
async def test_a_plan_runs_as_a_shell_would_run_the_text(
    shell: ShellTools, workspace: Path, text: str
) -> None:
    ran = await shell.exec_shell(command=text)
    real = in_a_real_shell(text, workspace)
    assert ran.stdout == real.stdout
    assert bool(ran.stderr) == bool(real.stderr)
    assert (ran.exit_code == 0) == (real.returncode == 0)


async def test_a_program_that_vanished_is_said_so(guardian: Guardian, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "tool"
    tool.write_text("#!/no/such/interpreter\n")
    tool.chmod(0o755)
    workspace = tmp_path / "ws"
    workspace.mkdir()
    shell = ShellTools(workspace, CommandPolicy([str(tool)]), guardian)
    ran = await shell.exec_shell(argv=["tool"])
    assert ran.exit_code == 127
    assert ran.stderr.startswith("plait: ")


async def test_bash_reads_every_approved_command_of_the_corpus_as_we_do(
    guardian: Guardian, tmp_path: Path, corpora: Path
) -> None:
    """In the sandbox: were we wrong, bash would run what it finds in the text."""
    lines = corpora / "nl2bash" / "all.cm"
    if shutil.which("bash") is None or not lines.is_file():
        pytest.skip("needs bash and nl2bash")
    reader = ShellText(shell=False)
    expected, script = [], []
    for line in lines.read_text(encoding="utf-8").splitlines():
        try:
            (pipeline,) = reader.read(line)
        except Unacceptable:
            continue
        expected.append(pipeline.commands[0].argv)
        script.append(f"printf '%s\\0' {line}\nprintf '\\1\\0'\n")
    (tmp_path / "script").write_text("".join(script), encoding="utf-8")
    shell = ShellTools(tmp_path, CommandPolicy(["bash"], shell=True, roots=[tmp_path]), guardian)
    ran = await shell.exec_shell(command="bash script > words", timeout=60)
    assert (ran.exit_code, ran.stderr) == (0, "")
    read = (tmp_path / "words").read_text(encoding="utf-8").split("\1\0")[:-1]
    assert len(expected) > 5000
    assert [tuple(words.split("\0")[:-1]) for words in read] == expected


def test_what_a_launch_costs_is_bounded(tmp_path: Path) -> None:
    """The interpreter's start is most of it; this fails when the launcher begins to import too much."""
    root = Path(__file__).resolve().parents[2] / "src"
    code = BOOT.replace("main()\n", "print(sorted(set(sys.modules)))\n")
    shown = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, f"{root}/"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    modules = {name.strip("'[]\n ") for name in shown.stdout.split(",")}
    assert not modules & {
        "typing",
        "asyncio",
        "ctypes",
        "signal",
        "re",
        "enum",
        "msgspec",
        "contextlib",
        "subprocess",
    }
