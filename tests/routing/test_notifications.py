"""From one server's notification to every client that asked to hear it."""

import pytest

from fakes import Message
from plait.routing.notifications import Audience
from plait.wire.address import as_raw
from plait.wire.spec import LEVELS, Kind
from seams import FakeCaller

TOOLS: tuple[str, Message] = ("notifications/tools/list_changed", {})
PROMPTS: tuple[str, Message] = ("notifications/prompts/list_changed", {})
RESOURCES: tuple[str, Message] = ("notifications/resources/list_changed", {})


def audience(*callers: FakeCaller) -> Audience:
    made = Audience()
    for caller in callers:
        made.join(caller)
    return made


# ---- who is there


def test_clients_come_and_go() -> None:
    ann, bob = FakeCaller("ann"), FakeCaller("bob")
    everybody = audience(ann, bob)
    assert (list(everybody), len(everybody)) == ([ann, bob], 2)
    everybody.leave(ann)
    everybody.leave(ann)
    assert (list(everybody), len(everybody)) == ([bob], 1)


def test_whoever_has_left_hears_nothing() -> None:
    ann = FakeCaller("ann")
    everybody = audience(ann)
    everybody.leave(ann)
    everybody.has_listed(ann, Kind.TOOLS)
    everybody.lists_changed([Kind.TOOLS], starting=False)
    everybody.message("fs", {"level": as_raw("emergency")})
    assert ann.heard == []


# ---- lists


@pytest.mark.parametrize(
    ("kind", "notification"),
    [
        (Kind.TOOLS, TOOLS),
        (Kind.PROMPTS, PROMPTS),
        (Kind.RESOURCES, RESOURCES),
        (Kind.TEMPLATES, RESOURCES),
    ],
)
def test_each_kind_of_list_has_its_own_notification(kind: Kind, notification: object) -> None:
    ann = FakeCaller("ann")
    audience(ann).lists_changed([kind], starting=False)
    assert ann.heard == [notification]


def test_resources_and_templates_together_are_told_once() -> None:
    ann = FakeCaller("ann")
    audience(ann).lists_changed([Kind.RESOURCES, Kind.TEMPLATES, Kind.TOOLS], starting=False)
    assert ann.heard == [TOOLS, RESOURCES]


def test_while_servers_start_only_those_who_hold_an_old_copy_are_told() -> None:
    listed, other, fresh = FakeCaller("listed"), FakeCaller("other"), FakeCaller("fresh")
    everybody = audience(listed, other, fresh)
    everybody.has_listed(listed, Kind.TOOLS)
    everybody.has_listed(other, Kind.PROMPTS)
    everybody.lists_changed([Kind.TOOLS], starting=True)
    assert (listed.heard, other.heard, fresh.heard) == ([TOOLS], [], [])
    everybody.lists_changed([Kind.TOOLS], starting=False)
    assert (listed.heard, other.heard, fresh.heard) == ([TOOLS, TOOLS], [TOOLS], [TOOLS])


# ---- logging


def test_servers_are_asked_for_the_least_severe_level_that_anybody_wants() -> None:
    ann, bob = FakeCaller("ann"), FakeCaller("bob")
    everybody = audience(ann, bob)
    assert everybody.set_level(ann, "warning") == "warning"
    assert everybody.set_level(bob, "error") == "warning"
    assert everybody.set_level(bob, "debug") == "debug"
    assert everybody.set_level(bob, "emergency") == "warning"


@pytest.mark.parametrize("level", LEVELS)
def test_a_message_reaches_those_who_want_its_level_and_no_others(level: str) -> None:
    callers = {wanted: FakeCaller(wanted) for wanted in LEVELS}
    everybody = audience(*callers.values())
    for wanted, caller in callers.items():
        everybody.set_level(caller, wanted)
    everybody.message("fs", {"level": as_raw(level), "data": as_raw("x")})
    told = [wanted for wanted, caller in callers.items() if caller.heard]
    assert told == list(LEVELS[: LEVELS.index(level) + 1])


def test_a_client_that_never_set_a_level_gets_what_servers_send() -> None:
    ann = FakeCaller("ann")
    audience(ann).message("fs", {"level": as_raw("debug"), "data": as_raw(1)})
    assert ann.heard == [("notifications/message", {"level": "debug", "data": 1, "logger": "fs"})]


def test_a_message_without_a_level_that_we_know_is_nobodys_to_suppress() -> None:
    ann = FakeCaller("ann")
    everybody = audience(ann)
    everybody.set_level(ann, "emergency")
    for level in ({}, {"level": as_raw("loud")}, {"level": as_raw(7)}):
        everybody.message("fs", level)
    assert len(ann.heard) == 3


@pytest.mark.parametrize(
    ("prefix", "logger", "named"),
    [("fs", "db", "fs/db"), ("fs", None, "fs"), ("", "db", "db"), ("fs", 7, "fs"), ("", None, "")],
)
def test_the_logger_says_which_server_the_message_is_from(prefix: str, logger: object, named: str) -> None:
    ann = FakeCaller("ann")
    params = {"data": as_raw({"any": [1, "thing"]})}
    audience(ann).message(prefix, params if logger is None else {**params, "logger": as_raw(logger)})
    assert ann.heard == [("notifications/message", {"data": {"any": [1, "thing"]}, "logger": named})]


# ---- the rest


def test_the_end_of_an_elicitation_is_told_to_clients_that_know_the_notification() -> None:
    new, old = FakeCaller("new"), FakeCaller("old", revision="2025-06-18")
    audience(new, old).elicitation_completed({"elicitationId": as_raw("e1")})
    assert new.heard == [("notifications/elicitation/complete", {"elicitationId": "e1"})]
    assert old.heard == []
