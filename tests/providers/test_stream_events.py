"""The events of a stream, in every form in which somebody may yield them."""

import pytest
from msgspec import Struct

from plait.providers.stream_events import KINDS, StreamEvent, as_event, content_of, kind_of, notice_of
from plait.wire.tools import ContentBlock

EVERY = {
    "start": StreamEvent.start(),
    "content": StreamEvent.content("x"),
    "progress": StreamEvent.progress(1),
    "tool_use": StreamEvent.tool_use("search", {"q": "x"}),
    "tool_result": StreamEvent.tool_result("search", "found"),
    "log": StreamEvent.log("hm", "warning", "engine"),
    "error": StreamEvent.error("oh", recoverable=True),
    "request": StreamEvent.request({"confirm": "sure?"}),
    "complete": StreamEvent.complete(),
    "done": StreamEvent.done(),
}


def test_there_is_a_way_to_make_an_event_of_every_kind() -> None:
    assert {kind: event.kind for kind, event in EVERY.items()} == {kind: kind for kind in KINDS}


@pytest.mark.parametrize("spelling", ["tool_use", "ToolUse", "toolUse", "tool-use"])
def test_a_kind_may_be_spelled_in_any_usual_way(spelling: str) -> None:
    assert kind_of(spelling) == "tool_use"


class Theirs(Struct):
    """An event of somebody's own class."""

    kind: str
    fields: dict[str, object]


@pytest.mark.requirement("BP-09")
@pytest.mark.parametrize(
    "given",
    [
        "hi",
        StreamEvent.content("hi"),
        {"type": "content", "text": "hi"},
        {"kind": "Content", "content": "hi"},
        {"event": "data", "content_type": "text", "content": "hi"},
        Theirs("Content", {"text": "hi"}),
    ],
)
def test_content_in_every_form_is_the_same_text(given: object) -> None:
    event = as_event(given)
    assert event is not None
    assert (event.kind, content_of(event)) == ("content", "hi")


@pytest.mark.parametrize("given", [None, 5, b"bytes", {}, {"type": 5}, {"text": "without a kind"}, object()])
def test_what_is_no_event_is_none(given: object) -> None:
    assert as_event(given) is None


def test_a_block_is_content_whether_it_is_ours_or_as_it_is_sent() -> None:
    block = ContentBlock.image("aGk=", "image/png")
    for value in (block, block.wire()):
        assert content_of(StreamEvent.content(value)) == block
    assert content_of(StreamEvent.content({"type": "point", "x": 1})) == {"type": "point", "x": 1}


def test_what_is_no_text_and_no_number_is_not_read_as_such() -> None:
    event = StreamEvent("error", {"message": 5, "code": "x", "yes": True, "half": "\ud83d", "n": 2})
    assert (event.text("message"), event.text("message", "code"), event.text("half")) == (None, "x", "?")
    assert (event.number("yes", "code"), event.number("n")) == (None, 2.0)


@pytest.mark.requirement("BP-18")
@pytest.mark.parametrize(
    ("event", "level", "data"),
    [
        (EVERY["content"], "info", "x"),
        (StreamEvent.content({"a": 1}), "info", {"a": 1}),
        (StreamEvent.content(ContentBlock.text("b")), "info", {"type": "text", "text": "b"}),
        (EVERY["log"], "warning", "hm"),
        (StreamEvent.log("hm", "loud"), "info", "hm"),
        (EVERY["error"], "warning", "oh"),
        (StreamEvent.error("oh"), "error", "oh"),
        (StreamEvent("error", {"code": 7}), "error", {"code": 7}),
        (EVERY["tool_use"], "notice", {"tool_use": {"name": "search", "input": {"q": "x"}}}),
        (EVERY["tool_result"], "debug", {"tool_result": {"name": "search", "result": "found"}}),
        (EVERY["request"], "notice", {"request": {"data": {"confirm": "sure?"}}}),
    ],
)
def test_what_a_log_message_says_of_an_event(event: StreamEvent, level: str, data: object) -> None:
    notice = notice_of(event)
    assert notice is not None
    assert (notice.level, notice.data) == (level, data)


@pytest.mark.parametrize("event", [EVERY["start"], EVERY["progress"], EVERY["done"], StreamEvent.content("")])
def test_of_other_events_it_says_nothing(event: StreamEvent) -> None:
    assert notice_of(event) is None
