import asyncio
import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plait.errors import ExecutionFailed, PermissionDenied, ToolError
from plait.providers.function import FunctionProvider
from plait.providers.tools.files import FileTools
from plait.providers.tools.workspace import Workspace

SECRET = "the canary"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "canary").write_text(SECRET)
    (tmp_path / "work-evil").mkdir()
    (tmp_path / "work-evil" / "canary").write_text(SECRET)
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "notes.txt").write_text("one\ntwo\nthree\n")
    (folder / "src" / "main.py").write_text("print('hello')\n")
    (folder / "out").symlink_to("../work-evil")
    return folder


@pytest.fixture
def tools(root: Path) -> FileTools:
    return FileTools(Workspace(root), most_bytes=10_000)


def reason(caught: pytest.ExceptionInfo[ToolError], root: Path) -> str:
    """The words; never with a path of the machine's in them."""
    assert str(root.parent) not in str(caught.value)
    return str(caught.value)


# ---- reading


@pytest.mark.requirement("S1-014", "BC-46")
async def test_a_file_is_read(tools: FileTools, root: Path) -> None:
    assert await tools.read_file("notes.txt") == "one\ntwo\nthree\n"
    assert await tools.read_file(str(root / "src" / "main.py")) == "print('hello')\n"


async def test_some_lines_are_read_and_the_next_is_named(tools: FileTools) -> None:
    assert await tools.read_file("notes.txt", 2, 1) == "two\n[lines 2 to 2 of 4; go on with offset 3]"
    assert await tools.read_file("notes.txt", 3) == "three\n"
    assert await tools.read_file("notes.txt", 0, 99) == "one\ntwo\nthree\n"
    with pytest.raises(ExecutionFailed, match="there is no line 9: the file has 4"):
        await tools.read_file("notes.txt", 9)


async def test_line_ends_and_odd_bytes_are_read_as_they_are(tools: FileTools, root: Path) -> None:
    (root / "dos").write_bytes(b"a\r\nb\xff\x0bc\r\n")
    assert await tools.read_file("dos") == "a\r\nb\ufffd\x0bc\r\n"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("missing.txt", "there is no 'missing.txt'; list_directory shows what there is"),
        ("src", "'src' is a folder, not a file; list_directory shows what is in it"),
        ("notes.txt/x", "'notes.txt/x': a part of the path is a file, not a folder"),
        ("n" * 400, "the name is too long"),
        ("a\0b", "a path cannot hold a NUL character"),
        ("half\ud800", "half a character"),
        ("large", "'large' is too large: the limit is"),
        ("binary", "'binary' is not a text file (3 bytes)"),
        ("pipe", "'pipe' is a pipe, a device or a socket, not a file"),
        ("new\nline", "there is no 'new\\nline'"),
    ],
)
async def test_what_cannot_be_read_is_said_in_words_that_help(
    tools: FileTools, root: Path, path: str, words: str
) -> None:
    (root / "large").write_bytes(b"x" * 10_001)
    (root / "binary").write_bytes(b"\x89P\0")
    os.mkfifo(root / "pipe")
    with pytest.raises(ExecutionFailed) as caught:
        await tools.read_file(path)
    assert words in reason(caught, root)


@pytest.mark.requirement("BC-47")
@pytest.mark.parametrize(
    "path", ["../canary", "out/canary", "/etc/passwd", "../work-evil/canary", "~/../../canary"]
)
async def test_what_is_outside_is_refused(tools: FileTools, root: Path, path: str) -> None:
    for call in (
        tools.read_file(path),
        tools.write_file(path, "x"),
        tools.edit_file(path, "the", "a"),
        tools.list_directory(path),
        tools.search_files("canary", "*", path),
    ):
        with pytest.raises(ToolError) as caught:
            await call
        if not path.startswith("~"):
            assert isinstance(caught.value, PermissionDenied)
            assert "is outside the workspace" in reason(caught, root)
    assert (root.parent / "work-evil" / "canary").read_text() == SECRET


# ---- writing


