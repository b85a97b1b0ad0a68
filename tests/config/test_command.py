"""A command is found as the child would find it, or the message says where we looked."""

from pathlib import Path

import pytest

from plait.config import CommandNotFound, resolve_command
from plait.errors import ConfigError


def program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def refusal(command: str, path: str, cwd: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        resolve_command(command, path, cwd)
    assert isinstance(caught.value, CommandNotFound)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_bare_name_is_found_in_the_first_folder_that_has_it(tmp_path: Path) -> None:
    first, second = program(tmp_path / "a" / "tool"), program(tmp_path / "b" / "tool")
    assert resolve_command("tool", f"{tmp_path / 'none'}:{first.parent}:{second.parent}", None) == str(first)


def test_a_file_that_is_not_executable_is_passed_over(tmp_path: Path) -> None:
    program(tmp_path / "a" / "tool", 0o644)
    found = program(tmp_path / "b" / "tool")
    assert resolve_command("tool", f"{tmp_path / 'a'}:{tmp_path / 'b'}", None) == str(found)


def test_a_path_is_relative_to_the_folder_of_the_child(tmp_path: Path) -> None:
    found = program(tmp_path / "bin" / "tool")
    assert resolve_command("./bin/tool", "", str(tmp_path)) == str(found)
    assert resolve_command("tool", "bin", str(tmp_path)) == str(found)
    assert resolve_command(str(found), "", None) == str(found)


def test_an_empty_entry_of_the_path_is_not_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "tool")
    monkeypatch.chdir(tmp_path)
    assert refusal("tool", "::") == "command 'tool' is not on PATH: PATH is empty"


def test_a_missing_command_says_where_we_looked() -> None:
    text = refusal("no-such-tool", "/one:/two:/one")
    assert text == "command 'no-such-tool' is not on PATH: looked in /one, /two"


def test_a_long_path_is_shortened() -> None:
    text = refusal("no-such-tool", ":".join(f"/folder{number}" for number in range(20)))
    assert text.endswith("/folder4, /folder5 and 14 more")


def test_a_file_that_is_there_and_not_executable_is_told(tmp_path: Path) -> None:
    there = program(tmp_path / "tool", 0o644)
    assert f"{there} is not executable" in refusal("tool", str(tmp_path))
    assert f"{there} is not executable" in refusal(str(there), "")


def test_a_program_that_is_only_off_the_path_is_told() -> None:
    assert "/bin/sh is there, but not on PATH" in refusal("sh", "/nowhere")


def test_what_is_no_program_is_told(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    assert "is a folder" in refusal(str(tmp_path), "")
    assert "does not exist" in refusal("./tool", "", str(tmp_path))
    assert "is a link to nothing" in refusal("link", str(tmp_path))
    assert "write ${userHome}" in refusal("~/bin/tool", "")
    assert "empty" in refusal("", "/bin")
