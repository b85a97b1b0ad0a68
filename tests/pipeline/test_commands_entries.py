import pytest

from plait.pipeline.commands.entries import Entries


def test_the_line_that_says_most_covers_a_command() -> None:
    entries = Entries(["git status", "git", "/opt/bin/tool run 'a b'"])
    covering = entries.covering("git", ["status", "-s"])
    assert covering is not None
    assert covering.words == ("status",)
    bare = entries.covering("git", ["log"])
    assert bare is not None
    assert bare.words == ()
    tool = entries.covering("tool", ["run", "a b", "c"])
    assert tool is not None
    assert tool.program == "/opt/bin/tool"
    assert entries.covering("tool", ["run"]) is None
    assert str(entries) == "git tool"


@pytest.mark.parametrize("line", ["", "  ", "bin/tool", "./tool", "/opt/bin/", "'"])
def test_a_line_that_names_no_program_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match=r"names no program|quotation"):
        Entries([line])
