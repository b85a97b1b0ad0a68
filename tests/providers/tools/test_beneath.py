import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from plait.providers.tools.beneath import OpenBeneath, Outside, best_way, by_the_kernel, step_by_step

LINKS = {
    "to-file": "file",
    "to-folder": "src",
    "up-and-down": "src/../src/deep/../main",
    "out": "../beside",
    "absolute": "/etc",
    "loop": "loop",
    "chain": "out",
    "dangling": "nowhere",
    "dangling-out": "../nowhere",
    "src/out": "../../beside",
    "src/deep/up": "..",
}
READ = os.O_RDONLY | os.O_NONBLOCK


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    """An open folder with a file, folders, and links of every kind."""
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "main").touch()
    inside = tmp_path / "inside"
    (inside / "src" / "deep").mkdir(parents=True)
    (inside / "file").touch()
    (inside / "src" / "main").touch()
    for name, target in LINKS.items():
        (inside / name).symlink_to(target)
    descriptor = os.open(inside, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


def needs_openat2() -> None:
    if best_way() is step_by_step:
        pytest.skip("this system has no openat2")


def opened(way: OpenBeneath, folder: int, path: str, flags: int) -> object:
    """Which file it is, or what is wrong with the path."""
    try:
        descriptor = way(folder, path, flags)
    except Outside:
        return "outside"
    except OSError as problem:
        return problem.errno
    state = os.fstat(descriptor)
    os.close(descriptor)
    return state.st_dev, state.st_ino


@pytest.mark.parametrize("flags", [READ, READ | os.O_DIRECTORY, READ | os.O_NOFOLLOW])
def test_both_ways_agree_on_every_path(folder: int, flags: int) -> None:
    needs_openat2()
    parts = ["..", ".", "file", "src", "deep", "missing", *LINKS]
    paths = [
        *parts,
        *(f"{a}/{b}" for a in parts for b in parts),
        *(f"{a}/{b}/main" for a in parts for b in parts),
    ]
    paths += [*(f"{path}/" for path in parts), "/", "/file", "src/" + "../src/" * 100 + "main", "./" * 3000]
    kernel = by_the_kernel()
    for path in paths:
        assert opened(step_by_step, folder, path, flags) == opened(kernel, folder, path, flags), path


def test_steps_leave_no_directory_open(folder: int) -> None:
    before = len(os.listdir("/dev/fd"))
    for path in ("src/deep/up/main", "src/deep/../../file", "src/deep/missing", "src/out/main", "loop"):
        opened(step_by_step, folder, path, READ)
    assert len(os.listdir("/dev/fd")) == before


def test_a_path_does_not_end_at_a_nul(folder: int) -> None:
    """To C it would."""
    for way in (best_way(), step_by_step):
        with pytest.raises(ValueError, match="null"):
            way(folder, "file\0/../../beside/main", READ)


def test_an_open_file_is_not_inherited_by_programs(folder: int) -> None:
    for way in (best_way(), step_by_step):
        for path in ("file", "."):
            descriptor = way(folder, path, READ)
            assert not os.get_inheritable(descriptor)
            os.close(descriptor)
