import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.wire.framing import LineFramer, Oversized, as_line


def feed_all(framer: LineFramer, chunks: list[bytes]) -> list[bytes | Oversized]:
    return [line for chunk in chunks for line in framer.feed(chunk)]


@pytest.mark.requirement("S1-T1.2")
def test_a_line_split_over_three_chunks_comes_back_whole() -> None:
    framer = LineFramer(100)
    assert framer.feed(b'{"a"') == []
    assert framer.partial
    assert framer.feed(b":1") == []
    assert framer.feed(b'}\n{"b":2}\n') == [b'{"a":1}', b'{"b":2}']
    assert not framer.partial


@given(st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=8), st.data())
def test_any_split_of_the_stream_gives_the_same_lines(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    limit = data.draw(st.integers(5, 40))
    expected = [
        line[:limit] if len(line) <= limit else Oversized
        for line in lines
        if len(line) > limit or (line and not line.isspace())
    ]
    got = feed_all(LineFramer(limit), chunks)
    assert expected == [Oversized if isinstance(line, Oversized) else line for line in got]


@pytest.mark.requirement("S0-23", "S0-T19")
@pytest.mark.parametrize("blank", [b"\n", b"   \n", b"\r\n", b"\t \n"])
def test_blank_lines_are_skipped(blank: bytes) -> None:
    assert LineFramer(100).feed(blank + b"{}\n" + blank) == [b"{}"]


def test_a_line_that_is_too_long_is_told_once_as_soon_as_it_is_and_the_next_one_is_read() -> None:
    framer = LineFramer(10)
    assert framer.feed(b'{"id":1,"x') == []
    (told,) = framer.feed(b"xxxxx")
    assert isinstance(told, Oversized)
    assert told.head == b'{"id":1,"xxxxxx'
    assert framer.feed(b"y" * 1000) == []
    assert framer.skipped == 1015
    assert framer.feed(b'"}\n{}\n') == [b"{}"]
    assert framer.skipped == 0


def test_of_a_line_that_is_too_long_only_the_beginning_is_kept() -> None:
    (told,) = LineFramer(1000).feed(b"x" * 100_000)
    assert isinstance(told, Oversized)
    assert len(told.head) == 512


def test_a_long_line_in_many_chunks_costs_no_more_than_its_length() -> None:
    framer = LineFramer(10_000_000)
    assert feed_all(framer, [b"x" * 100] * 20_000) == []
    assert len(framer._parts) == 20_000, "chunks are kept, not joined again and again"
    (line,) = framer.feed(b"\n")
    assert isinstance(line, bytes)
    assert len(line) == 2_000_000


@pytest.mark.requirement("S1-T1.1", "S1-003")
def test_a_message_on_a_pipe_is_one_line() -> None:
    pretty = json.dumps({"a": [1, {"b": "c\nd"}]}, indent=2).replace("\n", "\r\n").encode()
    line = as_line(pretty)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert b"\r" not in line
    assert json.loads(line) == json.loads(pretty)
