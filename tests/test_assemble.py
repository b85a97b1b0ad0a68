"""Find the provider or server object that a configuration names: objects of somebody's own modules."""

import itertools
import sys
from pathlib import Path

import pytest

from plait.config.problem import Where
from plait.errors import Unmountable
from plait.loading import load_provider

_numbers = itertools.count()

SOURCE = """
from plait import FunctionProvider

provider = FunctionProvider("notes", [])
make = lambda: provider
number = 7

def fails():
    raise SystemExit(3)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """One that nobody has imported yet, beside a configuration file."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"assembled_{next(_numbers)}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    return name


@pytest.mark.parametrize("name", ["provider", "make"])
def test_a_module_beside_the_file_is_found_and_the_search_goes_on_there(
    name: str, module: str, tmp_path: Path
) -> None:
    before = list(sys.path)
    where = Where(str(tmp_path / "plait.json"), 1, 1)
    assert namespace_of(f"{module}:{name}", where) == "notes"
    assert namespace_of(f"{module}:{name}", where) == "notes"
    assert sys.path[: len(before)] == before, "what is installed goes before"
    assert sys.path.count(str(tmp_path)) == 1


def test_without_a_file_there_is_the_current_folder(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert namespace_of(f"{module}:provider") == "notes"


def namespace_of(place: str, where: Where | None = None) -> object:
    return getattr(load_provider(place, where), "namespace", None)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("number", "or a server object of fastmcp or mcp, but of type int"),
        ("fails", "SystemExit: 3"),
        ("missing", "has no attribute 'missing'"),
    ],
)
def test_whatever_is_wrong_with_it_is_one_kind_of_error(
    name: str, words: str, module: str, tmp_path: Path
) -> None:
    with pytest.raises(Unmountable) as caught:
        load_provider(f"{module}:{name}", Where(str(tmp_path / "plait.json"), 1, 1))
    assert words in str(caught.value)
