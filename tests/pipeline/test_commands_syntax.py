import pytest

from plait.pipeline.commands.syntax import ShellText
from plait.pipeline.commands.tokens import MAX_OPERATORS, MAX_TEXT
from plait.pipeline.commands.verdicts import Approved, Command, Pipeline, Redirection, Unacceptable

PLAIN = ShellText(shell=False)
SHELL = ShellText(shell=True)


def refused(reader: ShellText, text: str) -> str:
    with pytest.raises(Unacceptable) as caught:
        reader.read(text)
    return caught.value.refusal.rule


def plan(text: str) -> list[tuple[str, list[tuple[str, ...]]]]:
    return [(each.when, [command.argv for command in each.commands]) for each in SHELL.read(text)]


def test_one_plain_command_is_its_words() -> None:
    assert PLAIN.read(" find . -name '*.py' ! -type d\n") == (
        Pipeline((Command(("find", ".", "-name", "*.py", "!", "-type", "d")),)),
    )


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "C-empty"),
        (" \t\n", "C-empty"),
        ("A=1 ls", "C-assignment"),
        ("A=1", "C-assignment"),
        ("A=1 B=2", "C-assignment"),
        ("export A=1", "C-builtin"),
        ("unset A", "C-builtin"),
        ("! ls", "C-shell"),
        ("ls | wc", "C-shell"),
        ("ls && wc", "C-shell"),
        ("ls || wc", "C-shell"),
        ("ls; wc", "C-shell"),
        ("ls > x", "C-shell"),
        ("ls 2>&1", "C-shell"),
        ("ls\nwc", "C-newline"),
        ("case", "C-syntax"),
        ("function f", "C-syntax"),
        ("ls " + "x" * MAX_TEXT, "C-text"),
        ("ls \ud800", "C-text"),
    ],
)
def test_what_is_not_one_plain_command_is_refused_by_name(text: str, rule: str) -> None:
    assert refused(PLAIN, text) == rule


@pytest.mark.parametrize("text", ['find . -path "x"\\)', "rm {}\\;", "echo \\  x", "ls\u2003-la > x y"])
def test_text_that_the_two_readers_cut_differently_is_refused(text: str) -> None:
    assert refused(SHELL, text) == "C-syntax"


def test_pipes_and_lists_become_a_plan() -> None:
    assert plan("a | b c | d; e && f || g\nh;") == [
        (";", [("a",), ("b", "c"), ("d",)]),
        (";", [("e",)]),
        ("&&", [("f",)]),
        ("||", [("g",)]),
        (";", [("h",)]),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ls > x", [(1, ">", "x")]),
        ("ls >> 'a b'", [(1, ">>", "a b")]),
        ("wc < x", [(0, "<", "x")]),
        ("ls 2> x", [(2, ">", "x")]),
        ("ls 2>&1", [(2, ">&", "1")]),
        ("ls >&2", [(1, ">&", "2")]),
        ("ls &> x", [(1, ">", "x"), (2, ">&", "1")]),
        ("ls &>> x", [(1, ">>", "x"), (2, ">&", "1")]),
        ("ls > x 2>&1", [(1, ">", "x"), (2, ">&", "1")]),
    ],
)
def test_redirections_are_read(text: str, expected: list[tuple[int, str, str]]) -> None:
    ((pipeline),) = SHELL.read(text)
    assert pipeline.commands[0].redirections == tuple(Redirection(*each) for each in expected)


def test_a_redirection_after_a_list_is_its_last_command_s() -> None:
    first, second = SHELL.read("a && b | c > x")
    assert first.commands[0].redirections == ()
    assert [command.redirections for command in second.commands] == [(), (Redirection(1, ">", "x"),)]


@pytest.mark.parametrize(
    "text",
    [
        "if true; then ls; fi",
        "while true; do ls; done",
        "for i in a; do ls; done",
        "! ls | wc",
        "ls | ! wc",
        "A=1 ls | wc",
        "ls > x y",
        "> x ls",
        "> x",
        "ls >| x",
        "ls >& x",
        "ls 3> x",
        "ls 0> x",
        "ls 1< x",
        "ls <> x",
        "ls >&-",
        "ls > 'x",
        "ls |& wc",
        "; ls",
        "ls ;; wc",
        "ls &&",
        "ls &&\nwc",
        "ls |\nwc",
        "| ls",
        "ls | | wc",
        "a; " * MAX_OPERATORS + "a; b",
    ],
)
def test_even_with_a_shell_permitted_only_plain_commands_are_joined(text: str) -> None:
    assert refused(SHELL, text) in {"C-shell", "C-syntax", "C-assignment", "C-text"}


def test_what_was_approved_can_be_written_down_again() -> None:
    text = "ls 'a b' | wc -l 2>/dev/null && echo '$x' > 'o t'; pwd"
    approved = Approved(SHELL.read(text))
    assert approved.text == "ls 'a b' | wc -l 2>/dev/null && echo '$x' 1>'o t'; pwd"
    assert SHELL.read(approved.text) == approved.pipelines
    assert approved.argv is None
    assert Approved(SHELL.read("ls 'a b'")).argv == ("ls", "a b")
