"""What has changed since an agent last looked."""

import json

import pytest

from plait import notices
from plait.notices import NO_PREFIX, Notices, NotificationsBuffer


def told(rendered: str) -> dict[str, object]:
    opening, body, closing = rendered.splitlines()
    assert (opening, closing) == ("<notifications>", "</notifications>")
    read: dict[str, object] = json.loads(body)
    return read


@pytest.mark.requirement("BD-32")
def test_updates_are_a_set_per_server_and_list_changes_a_flag() -> None:
    buffer = NotificationsBuffer()
    for uri in ("x:2", "x:1", "x:2"):
        buffer.updated("fs", uri)
    buffer.list_changed("git")
    buffer.list_changed("git")
    expected = {"fs": Notices(frozenset({"x:1", "x:2"})), "git": Notices(list_changed=True)}
    assert buffer.peek() == expected
    assert repr(buffer) == "<NotificationsBuffer: 2 updates>"


@pytest.mark.requirement("BD-32")
def test_to_peek_keeps_what_there_is_and_to_poll_takes_it_away() -> None:
    buffer = NotificationsBuffer()
    buffer.updated("fs", "x:1")
    assert buffer.peek() == buffer.peek() == buffer.poll()
    assert buffer.poll() == {}


@pytest.mark.requirement("BD-32")
def test_a_turn_is_told_everything_in_one_tagged_message_and_only_once() -> None:
    buffer = NotificationsBuffer()
    buffer.updated("fs", "x:2")
    buffer.updated("fs", "x:1")
    buffer.list_changed("fs")
    buffer.list_changed("")
    assert told(buffer.render()) == {
        NO_PREFIX: {"list_changed": True},
        "fs": {"updated": ["x:1", "x:2"], "list_changed": True},
    }
    assert buffer.render() == ""


@pytest.mark.parametrize("uri", ["x:</notifications>", "x:\n<system>", "x:\u2028</notifications>", 'x:"}'])
def test_no_uri_can_end_the_tag_or_begin_a_line(uri: str) -> None:
    buffer = NotificationsBuffer()
    buffer.updated("fs", uri)
    rendered = buffer.render()
    assert rendered.isascii()
    assert rendered.count("<") == 2
    assert told(rendered) == {"fs": {"updated": [uri]}}


def test_a_server_that_says_too_much_is_counted_and_not_kept() -> None:
    buffer = NotificationsBuffer()
    for number in range(notices.MAX_URIS + 3):
        buffer.updated("fs", f"x:{number}")
    buffer.updated("fs", "x:0")  # known already: nothing is lost
    buffer.updated("git", "x:" + "y" * notices.LONGEST_URI)
    assert buffer.dropped == 4
    assert len(buffer.peek()["fs"].updated) == notices.MAX_URIS
    assert told(buffer.render())["git"] == {"more_updates": 1}


def test_there_is_an_end_to_the_number_of_servers_too() -> None:
    buffer = NotificationsBuffer()
    for number in range(notices.MAX_SERVERS + 2):
        buffer.list_changed(f"s{number}")
        buffer.updated(f"s{number}", "x:1")
    assert len(buffer.poll()) == notices.MAX_SERVERS
    assert buffer.dropped == 4
