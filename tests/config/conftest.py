"""Read a configuration that a test writes down, as `plait.json` in an empty folder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from plait.config import Config, load


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Config]:
    """A function from a file's text, and the variables that are set, to what it says."""
    monkeypatch.chdir(tmp_path)

    def read(text: str, **environ: str) -> Config:
        Path("plait.json").write_text(text, encoding="utf-8")
        return load(["plait.json"], environ)

    return read
