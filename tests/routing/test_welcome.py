"""What we say of ourselves in `initialize`."""

import pytest
from msgspec.json import decode

from fakes import Message
from plait.routing.naming import MountPrefix, Naming
from plait.routing.welcome import EVERYTHING, MAX_INSTRUCTIONS, capabilities, instructions, welcome
from plait.version import VERSION


class Known:
    """A server as far as it is known."""

    def __init__(
        self,
        name: str,
        *supports: str,
        greeted: bool = True,
        instructions: str = "",
        prefix: str | None = None,
    ) -> None:
        self.name = name
        self.prefix = MountPrefix.none() if prefix == "" else MountPrefix(prefix or name)
        self.greeted = greeted
        self.instructions = instructions
        self._supports = set(supports)

    def supports(self, capability: str, detail: str | None = None) -> bool:
        return (capability if detail is None else f"{capability}.{detail}") in self._supports


# ---- capabilities


def test_as_long_as_a_server_is_unknown_everything_may_still_come() -> None:
    known = [Known("a", "tools"), Known("b", greeted=False)]
    assert capabilities(known) == EVERYTHING


def test_once_all_are_known_we_can_do_what_one_of_them_can() -> None:
    known = [Known("a", "tools", "logging"), Known("b", "prompts")]
    assert capabilities(known) == {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "logging": {},
    }


@pytest.mark.requirement("S1-041")
def test_tools_that_change_are_always_offered() -> None:
    assert capabilities([]) == capabilities([Known("a")]) == {"tools": {"listChanged": True}}


@pytest.mark.requirement("X-13")
def test_subscriptions_are_offered_only_if_a_server_has_them() -> None:
    assert capabilities([Known("a", "resources")])["resources"] == {"listChanged": True}
    both = [Known("a", "resources"), Known("b", "resources", "resources.subscribe")]
    assert capabilities(both)["resources"] == {"subscribe": True, "listChanged": True}


# ---- instructions


def test_each_servers_words_stand_under_its_name_with_what_its_names_are_here() -> None:
    known = [
        Known("git", instructions=" Use status first.\n"),
        Known("silent"),
        Known("blank", instructions="  \n "),
        Known("bare", instructions="As they are.", prefix=""),
    ]
    assert instructions(known, Naming()) == (
        "## git (its names begin with git__ here)\nUse status first.\n\n## bare\nAs they are."
    )
    assert "git. here" in instructions(known, Naming("."))


def test_instructions_are_not_without_end() -> None:
    text = instructions([Known("a", instructions="x" * 100_000)], Naming())
    assert len(text) < MAX_INSTRUCTIONS + 100
    assert text.endswith("[cut: the instructions of all servers are longer than this]")


# ---- the whole answer


def test_the_welcome_names_the_revision_and_who_we_are() -> None:
    answer: Message = decode(welcome("gate", "2025-06-18", [], Naming()))
    assert answer == {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {"listChanged": True}},
        "serverInfo": {"name": "gate", "version": VERSION},
    }


def test_the_welcome_carries_instructions_if_there_are_any() -> None:
    known = [Known("a", instructions="Be brief.")]
    answer: Message = decode(welcome("gate", "2025-06-18", known, Naming()))
    assert str(answer["instructions"]).endswith("Be brief.")