@pytest.mark.requirement("BC-46")
async def test_a_file_is_written(tools: FileTools, root: Path) -> None:
    assert await tools.write_file("new/grüße.txt", "hällo") == "created 'new/grüße.txt': 6 bytes"
    assert await tools.write_file("new/grüße.txt", "") == "replaced 'new/grüße.txt': 0 bytes"
    assert (root / "new" / "grüße.txt").read_bytes() == b""


async def test_what_is_too_large_or_half_a_character_is_not_written(tools: FileTools, root: Path) -> None:
    with pytest.raises(ExecutionFailed, match="too large"):
        await tools.write_file("new", "x" * 10_001)
    with pytest.raises(ExecutionFailed, match="half a character"):
        await tools.write_file("new", "\ud800")
    with pytest.raises(ExecutionFailed, match="is a folder"):
        await tools.write_file("src", "x")
    assert not (root / "new").exists()


@pytest.mark.requirement("BC-46")
async def test_an_edit_replaces_one_piece_and_says_where(tools: FileTools, root: Path) -> None:
    assert await tools.edit_file("notes.txt", "two", "zwei") == "edited 'notes.txt' at line 2"
    assert (root / "notes.txt").read_text() == "one\nzwei\nthree\n"


async def test_an_edit_that_could_mean_several_places_is_refused(tools: FileTools, root: Path) -> None:
    with pytest.raises(ExecutionFailed, match="occurs 2 times") as caught:
        await tools.edit_file("notes.txt", "e\n", "X")
    assert "replace_all" in reason(caught, root)
    told = await tools.edit_file("notes.txt", "e\n", "E\n", replace_all=True)
    assert told == "edited 'notes.txt' in 2 places, the first at line 1"
    assert (root / "notes.txt").read_text() == "onE\ntwo\nthreE\n"


async def test_an_edit_of_what_is_not_there_changes_nothing(tools: FileTools, root: Path) -> None:
    with pytest.raises(ExecutionFailed, match=r"does not occur in 'notes\.txt'; read the file again"):
        await tools.edit_file("notes.txt", "four", "x")
    with pytest.raises(ExecutionFailed, match="old_text is empty"):
        await tools.edit_file("notes.txt", "", "x")
    assert (root / "notes.txt").read_text() == "one\ntwo\nthree\n"


async def test_an_edit_leaves_every_other_byte_alone(tools: FileTools, root: Path) -> None:
    (root / "dos").write_bytes(b"\xff one\r\ntwo\r\n\xfe")
    await tools.edit_file("dos", "one\ntwo", "1\n2\n3")
    assert (root / "dos").read_bytes() == b"\xff 1\r\n2\r\n3\r\n\xfe"


async def test_of_many_edits_at_once_none_is_lost(tools: FileTools, root: Path) -> None:
    (root / "list").write_text("".join(f"<{number}>" for number in range(40)))
    async with asyncio.TaskGroup() as group:
        for number in range(40):
            group.create_task(tools.edit_file("list", f"<{number}>", f"[{number}]"))
    assert (root / "list").read_text() == "".join(f"[{number}]" for number in range(40))


# ---- listing and searching


@pytest.mark.requirement("BC-46")
async def test_a_folder_is_listed(tools: FileTools, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "bad\nname").touch()
    (root / os.fsdecode(b"odd\xff")).touch()
    assert (await tools.list_directory()).split("\n") == [
        "bad\\nname (0 bytes)",
        "notes.txt (14 bytes)",
        "odd\\xff (0 bytes)",
        "out -> ../work-evil",
        "pipe (not a file)",
        "src/",
    ]
    (root / "empty").mkdir()
    assert await tools.list_directory("empty") == "[empty]"
    with pytest.raises(ExecutionFailed, match="a part of the path is a file"):
        await tools.list_directory("notes.txt")


async def test_a_folder_of_thousands_is_listed_up_to_a_limit(tools: FileTools, root: Path) -> None:
    (root / "many").mkdir()
    for number in range(2003):
        (root / "many" / f"{number:04}").touch()
    lines = (await tools.list_directory("many")).split("\n")
    assert len(lines) == 2001
    assert lines[-1] == "[3 more of 2003]"


