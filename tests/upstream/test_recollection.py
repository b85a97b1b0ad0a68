from pathlib import Path

from plait.upstream.recollection import Recollection, instructions_folder


def test_what_was_said_last_time_is_known_the_next_time(tmp_path: Path) -> None:
    Recollection(tmp_path / "new", ("fs", "npx")).remember("Use read_file first.\nThen think.")
    assert Recollection(tmp_path / "new", ("fs", "npx")).recall() == "Use read_file first.\nThen think."
    assert Recollection(tmp_path / "new", ("fs", "npx", "-y")).recall() == ""


def test_a_server_that_says_nothing_any_more_is_believed(tmp_path: Path) -> None:
    said = Recollection(tmp_path, ("fs",))
    said.remember("old")
    said.remember("")
    assert said.recall() == ""


def test_nothing_of_the_command_is_readable_from_the_outside(tmp_path: Path) -> None:
    Recollection(tmp_path / "x", ("secret-token",)).remember("y")
    (file,) = (tmp_path / "x").iterdir()
    assert "secret" not in file.name
    assert file.stat().st_mode & 0o077 == 0


def test_a_cache_that_cannot_be_used_is_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    said = Recollection(tmp_path / "file", ("fs",))
    said.remember("x")
    assert said.recall() == ""


def test_the_folder_is_the_users_cache() -> None:
    assert instructions_folder({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/plait/instructions")
    assert instructions_folder({"HOME": "/h"}) == Path("/h/.cache/plait/instructions")
