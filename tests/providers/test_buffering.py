"""Many events, one result."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from plait.config.model import StreamSettings
from plait.providers.buffering import NOTED, UNSAID, Buffer
from plait.providers.stream_events import StreamEvent
from plait.wire.tools import CallToolResult, ContentBlock

E = StreamEvent
PICTURE = ContentBlock.image("aGk=", "image/png")


def buffered(*events: StreamEvent | None, limits: StreamSettings | None = None) -> CallToolResult:
    buffer = Buffer(limits or StreamSettings())
    for event in events:
        buffer.take(event)
    return buffer.result()


def texts(result: CallToolResult) -> list[object]:
    return [block.fields.get("text", block.type) for block in result.content]


# ---- each kind


@pytest.mark.requirement("BP-09", "S4-09")
def test_content_becomes_one_text() -> None:
    result = buffered(E.content("Hello"), E.content(", "), E.content("world"), E.done())
    assert result == CallToolResult.text("Hello, world")


@pytest.mark.requirement("BP-09")
def test_start_progress_log_tool_results_and_requests_are_no_part_of_the_result() -> None:
    silent = [E.start(), E.progress(1), E.log("x"), E.tool_result("t", "found"), E.request({"ok": "?"})]
    assert buffered(*silent, E.content("a"), *silent, E.content("b")) == CallToolResult.text("ab")


@pytest.mark.requirement("BP-09")
@pytest.mark.parametrize(
    ("input", "shown"), [({"q": [1, 2]}, '{"q":[1,2]}'), (None, "{}"), ("as it is", "as it is")]
)
def test_the_use_of_a_tool_is_a_block_of_its_own(input: object, shown: str) -> None:
    assert texts(buffered(E.tool_use("search", input))) == [f"[Tool: search] {shown}"]


@pytest.mark.requirement("X-42")
def test_blocks_are_in_the_order_in_which_they_came_and_only_adjacent_text_is_merged() -> None:
    result = buffered(
        E.content("a"), E.content("b"), E.tool_use("t"), E.content("c"), E.content(PICTURE), E.content("d")
    )
    assert texts(result) == ["ab", "[Tool: t] {}", "c", "image", "d"]


@pytest.mark.requirement("BP-09", "X-41", "S4-10")
def test_an_error_in_the_middle_makes_the_result_one_and_the_stream_goes_on() -> None:
    result = buffered(E.content("a"), E.error("Session 'foo' not found"), E.content("b"))
    assert (texts(result), result.is_error) == (["a", "Session 'foo' not found", "b"], True)


@pytest.mark.requirement("X-41", "BP-20")
def test_a_recoverable_error_is_noted_beside_the_content_and_changes_nothing_in_it() -> None:
    result = buffered(E.content("a"), E.error("retrying", recoverable=True), E.content("b"))
    assert (texts(result), result.is_error) == (["ab"], False)
    assert result.wire()["_meta"] == {NOTED: {"recovered": ["retrying"]}}


def test_an_error_without_words_has_some() -> None:
    assert texts(buffered(E("error"))) == [UNSAID]


@pytest.mark.requirement("BP-09")
@pytest.mark.parametrize("last", [E.complete(), E.done()])
def test_complete_and_done_end_it(last: StreamEvent) -> None:
    assert buffered(E.content("a"), last, E.content("b"), E.error("late")) == CallToolResult.text("a")


@pytest.mark.requirement("BP-09")
def test_without_done_the_end_of_the_stream_ends_it() -> None:
    assert buffered(E.content("a")) == CallToolResult.text("a")


@pytest.mark.requirement("BP-09", "X-43")
@pytest.mark.parametrize(
    "events", [(), (E.done(),), (E.start(), E.progress(1)), (E.content(""), E("content"))]
)
def test_without_content_it_is_one_empty_text(events: tuple[StreamEvent, ...]) -> None:
    assert buffered(*events) == CallToolResult.text("")


@pytest.mark.requirement("BP-09")
def test_kinds_that_are_not_known_and_what_is_no_event_are_skipped_and_counted() -> None:
    result = buffered(E("thinking"), E.content("a"), None, E("usage", {"tokens": 5}), E.content("b"))
    assert texts(result) == ["ab"]
    assert result.wire()["_meta"] == {NOTED: {"skipped": 3}}


def test_other_json_is_a_block_of_its_own() -> None:
    result = buffered(E.content("a"), E.content({"x": 1}), E.content([1]), E.content(StreamSettings(items=1)))
    assert texts(result) == ["a", '{"x":1}', "[1]", '{"items":1,"bytes":16777216,"seconds":300.0}']


def test_half_a_character_cannot_be_sent() -> None:
    assert texts(buffered(E.content("a\ud83d"), E.error("b\ud83d"))) == ["a?", "b?"]


def test_what_cannot_be_sent_at_all_is_raised_and_what_came_is_kept() -> None:
    buffer = Buffer(StreamSettings())
    buffer.take(E.content("a"))
    for value in (object(), ContentBlock("text", {"text": object()})):
        with pytest.raises(TypeError):
            buffer.take(E.content(value))
    assert texts(buffer.result()) == ["a"]


# ---- limits


def stopped(much: str, setting: str) -> str:
    return f"the stream was stopped: {much}. What came before is kept; '{setting}' is the limit"


@pytest.mark.requirement("BP-23")
def test_too_many_events_end_it_and_what_came_is_kept() -> None:
    limits = StreamSettings(items=2)
    within = [E.content("a"), E.content("b"), E.done()]
    assert not buffered(*within, limits=limits).is_error
    result = buffered(E.content("a"), E.start(), E.content("b"), limits=limits)
    assert (texts(result), result.is_error) == (["a", stopped("more than 2 events", "stream.items")], True)


@pytest.mark.requirement("BP-23")
def test_too_many_bytes_end_it_and_as_much_as_fits_is_kept() -> None:
    limits = StreamSettings(bytes=5)
    assert not buffered(E.content("héll"), limits=limits).is_error
    result = buffered(E.content("hé"), E.content("lé"), E.content("!"), limits=limits)
    assert (texts(result), result.is_error) == (
        ["hél", stopped("more than 5 bytes", "stream.bytes")],
        True,
    )


@pytest.mark.parametrize("event", [E.content(PICTURE), E.error("x" * 50, recoverable=True), E.tool_use("t")])
def test_a_block_or_a_note_that_does_not_fit_ends_it_too(event: StreamEvent) -> None:
    result = buffered(E.content("a"), event, E.content("b"), limits=StreamSettings(bytes=20))
    assert texts(result) == ["a", stopped("more than 20 bytes", "stream.bytes")]


# ---- any sequence of events

WORDS = some.text(max_size=8)
ANY = some.one_of(
    WORDS.map(E.content),
    WORDS.map(lambda text: E.error(text or "?", recoverable=True)),
    WORDS.map(E.log),
    some.sampled_from([E.start(), E.progress(1), E.tool_result("t", 1), E.request(1), E("odd"), None]),
)


def spoken(events: list[StreamEvent | None]) -> str:
    return "".join(str(event.fields["content"]) for event in events if event and event.kind == "content")


@pytest.mark.requirement("BP-09", "BP-20")
@given(some.lists(ANY))
def test_the_text_is_what_the_content_says_in_order_and_nothing_else(
    events: list[StreamEvent | None],
) -> None:
    result = buffered(*events)
    assert texts(result) == [spoken(events)]
    assert not result.is_error


BREAKS = some.sampled_from([E.tool_use("t"), E.content(PICTURE), E.error("no")])


@given(some.lists(ANY | BREAKS))
def test_no_two_texts_of_content_stand_side_by_side(events: list[StreamEvent | None]) -> None:
    blocks = texts(buffered(*events))
    marks = {"[Tool: t] {}", "image", "no"}
    content = [block for block in blocks if block not in marks]
    assert "".join(map(str, content)) == spoken([e for e in events if e != E.content(PICTURE)])
    assert len(content) <= 1 + sum(block in marks for block in blocks)


@given(WORDS.map(lambda text: text * 3), some.lists(some.integers(0, 24)), some.integers(1, 40))
def test_any_chunking_gives_the_same(text: str, cuts: list[int], most: int) -> None:
    limits = StreamSettings(bytes=most)
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    chunks = [text[left:right] for left, right in pairwise(places)]
    assert buffered(*map(E.content, chunks), limits=limits) == buffered(E.content(text), limits=limits)
