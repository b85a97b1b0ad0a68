"""What servers say has changed: told, and remembered while nobody listens."""

import pytest

from plait.mounts.changes import Changes
from plait.notices import MAX_SERVERS, MAX_URIS


class Ear:
    def __init__(self) -> None:
        self.heard: list[tuple[str, ...]] = []

    def updated(self, prefix: str, uri: str) -> None:
        self.heard.append((prefix, uri))

    def list_changed(self, prefix: str) -> None:
        self.heard.append((prefix,))


class Deaf(Ear):
    def updated(self, prefix: str, uri: str) -> None:
        raise ZeroDivisionError


@pytest.mark.requirement("BD-13")
def test_every_listener_is_told_of_what_happens() -> None:
    changes, first, second = Changes(), Ear(), Ear()
    changes.listen(first)
    changes.listen(second)
    changes.updated("fs", "x:1")
    changes.list_changed("git")
    assert first.heard == second.heard == [("fs", "x:1"), ("git",)]


@pytest.mark.requirement("BD-13")
def test_changed_lists_are_remembered_per_prefix_and_popped_in_order_once() -> None:
    changes = Changes()
    changes.listen(Ear())
    for prefix in ("git", "fs", "git"):
        changes.list_changed(prefix)
    assert changes.pop_recent_list_changes() == ["fs", "git"]
    assert changes.pop_recent_list_changes() == []


@pytest.mark.requirement("BD-13")
def test_what_happened_while_nobody_listened_is_told_to_the_first_who_does() -> None:
    changes, first, second = Changes(), Ear(), Ear()
    changes.updated("fs", "x:2")
    changes.updated("fs", "x:1")
    changes.list_changed("fs")
    changes.listen(first)
    changes.listen(second)
    assert first.heard == [("fs", "x:1"), ("fs", "x:2"), ("fs",)]
    assert second.heard == []


def test_who_leaves_hears_nothing_more_and_the_next_hears_what_it_missed() -> None:
    changes, first, second = Changes(), Ear(), Ear()
    leave = changes.listen(first)
    leave()
    leave()
    changes.updated("fs", "x:1")
    changes.listen(second)
    assert (first.heard, second.heard) == ([], [("fs", "x:1")])


def test_one_object_may_listen_twice_and_leaves_as_often() -> None:
    changes, ear = Changes(), Ear()
    changes.listen(ear)
    changes.listen(ear)()
    changes.list_changed("fs")
    assert ear.heard == [("fs",)]


def test_a_listener_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    changes, ear = Changes(), Ear()
    changes.listen(Deaf())
    changes.listen(ear)
    changes.updated("fs", "x:1")
    assert ear.heard == [("fs", "x:1")]
    assert "a listener to changes failed" in caplog.text


def test_the_memory_has_an_end() -> None:
    changes = Changes()
    for number in range(MAX_URIS + 5):
        changes.updated("fs", f"x:{number}")
    for number in range(MAX_SERVERS + 5):
        changes.list_changed(f"s{number}")
    assert changes.dropped == 5 + 6  # `fs` is one of the servers
    assert len(changes.pop_recent_list_changes()) == MAX_SERVERS
