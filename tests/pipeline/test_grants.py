"""Grants: what one identity may use of what the rules allow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients import ALONE
from clock import jumping
from fakes import FakeServer, Message, words
from plait.compositor import Compositor
from plait.downstream.memory import MemoryTransport
from plait.pipeline.compose import Layer
from plait.pipeline.grants import EVERYTHING, Grant, GrantFilter, Identity
from plait.pipeline.permissions import PermissionFilter
from plait.pipeline.rules import Rule, Rules, Subject
from plait.routing.naming import MountPrefix
from plait.upstream.handshake import McpSession

FILES = Subject("fs__read", "read", "fs")
SHELL = Subject("builtin__exec_shell", "exec_shell", "builtin")
ECHO = Subject("builtin__echo", "echo", "builtin")


@pytest.mark.parametrize(
    ("grant", "allowed"),
    [
        (EVERYTHING, {FILES, SHELL, ECHO}),
        (Grant(("fs__*",)), {FILES}),
        (Grant(("*__e*",)), {SHELL, ECHO}),
        (Grant(("read",)), set()),
        (Grant(()), set()),
        (Grant(builtin=frozenset({"echo"})), {FILES, ECHO}),
        (Grant(("builtin__*",), frozenset({"echo"})), {ECHO}),
    ],
)
def test_a_grant_says_which_names(grant: Grant, allowed: set[Subject]) -> None:
    assert {each for each in (FILES, SHELL, ECHO) if grant.allows(each)} == allowed


def test_what_was_cut_from_ones_own_results_is_always_ones_own() -> None:
    assert Grant(("fs__*",)).allows(Subject("plait://results/abc", "plait://results/abc", "plait"))
    assert not Grant(("fs__*",)).allows(Subject("file:///etc/passwd", "file:///etc/passwd", "fs"))


def test_one_name_with_two_grants_is_not_one_identity() -> None:
    assert Identity("a").same(Identity("a"))
    assert not Identity("a").same(Identity("b"))
    assert not Identity("a").same(Identity("a", Grant(("x",))))


@given(st.lists(st.sampled_from(["fs__*", "git__*", "*", "fs__read", "b*"]), max_size=3), st.booleans())
def test_a_grant_never_adds_to_what_the_rules_allow(patterns: list[str], denied: bool) -> None:
    rules = Rules([Rule("deny", "fs__*")] if denied else [])
    caller = Identity("a", Grant(tuple(patterns)))
    for subject in (FILES, SHELL, ECHO):
        both = rules.visible(subject, caller) and caller.grant.allows(subject)
        assert not both or rules.visible(subject, "somebody")


async def talk(identity: str, *rules: Rule) -> tuple[list[object], Message, Message]:
    """The tools that somebody sees, and the answers to a call of `fs__a` and of `fs__b`."""
    guards: list[Layer] = [GrantFilter(), PermissionFilter(rules=Rules(rules))]
    async with Compositor(ALONE, guards) as compositor:
        server = FakeServer("fs", tools=["a", "b"])
        await compositor.mount(MountPrefix("fs"), server, wait=False)
        client = MemoryTransport(lambda writer: compositor.connect(writer, identity), compositor.disconnect)
        session = await McpSession.connect(client, timeout=3600)
        names = [tool["name"] for tool in await session.list_tools()]
        answers = [await session.call_tool(f"fs__{tool}") for tool in ("a", "b")]
        await session.aclose()
    assert all(isinstance(answer, dict) for answer in answers)
    return names, answers[0], answers[1]  # type: ignore[return-value]


@jumping
async def test_what_was_not_granted_is_neither_listed_nor_called_nor_known() -> None:
    names, granted, hidden = await talk(Identity("a", Grant(("fs__a",))))
    assert names == ["fs__a"]
    assert words(granted) == "fs: a {}"
    assert hidden["isError"] is True
    assert words(hidden).startswith("unknown tool")


@jumping
async def test_a_grant_and_the_rules_must_agree() -> None:
    names, granted, _ = await talk(Identity("a", Grant(("fs__a",))), Rule("deny", "fs__a"))
    assert (names, granted["isError"]) == ([], True)
    names, _, hidden = await talk(Identity("a", Grant(("fs__a",))), Rule("allow", "*"))
    assert (names, hidden["isError"]) == (["fs__a"], True)


@jumping
async def test_clients_without_a_grant_are_not_concerned() -> None:
    names, _, other = await talk("anonymous")
    assert names == ["fs__a", "fs__b"]
    assert words(other) == "fs: b {}"
