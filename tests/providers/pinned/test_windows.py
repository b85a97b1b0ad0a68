"""Reading piece by piece gives the whole, however it is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import MsgspecError, Raw

from fakes import Message
from plait.providers.pinned.windows import Block, blocks_of, pieces, read_blocks, read_window
from plait.wire.address import as_raw


def blocks(*contents: Message) -> list[Block]:
    return blocks_of(as_raw({"contents": contents}))


def text(words: str) -> Message:
    return {"uri": "a://1", "mimeType": "text/plain", "text": words}


TEXTS = st.lists(st.text("ab\N{LATIN SMALL LETTER E WITH ACUTE}\N{SNOWMAN}", max_size=12), max_size=5)


def parts_of(window: dict[str, object]) -> list[Message]:
    parts = window["parts"]
    assert isinstance(parts, list)
    return parts


@pytest.mark.requirement("BD-23")
def test_a_window_lies_over_all_parts_as_if_they_were_one() -> None:
    both = blocks(text("hello "), {"uri": "a://1", "blob": "QUJDRA=="})
    assert read_window(both, 4, 6) == {
        "window": {"start_offset": 4, "max_bytes": 6},
        "parts": [
            {"kind": "text", "mime": "text/plain", "text": "o ", "total_bytes": 6, "bytes_returned": 2},
            {"kind": "base64", "mime": None, "base64": "QUJD", "total_bytes": 8, "bytes_returned": 4},
        ],
        "total_parts": 2,
        "next_offset": 10,
    }


@pytest.mark.requirement("BD-23")
def test_half_a_character_is_shown_as_one_that_is_missing() -> None:
    [part] = parts_of(read_window(blocks(text("\N{SNOWMAN}!")), 0, 2))
    assert part["text"] == "\N{REPLACEMENT CHARACTER}"
    assert (part["total_bytes"], part["bytes_returned"]) == (4, 2)


def test_a_window_behind_the_end_is_empty() -> None:
    assert read_window(blocks(text("abc")), 3, 10) == {
        "window": {"start_offset": 3, "max_bytes": 10},
        "parts": [],
        "total_parts": 1,
        "next_offset": None,
    }


@given(st.lists(st.integers(0, 20), max_size=6), st.data())
def test_any_partition_into_windows_has_every_byte_once_and_every_empty_block_once(
    sizes: list[int], data: st.DataObject
) -> None:
    seen: list[tuple[int, int]] = []
    empty: list[int] = []
    start, total = 0, sum(sizes)
    while start <= total:
        limit = data.draw(st.integers(1, 30))
        for piece in pieces(sizes, start, limit):
            seen += [(piece.index, byte) for byte in range(piece.start, piece.end)]
            empty += [piece.index] if piece.start == piece.end else []
        start += limit
    assert seen == [(index, byte) for index, size in enumerate(sizes) for byte in range(size)]
    assert empty == [index for index, size in enumerate(sizes) if size == 0]


@given(TEXTS, st.integers(1, 9))
def test_following_next_offset_reads_all_parts_to_the_end(texts: list[str], limit: int) -> None:
    resource, offset, returned, seen = blocks(*map(text, texts)), 0, 0, 0
    for _ in range(sum(len(each.encode()) for each in texts) + len(texts) + 1):
        window = read_window(resource, offset, limit)
        returned += sum(int(str(part["bytes_returned"])) for part in parts_of(window))
        seen += len(parts_of(window))
        if window["next_offset"] is None:
            break
        offset = int(str(window["next_offset"]))
    assert window["next_offset"] is None
    assert returned == sum(len(each.encode()) for each in texts)
    assert seen >= len(texts)


@given(st.lists(st.text("abcdef", max_size=12), max_size=5), st.integers(1, 9))
def test_following_next_reads_all_blocks_to_the_end(texts: list[str], limit: int) -> None:
    resource, joined = blocks(*map(text, texts)), [""] * len(texts)
    block, offset = 0, 0
    for _ in range(sum(map(len, texts)) + len(texts) + 1):
        answer = read_blocks(resource, block, offset, limit)
        found = answer["blocks"]
        assert isinstance(found, list)
        index = block
        for each in found:
            whole = isinstance(each, Raw)
            if whole:
                index = max(index, next(i for i in range(index, len(texts)) if resource[i].whole is each))
            else:
                index = each["block_index"]
            joined[index] += resource[index].data.decode() if whole else each["content"]
            index += whole
        following = answer["next"]
        if following is None:
            break
        assert isinstance(following, dict)
        block, offset = following["start_block"], following["start_offset"]
    assert joined == texts


@pytest.mark.requirement("BD-24")
def test_a_block_that_does_not_fit_comes_in_part() -> None:
    assert read_blocks(blocks(text("x" * 100)), 0, 0, 50) == {
        "window": {"start_block": 0, "start_offset": 0, "max_bytes": 50},
        "blocks": [
            {
                "kind": "truncated",
                "block_index": 0,
                "started_at": 0,
                "ended_at": 50,
                "full_size": 100,
                "content": "x" * 50,
            }
        ],
        "total_blocks": 1,
        "next": {"start_block": 0, "start_offset": 50},
    }


@pytest.mark.requirement("BD-24")
def test_whole_blocks_come_as_they_are_until_the_budget_is_spent() -> None:
    odd = {**text("abc"), "_meta": {"kept": [1]}}
    three = blocks(odd, {"uri": "a://2", "blob": "QUJD"}, text("never"))
    answer = read_blocks(three, 0, 0, 7)
    assert answer["blocks"] == [three[0].whole, three[1].whole]
    assert three[0].whole == as_raw(odd)
    assert answer["next"] == {"start_block": 2, "start_offset": 0}


@pytest.mark.requirement("BD-24")
def test_reading_goes_on_in_the_middle_of_a_block() -> None:
    two = blocks(text("x" * 100), text("tail"))
    answer = read_blocks(two, 0, 50, 1000)
    found = answer["blocks"]
    assert isinstance(found, list)
    assert (found[0]["started_at"], found[0]["ended_at"], found[1]) == (50, 100, two[1].whole)
    assert answer["next"] is None
    assert read_blocks(two, 7, 0, 10)["blocks"] == []


@pytest.mark.parametrize("result", [b"{}", b'{"contents":{}}', b'{"contents":[1]}', b"[]"])
def test_what_is_no_content_of_a_resource_is_told_apart(result: bytes) -> None:
    with pytest.raises(MsgspecError):
        blocks_of(Raw(result))


def test_a_block_without_text_is_an_empty_one() -> None:
    [block] = blocks({"uri": "a://1", "text": 7})
    assert (block.kind, block.data) == ("text", b"")
