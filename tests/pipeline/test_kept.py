import asyncio
import os
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clock import jumping
from plait.errors import NotFound
from plait.pipeline.cutting import Document
from plait.pipeline.kept import HOME, Kept, KeptResults, Page


def document(size: int, letter: bytes = b"x") -> Document:
    return Document(letter * size, "text/plain")


async def keep(store: KeptResults, size: int, identity: str = "me", letter: bytes = b"x") -> Kept:
    kept = await store.keep(identity, "fs__read", document(size, letter))
    assert kept is not None
    return kept


def whole(store: KeptResults, identity: str, uri: str) -> str:
    """Everything, by following the pages."""
    pages: list[Page] = []
    following: str | None = uri
    while following is not None:
        pages.append(store.read(identity, following))
        following = pages[-1].next_uri
    assert [page.offset for page in pages[1:]] == [page.end for page in pages[:-1]]
    return "".join(page.text for page in pages)


def descriptors() -> int:
    """How many open files have no name any more."""
    count = 0
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):
            state = os.fstat(int(name))
            count += S_ISREG(state.st_mode) and state.st_nlink == 0
    return count


@pytest.mark.requirement("G25")
async def test_what_was_kept_is_read_in_pages(tmp_path: Path) -> None:
    store = KeptResults(tmp_path, page_bytes=1000)
    kept = await keep(store, 2500)
    first = store.read("me", kept.uri)
    assert (first.text, first.offset, first.end, first.total) == ("x" * 1000, 0, 1000, 2500)
    assert first.next_uri == f"{kept.uri}?offset=1000"
    assert whole(store, "me", kept.uri) == "x" * 2500
    assert store.read("me", kept.id, offset=2400).text == "x" * 100
    assert store.read("me", kept.id, 0, 10).text == "x" * 10
    assert store.read("me", kept.uri, offset=10**30).text == ""
    store.close()


async def test_nobody_else_can_read_it_and_nobody_can_tell_that_it_is_there() -> None:
    store = KeptResults()
    kept = await keep(store, 10)
    with pytest.raises(NotFound) as theirs:
        store.read("somebody else", kept.uri)
    with pytest.raises(NotFound) as nobodys:
        store.read("me", kept.uri[:-1] + "~")
    assert str(theirs.value).replace(kept.uri, "") == str(nobodys.value).replace(kept.uri[:-1] + "~", "")
    assert store.list("somebody else") == []
    assert [each.uri for each in store.list("me")] == [kept.uri]
    store.close()


async def test_ids_cannot_be_guessed() -> None:
    store = KeptResults()
    ids = {(await keep(store, 1)).id for _ in range(100)}
    assert len(ids) == 100
    assert all(len(id) >= 32 for id in ids)
    store.close()


@pytest.mark.parametrize(
    "uri", ["", "plait://results/", f"{HOME}a/../b", f"{HOME}x?offset=-1", "file:///etc/passwd"]
)
async def test_what_is_no_address_of_ours_is_not_found(uri: str) -> None:
    with pytest.raises(NotFound):
        KeptResults().read("me", uri)


async def test_what_does_not_fit_in_memory_goes_to_a_file_that_has_no_name(tmp_path: Path) -> None:
    before = descriptors()
    store = KeptResults(tmp_path / "new", memory_bytes=100)
    small = await keep(store, 60)
    large = await keep(store, 5000, letter="é".encode())
    assert list((tmp_path / "new").iterdir()) == []
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert whole(store, "me", small.uri) == "x" * 60
    assert whole(store, "me", large.uri) == "é" * 5000
    assert store.read("me", large.uri, offset=10**30).text == ""
    assert descriptors() == before + 1
    store.close()
    assert descriptors() == before


async def test_without_a_folder_there_is_only_memory() -> None:
    store = KeptResults(memory_bytes=100)
    assert await store.keep("me", "t", document(101)) is None
    assert await store.keep("me", "t", document(100)) is not None
    store.close()


async def test_a_disk_that_cannot_be_written_keeps_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = KeptResults(tmp_path / "file" / "folder", memory_bytes=0)
    assert await store.keep("me", "t", document(10)) is None
    store.close()


async def test_past_the_quota_the_oldest_of_whoever_keeps_most_goes(tmp_path: Path) -> None:
    store = KeptResults(tmp_path, memory_bytes=0, disk_bytes=1000)
    modest = await keep(store, 200, "modest")
    greedy = [await keep(store, 300, "greedy") for _ in range(4)]
    assert [each.uri for each in store.list("greedy")] == [each.uri for each in greedy[2:]]
    assert [each.uri for each in store.list("modest")] == [modest.uri]
    assert await store.keep("greedy", "t", document(1001)) is None
    store.close()


async def test_there_are_never_more_documents_than_allowed() -> None:
    store = KeptResults(most=3)
    kept = [await keep(store, 1) for _ in range(5)]
    assert [each.uri for each in store.list("me")] == [each.uri for each in kept[2:]]
    store.close()


@jumping
async def test_a_document_expires_also_while_nothing_happens() -> None:
    store = KeptResults(seconds=60)
    first = await keep(store, 10)
    await asyncio.sleep(30)
    second = await keep(store, 10)
    assert repr(store) == "<KeptResults: 2 documents, 20 bytes>"
    await asyncio.sleep(31)
    assert repr(store) == "<KeptResults: 1 documents, 10 bytes>"
    with pytest.raises(NotFound, match="1 minutes"):
        store.read("me", first.uri)
    assert store.read("me", second.uri).text == "x" * 10
    await asyncio.sleep(30)
    assert repr(store) == "<KeptResults: 0 documents, 0 bytes>"
    store.close()


async def test_a_caller_who_gives_up_leaves_no_file_open(tmp_path: Path) -> None:
    before = descriptors()
    store = KeptResults(tmp_path, memory_bytes=0)
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(store.keep("me", "t", document(1_000_000)))
        loop.call_soon(task.cancel)
    await loop.shutdown_default_executor()
    for _ in range(3):
        await asyncio.sleep(0)
    assert descriptors() <= before
    assert store.list("me") == []
    store.close()


async def test_a_store_that_was_closed_meanwhile_keeps_nothing(tmp_path: Path) -> None:
    before = descriptors()
    store = KeptResults(tmp_path, memory_bytes=0)
    store.close()
    assert await store.keep("me", "t", document(10)) is None
    assert descriptors() == before


@settings(deadline=None)
@given(st.text(max_size=60), st.integers(0, 70), st.integers(1, 12))
def test_pages_never_split_a_character_and_always_get_on(text: str, offset: int, page_bytes: int) -> None:
    async def conversation() -> None:
        store = KeptResults(page_bytes=page_bytes)
        kept = await store.keep("me", "t", Document(text.encode(), "text/plain"))
        assert kept is not None
        assert whole(store, "me", kept.uri) == text
        page = store.read("me", kept.uri, offset)
        assert text.encode()[page.offset : page.end].decode() == page.text
        store.close()

    asyncio.run(conversation())
