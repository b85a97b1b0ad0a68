"""What every test may use."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"


@pytest.fixture(autouse=True, scope="session")
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What plait keeps between runs is kept apart from the developer's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def corpora() -> Path:
    """The public test corpora that lie beside the project in our workshop, and not in a user's clone."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip("the test corpora are not beside this clone")
    return folder


@pytest.fixture
def loops() -> int:
    """How much of a long loop to run, in percent: a tenth, or all of it in `make soak`."""
    return 100 if os.environ.get("PLAIT_SOAK") else 10
