"""exec_shell: run one command in the workspace, without a shell, confined, and never longer than agreed."""

import asyncio
import marshal
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from plait.errors import ExecutionFailed, PermissionDenied
from plait.pipeline.commands import Approved, Command, CommandPolicy, Refusal
from plait.providers.tools.running import Running
from plait.upstream.process import Guardian

DEFAULT_TIMEOUT, MAX_TIMEOUT = 30.0, 300.0

# Packages of those names that are only paths: what they import is no burden for a launcher.
BOOT = """\
import sys
for name in ("plait", "plait.providers", "plait.providers.tools"):
    package = sys.modules[name] = type(sys)(name)
    package.__path__ = [sys.argv[1] + name.replace(".", "/")]
from plait.providers.tools.launcher import main
main()
"""


class Ran(Struct, frozen=True, omit_defaults=True):
    """How a command ended, and what it wrote."""

    exit_code: int
    """128 and more: it was ended by the signal of that number less 128."""
    stdout: str
    stderr: str
    duration_ms: int
    stdout_cut: int = 0
    """Bytes that are missing in the middle of stdout."""
    stderr_cut: int = 0


class ShellLimits(Struct, frozen=True):
    """What a command may use up, beside its time."""

    memory: int = 4 * 1024**3
    """Bytes of data of each of its processes."""
    file_size: int = 1024**3
    open_files: int = 1024
    processes: int | None = None
    """How many its user may have in all when it wants one more; root is exempt."""


class ShellTools:
    """The tool that runs commands. Policy and guardian belong to whoever made them.

    Commands write beneath the workspace and `writable`, read those, `readable` and the system, and reach
    the network only with `network`.
    """

    def __init__(
        self,
        workspace: Path,
        policy: CommandPolicy,
        guardian: Guardian,
        *,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        network: bool = False,
        limits: ShellLimits | None = None,
    ) -> None:
        self._workspace = workspace.resolve()
        self._policy = policy
        self._guardian = guardian
        self._readable = [str(path) for path in readable]
        self._writable = [str(path) for path in (self._workspace, *writable)]
        self._network = network
        self._limits = limits or ShellLimits()

    async def exec_shell(
        self,
        argv: Annotated[list[str] | None, 'The command as a list of words: ["ls", "-la"]. Best.'] = None,
        command: Annotated[
            str | None, "Or the command as one line of text; nothing in it is expanded."
        ] = None,
        cwd: Annotated[str, "The folder to run it in, inside the workspace."] = ".",
        timeout: Annotated[
            float, "Seconds until it is ended, with everything it started; at most 300."
        ] = DEFAULT_TIMEOUT,
    ) -> Ran:
        """Run a command in the workspace and return its exit code and output. There is no shell."""
        if (argv is None) == (command is None):
            raise ExecutionFailed("exec_shell needs either argv or command")
        if not timeout > 0:
            raise ExecutionFailed(f"timeout is a number of seconds above 0, not {timeout:g}")
        folder = self._folder(cwd)
        verdict = self._policy.judge(argv if argv is not None else str(command), cwd=folder)
        if isinstance(verdict, Refusal):
            raise PermissionDenied("exec_shell", f"[{verdict.rule}] {verdict.reason}")
        scratch = tempfile.mkdtemp(prefix="plait-")
        try:
            return await self._run(verdict, folder, scratch, min(timeout, MAX_TIMEOUT))
        finally:
            # In a thread: a command may have left very many files there.
            await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)

    def _folder(self, cwd: str) -> Path:
        try:
            folder = (self._workspace / cwd).resolve()
            if folder.is_relative_to(self._workspace) and folder.is_dir():
                return folder
        except (OSError, ValueError, RuntimeError):  # a NUL character, a loop of links
            pass
        raise ExecutionFailed(f"cwd '{cwd}' is not a folder in the workspace")

    async def _run(self, approved: Approved, folder: Path, scratch: str, timeout: float) -> Ran:
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            child = await self._guardian.spawn(_launcher(), _linker_variables(), str(folder))
        except OSError as problem:
            raise ExecutionFailed(f"no process could be started for it: {problem}") from problem
        async with Running(child) as running:
            await running.begin(self._order(approved, scratch, timeout))
            code = await running.finish(started + timeout, f"it was not done after {timeout:g} s")
            duration = round((loop.time() - started) * 1000)
        out, err = running.stdout, running.stderr
        return Ran(code if code >= 0 else 128 - code, out.text, err.text, duration, out.cut, err.cut)

    def _order(self, approved: Approved, scratch: str, timeout: float) -> bytes:
        """What the launcher is told: its limits, its environment, and what to run."""
        environment = {"PATH": self._policy.path, "HOME": scratch, "TMPDIR": scratch, "LANG": "C.UTF-8"}
        pipelines = [(each.when, [_encoded(one) for one in each.commands]) for each in approved.pipelines]
        programs = [one.executable for each in approved.pipelines for one in each.commands]
        return marshal.dumps(
            (
                [*self._readable, *programs],
                [*self._writable, scratch],
                self._resource_limits(timeout),
                self._network,
                {os.fsencode(name): os.fsencode(value) for name, value in environment.items()},
                pipelines,
            )
        )

    def _resource_limits(self, timeout: float) -> dict[str, int]:
        limits = self._limits
        amounts = {
            "RLIMIT_CORE": 0,
            "RLIMIT_CPU": math.ceil(timeout) * (os.cpu_count() or 1),
            "RLIMIT_DATA": limits.memory,
            "RLIMIT_FSIZE": limits.file_size,
            "RLIMIT_NOFILE": limits.open_files,
            "RLIMIT_NPROC": limits.processes,
        }
        return {name: amount for name, amount in amounts.items() if amount is not None}


def _launcher() -> list[str]:
    above = os.path.abspath(__file__).removesuffix("plait/providers/tools/shell.py")
    return [sys.executable, "-I", "-S", "-c", BOOT, above]


def _linker_variables() -> dict[str, str]:
    """What our own interpreter may need to start; the command itself does not get it."""
    return {name: value for name, value in os.environ.items() if name.startswith(("LD_", "DYLD_"))}


def _encoded(command: Command) -> tuple[bytes, list[bytes], list[tuple[int, str, bytes]]]:
    redirections = [
        (each.descriptor, each.operator, os.fsencode(each.target)) for each in command.redirections
    ]
    return os.fsencode(command.executable), [os.fsencode(word) for word in command.argv], redirections