async def test_files_are_found_by_name(tools: FileTools, root: Path) -> None:
    (root / "src" / "deep").mkdir()
    (root / "src" / "deep" / "x.py").touch()
    (root / ".git").mkdir()
    (root / ".git" / "y.py").touch()
    assert await tools.search_files(pattern="*.py") == "src/main.py\nsrc/deep/x.py"
    assert await tools.search_files(pattern="src/*.py") == "src/main.py"
    assert await tools.search_files(pattern="**/x.py") == "src/deep/x.py"
    assert await tools.search_files(pattern="deep/*", path="src") == "src/deep/x.py"
    assert await tools.search_files(pattern="*.rs") == "[nothing found]"


async def test_words_are_found_in_files_and_taken_literally(tools: FileTools, root: Path) -> None:
    (root / "src" / "regex.txt").write_text("nothing\na.*b (here)\n")
    (root / "binary").write_bytes(b"a.*b\0")
    assert await tools.search_files("a.*b (") == "src/regex.txt:2: a.*b (here)"
    assert await tools.search_files("hello", "*.py") == "src/main.py:1: print('hello')"
    assert SECRET not in await tools.search_files(SECRET[:5])


async def test_a_search_stops_when_enough_is_found(tools: FileTools, root: Path) -> None:
    (root / "long").write_text("needle\n" * 300)
    (root / "long2").write_text("needle\n")
    lines = (await tools.search_files("needle")).split("\n")
    assert len(lines) == 201
    assert lines[-1] == "[stopped: 200 were found; narrow the search by a path or a pattern]"


async def test_a_long_line_is_shown_around_the_words(tools: FileTools, root: Path) -> None:
    (root / "minified").write_text("x" * 2000 + "needle" + "y" * 2000)
    (line,) = (await tools.search_files("needle")).split("\n")
    assert "needle" in line
    assert len(line) < 450


# ---- as tools


@pytest.mark.requirement("S1-014", "BC-46")
async def test_they_are_tools_with_schemas(tools: FileTools) -> None:
    provider = FunctionProvider("builtin", tools.functions())
    listed = {tool.name: tool for tool in await provider.list_tools()}
    assert list(listed) == ["read_file", "write_file", "edit_file", "list_directory", "search_files"]
    assert all(tool.description for tool in listed.values())
    assert listed["edit_file"].input_schema["required"] == ["path", "old_text", "new_text"]
    result = await provider.call_tool("read_file", {"path": "notes.txt"})
    assert [block.fields["text"] for block in result.content] == ["one\ntwo\nthree\n"]
    refused = await provider.call_tool("read_file", {"path": "../canary"})
    assert refused.is_error


PATHS = st.lists(
    st.sampled_from(["..", ".", "out", "src", "canary", "work", "work-evil", "\0", "", "notes.txt"])
    | st.text(max_size=4),
    max_size=6,
).map("/".join)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=PATHS, absolute=st.sampled_from(["", "/", "ROOT/", "ROOT-evil/"]))
def test_whatever_the_path_it_is_answered_in_words_and_the_canary_is_safe(
    root: Path, path: str, absolute: str
) -> None:
    tools = FileTools(Workspace(root))
    spelled = absolute.replace("ROOT", str(root)) + path

    async def conversation() -> None:
        for call in (
            tools.read_file(spelled),
            tools.list_directory(spelled),
            tools.search_files(SECRET, "*", spelled),
            tools.edit_file(spelled, "canary", "cat"),
            tools.write_file(spelled, "cat"),
        ):
            with contextlib.suppress(ToolError):
                assert SECRET not in await call

    asyncio.run(conversation())
    assert (root.parent / "canary").read_text() == SECRET
    assert (root.parent / "work-evil" / "canary").read_text() == SECRET
    assert sorted(os.listdir(root.parent)) == ["canary", "work", "work-evil"]
