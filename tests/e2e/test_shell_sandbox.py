"""What a command cannot do although its program is allowed: the policy may be wrong, the sandbox holds."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from plait.errors import ExecutionFailed
from plait.pipeline.commands import CommandPolicy
from plait.providers.tools.landlock import Kernel
from plait.providers.tools.shell import Ran, ShellLimits, ShellTools
from plait.upstream.process import Guardian

VERSION = Kernel().version()
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(VERSION == 0, reason="this kernel has no Landlock; `plait doctor` says so"),
]

HOME = os.path.expanduser("~")
ALLOW = "touch cp mv ln rm tee cat ls mkdir mkfifo mknod grep head kill truncate sleep"


class Stage:
    """A workspace, and beside it what must stay as it is."""

    def __init__(self, root: Path, guardian: Guardian) -> None:
        self.root = root
        self.workspace, self.outside = root / "ws", root / "outside"
        for folder in (self.workspace, self.outside):
            folder.mkdir()
        self.canary = self.outside / "canary"
        self.canary.write_text("alive")
        self._guardian = guardian
        self.policy = CommandPolicy([*ALLOW.split(), "python3 -c", "sh -c"], shell=True, roots=[root])

    async def run(self, *argv: str, network: bool = False, limits: ShellLimits | None = None) -> Ran:
        shell = ShellTools(self.workspace, self.policy, self._guardian, network=network, limits=limits)
        return await shell.exec_shell(argv=list(argv))

    def unharmed(self) -> bool:
        return os.listdir(self.outside) == ["canary"] and self.canary.read_text() == "alive"


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    guardian = Guardian()
    yield Stage(tmp_path, guardian)
    await guardian.aclose()


@pytest.mark.parametrize(
    "argv",
    [
        ["touch", "{outside}/new"],
        ["cp", "/etc/hostname", "{outside}/new"],
        ["cp", "/etc/hostname", "{canary}"],
        ["mv", "{canary}", "here"],
        ["ln", "{canary}", "here"],
        ["rm", "-f", "{canary}"],
        ["rm", "-rf", "{outside}"],
        ["tee", "{canary}"],
        ["tee", "-a", "{canary}"],
        ["truncate", "-s", "0", "{canary}"],
        ["mkdir", "{outside}/new"],
        ["mkfifo", "{outside}/new"],
        ["sh", "-c", "echo x > {canary}"],
        ["sh", "-c", "cd {outside} && echo x > new"],
        ["sh", "-c", "ln -s {outside} link && echo x > link/new"],
        ["sh", "-c", "echo x > /proc/self/cwd/../outside/new"],
        ["python3", "-c", "import os; os.rename('{canary}', '{outside}/new')"],
        ["python3", "-c", "import os; os.link('{canary}', 'here')"],
        ["python3", "-c", "import os; os.symlink('x', '{outside}/new')"],
        ["touch", "/tmp/../{outside}/new"],
    ],
)
async def test_nothing_outside_can_be_written(stage: Stage, argv: list[str]) -> None:
    places = {"outside": str(stage.outside), "canary": str(stage.canary)}
    ran = await stage.run(*[word.format(**places) for word in argv])
    assert ran.exit_code != 0
    assert stage.unharmed()


async def test_a_redirection_that_the_policy_let_through_is_refused_when_it_is_opened(stage: Stage) -> None:
    shell = ShellTools(stage.workspace, stage.policy, stage._guardian)  # whose roots are too wide
    ran = await shell.exec_shell(command=f"cat /etc/hostname > {stage.canary}")
    assert ran.exit_code == 126
    assert "Permission denied" in ran.stderr
    assert stage.unharmed()


async def test_inside_the_workspace_everything_works(stage: Stage) -> None:
    script = "mkdir -p a/b && echo x > a/b/c && mv a/b/c a/d && ln a/d e && ln -s e f && cat f && rm -r a e f"
    ran = await stage.run("sh", "-c", script)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "x\n", "")


async def test_files_beside_the_workspace_cannot_be_read(stage: Stage) -> None:
    ran = await stage.run("cat", str(stage.canary))
    assert ran.exit_code != 0
    assert "alive" not in ran.stdout
    assert (await stage.run("ls", str(stage.outside))).exit_code != 0
    assert (await stage.run("ls", HOME)).exit_code != 0


async def test_our_own_secrets_cannot_be_read_from_proc(stage: Stage) -> None:
    for name in ("environ", "mem", "fd/0", "root/etc/hostname"):
        assert (await stage.run("cat", f"/proc/{os.getpid()}/{name}")).exit_code != 0, name


async def test_folders_can_be_added(stage: Stage) -> None:
    shell = ShellTools(stage.workspace, stage.policy, stage._guardian, readable=[stage.outside])
    assert (await shell.exec_shell(argv=["cat", str(stage.canary)])).stdout == "alive"
    assert (await shell.exec_shell(argv=["tee", str(stage.canary)])).exit_code != 0
    shell = ShellTools(stage.workspace, stage.policy, stage._guardian, writable=[stage.outside])
    assert (await shell.exec_shell(argv=["rm", str(stage.canary)])).exit_code == 0


@pytest.mark.skipif(VERSION < 6, reason="signals are held from version 6 on")
async def test_no_process_outside_can_be_signalled(stage: Stage) -> None:
    ran = await stage.run("kill", "-0", str(os.getpid()))
    assert ran.exit_code != 0


@pytest.mark.skipif(VERSION < 4, reason="the network is held from version 4 on")
async def test_the_network_is_reached_only_with_permission(stage: Stage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5); print('connected')"
        refused = await stage.run("python3", "-c", code)
        assert refused.exit_code != 0
        assert "Permission denied" in refused.stderr
        assert (await stage.run("python3", "-c", code, network=True)).stdout == "connected\n"
        listening = "import socket; socket.create_server(('127.0.0.1', 0))"
        assert (await stage.run("python3", "-c", listening)).exit_code != 0


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_no_rights_can_be_gained_and_few_are_kept(stage: Stage) -> None:
    ran = await stage.run("grep", "-E", "^(NoNewPrivs|CapEff|CapBnd):", "/proc/self/status")
    status = dict(line.split(":\t") for line in ran.stdout.splitlines())
    assert status["NoNewPrivs"] == "1"
    assert int(status["CapEff"], 16) & ~0b11111 == 0
    if os.geteuid() == 0:
        assert int(status["CapBnd"], 16) & ~0b11111 == 0
    assert (await stage.run("mknod", "disk", "b", "8", "0")).exit_code != 0


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_resources_are_limited(stage: Stage) -> None:
    limits = ShellLimits(memory=256 * 1024**2, file_size=100_000, open_files=64)
    shown = (await stage.run("cat", "/proc/self/limits", limits=limits)).stdout
    assert "Max core file size        0 " in shown
    assert "Max open files            64 " in shown
    hungry = await stage.run("python3", "-c", "x = bytearray(10**9)", limits=limits)
    assert "MemoryError" in hungry.stderr
    big = await stage.run("sh", "-c", "head -c 200000 /dev/zero > big", limits=limits)
    assert big.exit_code != 0
    assert (stage.workspace / "big").stat().st_size <= 100_000


async def test_a_command_that_spins_is_ended_with_its_deadline(stage: Stage) -> None:
    shell = ShellTools(stage.workspace, stage.policy, stage._guardian)
    with pytest.raises(ExecutionFailed, match=r"not done after 0\.5 s"):
        await asyncio.wait_for(shell.exec_shell(argv=["sh", "-c", "while :; do :; done"], timeout=0.5), 10)
