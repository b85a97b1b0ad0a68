from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from plait.errors import ExecutionFailed, PermissionDenied
from plait.pipeline.commands import CommandPolicy
from plait.providers.function import FunctionTool
from plait.providers.tools.shell import ShellTools
from plait.upstream.process import Guardian


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncIterator[ShellTools]:
    """Nothing here starts a process: the guardian would be the first."""
    guardian = Guardian()
    yield ShellTools(tmp_path, CommandPolicy(), guardian)
    assert guardian.pid is None
    await guardian.aclose()


@pytest.mark.requirement("S1-T7.8")
async def test_what_the_policy_refuses_starts_no_process(tools: ShellTools) -> None:
    with pytest.raises(
        PermissionDenied, match=r"'exec_shell': \[C-unlisted\] 'rm' is not an allowed command"
    ):
        await tools.exec_shell(command="rm -rf /")
    with pytest.raises(PermissionDenied):
        await tools.exec_shell(argv=["rm", "-rf", "/"])


async def test_one_of_argv_and_command_is_needed(tools: ShellTools) -> None:
    with pytest.raises(ExecutionFailed, match="either argv or command"):
        await tools.exec_shell()
    with pytest.raises(ExecutionFailed, match="either argv or command"):
        await tools.exec_shell(argv=["ls"], command="ls")


@pytest.mark.parametrize("cwd", ["..", "/", "/etc", "nothing", "file", "away", "a\0b", "../sibling", "loop"])
async def test_cwd_is_a_folder_in_the_workspace(tools: ShellTools, tmp_path: Path, cwd: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "away").symlink_to("/usr")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ExecutionFailed, match="is not a folder in the workspace"):
        await tools.exec_shell(argv=["ls"], cwd=cwd)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
async def test_a_timeout_is_a_time(tools: ShellTools, timeout: float) -> None:
    with pytest.raises(ExecutionFailed, match="above 0"):
        await tools.exec_shell(argv=["ls"], timeout=timeout)


@pytest.mark.requirement("BC-46")
async def test_as_a_tool_it_describes_its_parameters(tools: ShellTools) -> None:
    definition = FunctionTool(tools.exec_shell).definition
    assert definition.name == "exec_shell"
    assert definition.description.startswith("Run a command in the workspace")
    properties = definition.input_schema["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == ["argv", "command", "cwd", "timeout"]
    assert all("description" in each for each in properties.values())
