import contextlib
import os
import shutil
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait.providers.tools.beneath import OpenBeneath, Outside, best_way, by_the_kernel, step_by_step
from plait.providers.tools.workspace import FOLDER, NotPlain, Workspace

SECRET = b"the canary"
MOST = 1024 * 1024


@pytest.fixture(params=["kernel", "steps"])
def way(request: pytest.FixtureRequest) -> OpenBeneath:
    """Both ways to open have to promise the same."""
    if request.param == "steps":
        return step_by_step
    if sys.platform != "linux" or best_way() is step_by_step:
        pytest.skip("this system has no openat2")
    return by_the_kernel()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace `a`, and things beside it that nobody may reach from there."""
    inside = tmp_path / "a"
    (inside / "src" / "deep").mkdir(parents=True)
    (inside / "file").write_bytes(b"plain")
    (inside / "src" / "main").write_bytes(b"main")
    (tmp_path / "a-evil").mkdir()
    (tmp_path / "a-evil" / "canary").write_bytes(SECRET)
    (tmp_path / "canary").write_bytes(SECRET)
    for name, target in LINKS.items():
        os.symlink(target.replace("TOP", str(tmp_path)), inside / name)
    return tmp_path


LINKS = {
    "to-file": "file",
    "to-folder": "src",
    "up-and-down": "src/../src/deep/../main",
    "to-canary": "../canary",
    "to-evil": "../a-evil",
    "absolute": "TOP/canary",
    "absolute-inside": "TOP/a/file",
    "loop": "loop",
    "chain": "to-evil",
    "dangling": "nowhere",
    "dangling-out": "../new-canary",
    "src/out": "../../a-evil",
    "proc": "/proc/self/root",
}


def space(place: Path, way: OpenBeneath) -> Workspace:
    return Workspace(place / "a", way)


def outside(place: Path) -> dict[str, bytes]:
    """Everything beside the workspace."""
    files = [path for path in place.rglob("*") if path.is_file() and (place / "a") not in path.parents]
    return {str(path): path.read_bytes() for path in files}


@pytest.mark.requirement("BC-47")
@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("file", b"plain"),
        ("./src//main", b"main"),
        ("src/../file", b"plain"),
        ("to-file", b"plain"),
        ("to-folder/main", b"main"),
        ("to-folder/../file", b"plain"),
        ("up-and-down", b"main"),
        ("TOP/a/src/main", b"main"),
        ("//TOP/a/file", b"plain"),
    ],
)
def test_paths_inside_are_read(place: Path, way: OpenBeneath, path: str, content: bytes) -> None:
    assert space(place, way).read(path.replace("TOP", str(place)), MOST) == content


@pytest.mark.requirement("BC-47")
@pytest.mark.parametrize(
    "path",
    [
        "../canary",
        "src/../../canary",
        "to-canary",
        "to-evil/canary",
        "chain/canary",
        "absolute",
        "absolute-inside",
        "src/out/canary",
        "to-folder/out/canary",
        "/etc/passwd",
        "/",
        "..",
        "TOP/a-evil/canary",
        "TOP/canary",
        "TOP/a/../canary",
        "TOP/a/../a-evil/canary",
        "proc/etc/passwd",
    ],
)
def test_paths_that_lead_out_are_refused_for_reading_and_writing(
    place: Path, way: OpenBeneath, path: str
) -> None:
    before = outside(place)
    workspace = space(place, way)
    given_path = path.replace("TOP", str(place))
    with pytest.raises(Outside):
        workspace.read(given_path, MOST)
    with pytest.raises((Outside, IsADirectoryError)):
        workspace.write(given_path, b"overwritten")
    assert outside(place) == before


def test_a_workspace_under_another_name_of_its_own_is_understood(tmp_path: Path, way: OpenBeneath) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("x")
    (tmp_path / "alias").symlink_to("real")
    workspace = Workspace(tmp_path / "alias", way)
    assert workspace.read(str(tmp_path / "alias" / "file"), MOST) == b"x"
    assert workspace.read(str(tmp_path / "real" / "file"), MOST) == b"x"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("missing", FileNotFoundError),
        ("missing/../file", FileNotFoundError),
        ("dangling", FileNotFoundError),
        ("file/below", NotADirectoryError),
        ("file/", NotADirectoryError),
        ("src", IsADirectoryError),
        (".", IsADirectoryError),
        ("", IsADirectoryError),
        ("n" * 300, OSError),
        ("d/" * 3000, OSError),
        ("loop", OSError),
        ("nul\0byte", ValueError),
        ("half\ud800", ValueError),
    ],
)
def test_what_is_not_there_or_no_file_is_an_error_of_its_own(
    place: Path, way: OpenBeneath, path: str, problem: type[Exception]
) -> None:
    with pytest.raises(problem):
        space(place, way).read(path, MOST)


def test_a_file_is_read_up_to_its_limit_and_no_byte_more(place: Path, way: OpenBeneath) -> None:
    assert space(place, way).read("file", 5) == b"plain"
    with pytest.raises(OSError, match="File too large"):
        space(place, way).read("file", 4)


def test_pipes_devices_and_sockets_are_refused_at_once(place: Path, way: OpenBeneath) -> None:
    workspace = space(place, way)
    os.mkfifo(place / "a" / "pipe")
    with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(place / "a"):
        listener.bind("socket")
    names = ["pipe", "socket"]
    with contextlib.suppress(PermissionError):
        os.mknod(place / "a" / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        names.append("device")
    for name in names:
        with pytest.raises((NotPlain, OSError)):
            workspace.read(name, MOST)
        with pytest.raises(NotPlain):
            workspace.write(name, b"x")
        assert not stat.S_ISREG((place / "a" / name).stat().st_mode)


# ---- writing


def test_a_new_file_is_made_with_its_folders(place: Path, way: OpenBeneath) -> None:
    assert space(place, way).write("new/folders/file", b"x") is True
    assert (place / "a/new/folders/file").read_bytes() == b"x"
    assert space(place, way).write("to-folder/new", b"y") is True
    assert (place / "a/src/new").read_bytes() == b"y"


def test_an_old_file_is_replaced_and_keeps_its_mode(place: Path, way: OpenBeneath) -> None:
    script = place / "a/file"
    script.chmod(0o751)
    assert space(place, way).write("file", b"new") is False
    assert script.read_bytes() == b"new"
    assert stat.S_IMODE(script.stat().st_mode) == 0o751
    assert not [name for name in os.listdir(place / "a") if name.startswith(".plait-")]


def test_a_new_file_has_the_mode_that_the_mask_leaves_it(place: Path, way: OpenBeneath) -> None:
    mask = os.umask(0o027)
    try:
        space(place, way).write("new", b"x")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((place / "a/new").stat().st_mode) == 0o640


def test_a_link_is_written_through_and_stays_a_link(place: Path, way: OpenBeneath) -> None:
    space(place, way).write("to-file", b"new")
    assert (place / "a/file").read_bytes() == b"new"
    assert os.readlink(place / "a/to-file") == "file"
    space(place, way).write("dangling", b"made")
    assert (place / "a/nowhere").read_bytes() == b"made"


@pytest.mark.parametrize(
    "path", ["to-canary", "absolute", "dangling-out", "src/out/new", "chain/new", "../new"]
)
def test_nothing_is_made_outside(place: Path, way: OpenBeneath, path: str) -> None:
    before = outside(place)
    with pytest.raises(Outside):
        space(place, way).write(path, b"x")
    assert outside(place) == before


def test_whoever_reads_meanwhile_sees_the_old_file_or_the_new_one(place: Path, way: OpenBeneath) -> None:
    workspace = space(place, way)
    contents = [bytes([letter]) * 100_000 for letter in b"abc"]
    workspace.write("shared", contents[0])
    with (place / "a/shared").open("rb") as reader:
        workspace.write("shared", contents[1])
        assert reader.read() == contents[0]
    assert workspace.read("shared", MOST) == contents[1]


def test_another_name_of_the_same_file_outside_is_not_written_through(place: Path, way: OpenBeneath) -> None:
    os.link(place / "canary", place / "a/hard")
    space(place, way).write("hard", b"mine now")
    assert (place / "canary").read_bytes() == SECRET


def test_a_failed_write_leaves_the_old_file_and_no_draft(place: Path, way: OpenBeneath) -> None:
    before = sorted(os.listdir(place / "a"))
    with pytest.raises(OSError, match="too long"):
        space(place, way).write("n" * 300, b"x")
    with pytest.raises(IsADirectoryError):
        space(place, way).write("src", b"x")
    assert sorted(os.listdir(place / "a")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_file_is_not_replaced(place: Path, way: OpenBeneath) -> None:
    (place / "a/file").chmod(0o444)
    with pytest.raises(PermissionError):
        space(place, way).write("file", b"x")


# ---- races


@contextlib.contextmanager
def swapping(place: Path, first: str, second: str) -> Iterator[None]:
    """All the time, `a/spot` is one thing, then the other, then the first again."""
    stop = threading.Event()
    spot = place / "a/spot"

    def swap() -> None:
        while not stop.is_set():
            for source in (first, second):
                draft = place / "a/draft"
                os.symlink(source, draft)
                os.rename(draft, spot)

    os.symlink(first, spot)
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_link_that_is_swapped_meanwhile_never_leads_out(place: Path, way: OpenBeneath) -> None:
    workspace = space(place, way)
    (place / "a/src/canary").write_bytes(b"inside")
    before = outside(place)
    refused = read = 0
    with swapping(place, "src", "../a-evil"):
        for number in range(50_000):
            try:
                assert workspace.read("spot/canary", MOST) == b"inside"
                workspace.write("spot/written" if number % 2 else "spot/canary", b"inside")
                read += 1
            except Outside:
                refused += 1
            except OSError:
                pass
            if min(read, refused) > 100:
                break
    assert min(read, refused) > 0
    assert outside(place) == before


def test_a_folder_that_is_swapped_for_a_link_meanwhile_never_leads_out(place: Path, way: OpenBeneath) -> None:
    workspace = space(place, way)
    before = outside(place)
    spot, stop = place / "a/folder", threading.Event()

    def swap() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                spot.mkdir()
                (spot / "canary").write_bytes(b"inside")
            with contextlib.suppress(OSError):
                os.rename(spot, place / "a/aside")
                os.symlink("../a-evil", spot)
            with contextlib.suppress(OSError):
                os.unlink(spot)
            shutil.rmtree(place / "a/aside", ignore_errors=True)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(1000):
            with contextlib.suppress(OSError, Outside):
                assert workspace.read("folder/canary", MOST) in (b"inside", b"")
            with contextlib.suppress(OSError, Outside):
                workspace.write("folder/written", b"x")
    finally:
        stop.set()
        thread.join()
    assert outside(place) == before


# ---- whatever comes

PARTS = st.sampled_from(
    ["..", ".", "", "file", "src", "deep", "a", "a-evil", "canary", "new", "TOP", *(name for name in LINKS)]
)
PATHS = st.one_of(
    st.lists(PARTS, max_size=7).map("/".join),
    st.lists(PARTS, max_size=6).map(lambda parts: "/" + "/".join(parts)),
    st.lists(PARTS, max_size=5).map(lambda parts: "TOP/a/" + "/".join(parts)),
    st.lists(PARTS, max_size=5).map(lambda parts: "TOP/" + "/".join(parts)),
    st.text(max_size=20),
)


@pytest.mark.requirement("BC-47")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=PATHS)
def test_no_path_whatever_it_is_reads_or_writes_outside(place: Path, way: OpenBeneath, path: str) -> None:
    """The fixture is shared by all examples: what one of them breaks, a later one would show too."""
    workspace = space(place, way)
    before = outside(place)
    spelled = path.replace("TOP", str(place))
    with contextlib.suppress(OSError, Outside, NotPlain, ValueError):
        assert SECRET not in workspace.read(spelled, MOST)
    with contextlib.suppress(OSError, Outside, ValueError), workspace.open(spelled, FOLDER) as folder:
        assert within(place, folder)
    with contextlib.suppress(OSError, Outside, NotPlain, ValueError):
        workspace.write(spelled, b"written")
    assert outside(place) == before


def within(place: Path, folder: int) -> bool:
    state = os.fstat(folder)
    inside = [place / "a", *(path for path in (place / "a").rglob("*") if path.is_dir())]
    return any(os.path.samestat(state, path.stat()) for path in inside)
