import os
from pathlib import Path

import pytest

from plait.pipeline.commands.executables import DEFAULT_PATH, Executables
from plait.pipeline.commands.verdicts import Unacceptable


def program(folder: Path, name: str, mode: int = 0o755) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def refusal(executables: Executables, name: str) -> str:
    with pytest.raises(Unacceptable) as caught:
        executables.find(name)
    assert caught.value.refusal.rule == "C-executable"
    return caught.value.refusal.reason


def test_a_name_is_found_on_the_path_and_freed_of_links(tmp_path: Path) -> None:
    real = program(tmp_path / "real", "tool-1.2")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").symlink_to(real)
    executables = Executables(f"relative::/nowhere:{tmp_path}/bin", [])
    assert executables.find("tool") == str(real)
    assert executables.find(str(tmp_path / "bin" / "tool")) == str(real)


def test_the_default_path_has_the_usual_programs() -> None:
    assert os.path.isabs(Executables(DEFAULT_PATH, []).find("ls"))


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o4755, 0o2755])
def test_a_file_that_others_can_change_or_that_changes_its_user_is_not_run(tmp_path: Path, mode: int) -> None:
    program(tmp_path / "bin", "tool", mode)
    refusal(Executables(f"{tmp_path}/bin", []), "tool")


def test_a_folder_in_which_others_can_replace_files_is_not_trusted(tmp_path: Path) -> None:
    program(tmp_path / "bin", "tool")
    (tmp_path / "bin").chmod(0o777)
    assert "replace" in refusal(Executables(f"{tmp_path}/bin", []), "tool")


def test_nothing_is_run_from_where_commands_may_write(tmp_path: Path) -> None:
    program(tmp_path / "bin", "tool")
    assert "may write" in refusal(Executables(f"{tmp_path}/bin", [tmp_path]), "tool")


def test_another_user_s_file_is_not_run(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(program(tmp_path / "bin", "tool"), 12345, -1)
    assert "another user" in refusal(Executables(f"{tmp_path}/bin", []), "tool")


def test_what_is_missing_or_cannot_be_run_is_not_found(tmp_path: Path) -> None:
    program(tmp_path / "bin", "data", 0o644)
    executables = Executables(f"{tmp_path}/bin", [])
    for name in ("data", "nothing", "..", "", str(tmp_path / "bin")):
        assert "no program" in refusal(executables, name)


def test_a_program_that_changes_is_examined_again(tmp_path: Path) -> None:
    tool = program(tmp_path / "bin", "tool")
    executables = Executables(f"{tmp_path}/bin", [])
    assert executables.find("tool") == str(tool)
    tool.chmod(0o777)
    refusal(executables, "tool")
    tool.unlink()
    refusal(executables, "tool")
    program(tmp_path / "bin", "tool")
    assert executables.find("tool") == str(tool)
