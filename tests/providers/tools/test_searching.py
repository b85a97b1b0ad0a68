import os
from pathlib import Path

import pytest

from plait.providers.tools import searching
from plait.providers.tools.beneath import Outside
from plait.providers.tools.searching import Found, Search, matches
from plait.providers.tools.workspace import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "one").write_text("needle\nhay\nneedle\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "two").write_text("hay\n")
    (tmp_path / "again").symlink_to(".")
    return tmp_path


def search(root: Path, pattern: str = "*", words: str = "", most: int = 10, seconds: float = 60) -> Search:
    return Search(Workspace(root), pattern, words, most=most, seconds=seconds)


def test_links_are_not_followed_so_that_a_search_ends(root: Path) -> None:
    assert search(root).run(".") == [Found("one"), Found("sub/two")]
    assert search(root).run("again/sub") == [Found("again/sub/two")]
    assert search(root).run(str(root / "sub")) == [Found("sub/two")]


def test_words_are_found_with_their_lines(root: Path) -> None:
    assert search(root, words="needle").run(".") == [Found("one", 1, "needle"), Found("one", 3, "needle")]


def test_a_search_whose_time_is_up_stops(root: Path) -> None:
    late = search(root, seconds=-1)
    assert late.run(".") == []
    assert late.stopped == "the time was up"


def test_a_search_that_nobody_waits_for_stops(root: Path) -> None:
    given_up = search(root)
    given_up.cancelled = True
    assert given_up.run(".") == []


def test_a_search_that_found_enough_stops(root: Path) -> None:
    enough = search(root, most=1)
    assert enough.run(".") == [Found("one")]
    assert enough.stopped == "1 were found"


def test_a_search_that_has_seen_too_many_files_stops(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_FILES", 1)
    busy = search(root)
    assert busy.run(".") == [Found("one")]
    assert busy.stopped == "1 files were seen"


def test_what_is_no_file_or_too_large_or_no_text_is_passed_over(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "MOST_BYTES", 50)
    os.mkfifo(root / "pipe")
    (root / "large").write_text("needle" * 10)
    (root / "binary").write_bytes(b"needle\0")
    assert {hit.path for hit in search(root, words="needle").run(".")} == {"one"}


def test_where_it_starts_must_be_there_and_inside(root: Path) -> None:
    with pytest.raises(FileNotFoundError):
        search(root).run("missing")
    with pytest.raises(Outside):
        search(root).run("..")


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("a/b/c", "a/**/c", True),
        ("a/c", "a/**/c", True),
        ("a/b/c", "**", True),
        ("a/b/c", "a/*", False),
        ("a/b/c", "*/b/[a-c]", True),
        ("a/b/c", "**/b", False),
        ("", "**", True),
        ("a/" * 40 + "b", "**/a/" * 20 + "c", False),
    ],
)
def test_a_glob_fits_part_by_part(path: str, pattern: str, fits: bool) -> None:
    assert matches(path.split("/"), pattern.split("/")) is fits
