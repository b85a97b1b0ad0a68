import asyncio
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from plait.errors import ExecutionFailed
from plait.providers.function import FunctionProvider
from plait.providers.tools import notes
from plait.providers.tools.memory import LONGEST_NOTE, MemoryTools


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[MemoryTools]:
    tools = MemoryTools(tmp_path / "state")
    yield tools
    await tools.aclose()


def contents(told: str) -> list[str]:
    """The notes of an answer, without their heads."""
    return [part.split("\n", 1)[1] for part in told.split("\n\n")]


@pytest.mark.requirement("BC-46")
async def test_what_was_written_is_read_newest_first(memory: MemoryTools) -> None:
    assert await memory.memory_read() == "[there are no notes yet]"
    assert await memory.memory_write("the first") == "remembered as note 1"
    assert await memory.memory_write("the second") == "remembered as note 2"
    told = await memory.memory_read()
    assert contents(told) == ["the second", "the first"]
    assert told.startswith("[2] 20")
    assert contents(await memory.memory_read(1)) == ["the first"]


async def test_notes_are_there_in_the_next_run(tmp_path: Path) -> None:
    for _ in range(2):
        tools = MemoryTools(tmp_path)
        await tools.memory_write("again")
        told = await tools.memory_read()
        await tools.aclose()
    assert contents(told) == ["again", "again"]


async def test_a_note_is_replaced_and_forgotten(memory: MemoryTools) -> None:
    await memory.memory_write("wrong")
    assert await memory.memory_write("right", 1) == "replaced note 1"
    assert contents(await memory.memory_read()) == ["right"]
    assert "wrong" not in await memory.memory_search("wrong")
    assert await memory.memory_write("", 1) == "forgot note 1"
    assert await memory.memory_read() == "[there are no notes yet]"
    for call in (memory.memory_write("x", 9), memory.memory_write("", 9), memory.memory_read(9)):
        with pytest.raises(ExecutionFailed, match="there is no note 9"):
            await call


async def test_words_are_found_best_first(memory: MemoryTools) -> None:
    await memory.memory_write("the deploy key is in the vault")
    await memory.memory_write("deploy on Fridays: never")
    await memory.memory_write("the vault's deploy key rotates")
    await memory.memory_write("nothing of the kind")
    found = contents(await memory.memory_search("deploy key vault"))
    assert len(found) == 3
    assert found[-1] == "deploy on Fridays: never"
    assert contents(await memory.memory_search("rotat")) == ["the vault's deploy key rotates"]
    assert await memory.memory_search("zebra") == "[no note holds any of these words]"


async def test_accents_cases_and_scripts_without_spaces_are_found(memory: MemoryTools) -> None:
    await memory.memory_write("Müller bestellt Café")
    await memory.memory_write("数据库密码已经更换")
    assert contents(await memory.memory_search("muller")) == ["Müller bestellt Café"]
    assert contents(await memory.memory_search("CAFE")) == ["Müller bestellt Café"]
    assert contents(await memory.memory_search("密码")) == ["数据库密码已经更换"]
    assert contents(await memory.memory_search("tellt")) == ["Müller bestellt Café"]


@pytest.mark.parametrize(
    "query",
    [
        '"',
        '""',
        "a AND",
        "NOT x",
        "NEAR(a b, 3)",
        "content:x",
        "a*",
        "^a",
        "-a",
        "(",
        "x' OR 1=1 --",
        "%",
        "",
    ],
)
async def test_a_query_is_words_whatever_signs_it_holds(memory: MemoryTools, query: str) -> None:
    await memory.memory_write("plain text")
    assert "plain" not in await memory.memory_search(query)
    await memory.memory_write(f"it says {query}!")
    if query.strip():
        assert query in await memory.memory_search(query)


async def test_sizes_are_bounded(memory: MemoryTools) -> None:
    with pytest.raises(ExecutionFailed, match="up to 65536 bytes, and this one has 65538"):
        await memory.memory_write("é" * (LONGEST_NOTE // 2 + 1))
    with pytest.raises(ExecutionFailed, match="nothing to remember"):
        await memory.memory_write(" \n")
    with pytest.raises(ExecutionFailed, match="half a character"):
        await memory.memory_write("\ud800")
    with pytest.raises(ExecutionFailed, match="that large"):
        await memory.memory_read(10**30)
    for number in range(4):
        await memory.memory_write(f"{number}" * 20_000)
    told = await memory.memory_read(limit=1_000_000)
    assert len(told) < 50_000
    assert told.endswith("[2 more notes; memory_search finds them by words]")
    assert len(contents((await memory.memory_read(limit=-5)).rpartition("\n\n")[0])) == 1


async def test_a_memory_that_is_full_says_so_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "MOST_BYTES", 30 * notes.PAGE_SIZE)
    tools = MemoryTools(tmp_path)
    await tools.memory_write("first")
    await tools.memory_write("x" * 50_000)
    with pytest.raises(ExecutionFailed, match="full"):
        await tools.memory_write("x" * 60_000)
    assert "first" in await tools.memory_search("first")
    await tools.aclose()


async def test_a_file_that_is_no_memory_is_said_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "memory.sqlite").write_text("these are no notes" * 100)
    tools = MemoryTools(tmp_path)
    with pytest.raises(ExecutionFailed, match="the memory cannot be used: file is not a database"):
        await tools.memory_read()
    await tools.aclose()
    assert (tmp_path / "memory.sqlite").read_text().startswith("these are no notes")
    (tmp_path / "in the way").touch()
    tools = MemoryTools(tmp_path / "in the way")
    with pytest.raises(ExecutionFailed, match="the memory cannot be used"):
        await tools.memory_write("x")
    await tools.aclose()


async def test_nobody_else_may_read_the_notes(tmp_path: Path) -> None:
    tools = MemoryTools(tmp_path / "state")
    await tools.memory_write("private")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()}
    assert modes
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    await tools.aclose()


async def test_many_calls_at_once_are_all_remembered(memory: MemoryTools) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(50):
            group.create_task(memory.memory_write(f"note {number}"))
    assert len(contents(await memory.memory_read(limit=100))) == 50


def test_sqlite_is_loaded_only_by_who_has_notes() -> None:
    program = "import sys, plait.providers.tools.memory as m, pathlib; m.MemoryTools(pathlib.Path('.')); "
    program += "sys.exit('sqlite3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


async def test_they_are_tools_with_schemas(memory: MemoryTools) -> None:
    provider = FunctionProvider("builtin", memory.functions())
    listed = {tool.name: tool for tool in await provider.list_tools()}
    assert list(listed) == ["memory_read", "memory_write", "memory_search"]
    assert listed["memory_search"].input_schema["required"] == ["query"]
    result = await provider.call_tool("memory_write", {"content": "x"})
    assert not result.is_error
