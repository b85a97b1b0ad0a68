"""Event streams, cut anywhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.upstream.events import Event, EventReader
from plait.wire.framing import Oversized

BIG = 10_000


def read(data: bytes, limit: int = BIG) -> list[Event | Oversized]:
    return EventReader(limit).feed(data)


def message(data: bytes, kind: bytes = b"message") -> Event:
    return Event(kind, data)


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\n", [message(b"a")]),
        (b"data:a\n\n", [message(b"a")]),
        (b"data:  a\n\n", [message(b" a")]),
        (b"data: a\ndata: b\n\n", [message(b"a\nb")]),
        (b"data\n\n", [message(b"")]),
        (b"data:\n\n", [message(b"")]),
        (b"event: endpoint\ndata: /x\n\ndata: y\n\n", [message(b"/x", b"endpoint"), message(b"y")]),
        (b"event: empty\n\ndata: y\n\n", [message(b"y")]),
        (b": a comment\n\n:another\ndata: a\n\n", [message(b"a")]),
        (b"data: a: b\n\n", [message(b"a: b")]),
        (b"datum: a\nunknown\n\n", []),
        (b"\n\n\ndata: a\n\n\n", [message(b"a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [message(b"a")]),
        (b"data: a", []),
        (b"data: a\n", []),
        (b"", []),
    ],
)
@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_a_stream_is_read_as_browsers_read_it(stream: bytes, events: list[Event], ending: bytes) -> None:
    assert read(stream.replace(b"\n", ending)) == events


def test_an_id_counts_once_its_event_is_whole() -> None:
    reader = EventReader(BIG)
    reader.feed(b"id: 1\ndata: a\n\nid: 2\ndata: b\n")
    assert reader.last_id == "1"
    reader.feed(b"\n")
    assert reader.last_id == "2"
    reader.feed(b"data: c\n\n")
    assert reader.last_id == "2"
    reader.feed(b"id\ndata: c\n\n")
    assert reader.last_id == ""


def test_an_event_without_data_brings_its_id_all_the_same() -> None:
    reader = EventReader(BIG)
    assert reader.feed(b"id: 7\n\n") == []
    assert reader.last_id == "7"


@pytest.mark.parametrize("odd", [b"\0", b"a\0b", b"\x1b[31m", b"x" * 5000])
def test_an_id_that_no_header_can_hold_is_ignored(odd: bytes) -> None:
    reader = EventReader(BIG)
    reader.feed(b"id: good\n\nid: " + odd + b"\ndata: a\n\n")
    assert reader.last_id == "good"


@pytest.mark.parametrize(("given", "seconds"), [(b"1500", 1.5), (b"0", 0.0), (b"x", None), (b"-1", None)])
def test_the_server_says_how_long_to_wait_in_milliseconds(given: bytes, seconds: float | None) -> None:
    reader = EventReader(BIG)
    reader.feed(b"retry: " + given + b"\n\n")
    assert reader.retry == seconds


def test_an_event_past_the_limit_is_told_once_and_the_next_one_is_read() -> None:
    reader = EventReader(64)
    found = reader.feed(b'data: {"jsonrpc":"2.0","id":1,"result":"' + b"x" * 1000)
    (oversized,) = found
    assert isinstance(oversized, Oversized)
    assert oversized.head.startswith(b' {"jsonrpc":"2.0","id":1,')
    assert reader.feed(b"y" * 5000) == []
    assert reader.skipped > 6000
    assert reader.feed(b"\ndata: still the same event\n\ndata: b\n\n") == [message(b"b")]
    assert reader.skipped == 0


def test_many_short_lines_are_one_long_event() -> None:
    reader = EventReader(64)
    found = reader.feed(b"data: 0123456789\n" * 10 + b"\ndata: b\n\n")
    assert [type(item) for item in found] == [Oversized, Event]


def test_comments_are_no_part_of_an_event() -> None:
    reader = EventReader(64)
    assert reader.feed(b": keep alive\n" * 1000 + b"data: a\n\n") == [message(b"a")]


LINES = st.sampled_from(
    [
        b"data: a",
        b"data:b",
        b"data",
        b"event: endpoint",
        b"id: 1",
        b"id",
        b"id: \xc3\xa9",
        b"retry: 5",
        b":c",
        b"",
        b"",
    ]
)
ENDINGS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(
    st.lists(st.tuples(LINES, ENDINGS), max_size=20),
    st.booleans(),
    st.lists(st.integers(min_value=1, max_value=7), max_size=60),
    st.sampled_from([6, BIG]),
)
def test_any_chunking_gives_the_same_events(
    lines: list[tuple[bytes, bytes]], marked: bool, sizes: list[int], limit: int
) -> None:
    stream = (b"\xef\xbb\xbf" if marked else b"") + b"".join(line + ending for line, ending in lines)
    whole, cut = EventReader(limit), EventReader(limit)
    expected = whole.feed(stream)
    found: list[Event | Oversized] = []
    for size in sizes:
        found += cut.feed(stream[:size])
        stream = stream[size:]
    found += cut.feed(stream)
    assert [item for item in found if isinstance(item, Event)] == [
        item for item in expected if isinstance(item, Event)
    ]
    assert (cut.last_id, cut.retry) == (whole.last_id, whole.retry)


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_any_bytes_are_read_in_any_pieces(chunks: list[bytes]) -> None:
    cut = EventReader(BIG)
    found = [event for chunk in chunks for event in cut.feed(chunk)]
    assert found == read(b"".join(chunks))
