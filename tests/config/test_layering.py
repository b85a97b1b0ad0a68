"""What a later file says goes on top, and the rest stays."""

from plait.config import CommandSettings, PolicySettings, Settings
from plait.config.layering import Changes, Joined, changed


def test_a_value_takes_the_place_of_the_one_before() -> None:
    assert changed(Settings(env=("A",)), {"env": ("B",)}) == Settings(env=("B",))


def test_changes_reach_into_a_fact_and_make_one_where_there_is_none() -> None:
    shell = Changes(PolicySettings, {"commands": Changes(CommandSettings, {"shell": True})})
    once = changed(Settings(), {"policy": shell})
    assert once.policy.commands == CommandSettings(shell=True)
    mode = Changes(PolicySettings, {"commands": Changes(CommandSettings, {"mode": "denylist"})})
    assert changed(once, {"policy": mode}).policy.commands == CommandSettings(shell=True, mode="denylist")


def test_joined_items_go_behind_or_in_front() -> None:
    assert changed(Settings(env=("A",)), {"env": Joined(("B",))}).env == ("A", "B")
    assert changed(Settings(env=("A",)), {"env": Joined(("B",), in_front=True)}).env == ("B", "A")


def test_what_was_there_is_not_changed() -> None:
    before = Settings()
    changed(before, {"results": Changes(type(before.results), {"per_tool": {"a": 1}})})
    assert before == Settings()
    assert Settings().results.per_tool == {}
