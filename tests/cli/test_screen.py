"""How things look on a terminal, and how plain they are elsewhere."""

import io

import pytest

from plait.cli.screen import Screen


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "20")


def test_colour_only_where_a_person_looks() -> None:
    terminal, file = Terminal(), io.StringIO()
    Screen(terminal, io.StringIO()).say("yes", "good")
    Screen(file, Terminal()).say("yes", "good")
    assert terminal.getvalue() == "\x1b[32myes\x1b[0m\n"
    assert file.getvalue() == "yes\n"


def test_no_colour_for_those_who_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    screen = Screen(terminal, io.StringIO())
    screen.say("yes", "good")
    assert (terminal.getvalue(), screen.style("x", "bold")) == ("yes\n", "x")


def test_lines_are_cut_to_a_terminal_and_never_elsewhere() -> None:
    terminal, file = Terminal(), io.StringIO()
    line = "0123456789" * 3
    Screen(terminal, io.StringIO()).say(f"short\n{line}")
    Screen(file, io.StringIO()).say(line)
    assert terminal.getvalue() == f"short\n{line[:19]}…\n"
    assert file.getvalue() == f"{line}\n"


def test_a_line_that_just_fits_is_not_cut() -> None:
    terminal = Terminal()
    Screen(terminal, io.StringIO()).say("x" * 20)
    assert terminal.getvalue() == "x" * 20 + "\n"


def test_what_servers_say_cannot_move_the_cursor() -> None:
    terminal, err = Terminal(), io.StringIO()
    screen = Screen(terminal, err)
    screen.say("a\x1b[2Jb")
    screen.note("c\x07\rd")
    screen.whole("e\x1bf")
    assert terminal.getvalue() == "a\\x1b[2Jb\ne\\x1bf\n"
    assert err.getvalue() == "c\\x07\\x0dd\n"


def test_a_whole_result_is_never_cut_and_for_a_program_it_is_as_it_is() -> None:
    terminal, file = Terminal(), io.StringIO()
    Screen(terminal, io.StringIO()).whole("x" * 50)
    Screen(file, io.StringIO()).whole("raw \x1b[1m")
    assert terminal.getvalue() == "x" * 50 + "\n"
    assert file.getvalue() == "raw \x1b[1m\n"


def test_progress_rewrites_one_line_and_only_where_it_can() -> None:
    live, plain = Terminal(), io.StringIO()
    for err in (live, plain):
        screen = Screen(io.StringIO(), err)
        screen.progress("starting a server with a long name")
        screen.note("done")
    assert live.getvalue() == "\r\x1b[Kstarting a server w\r\x1b[Kdone\n"
    assert plain.getvalue() == "done\n"


def test_json_is_one_line_and_never_coloured_or_cut() -> None:
    terminal = Terminal()
    Screen(terminal, io.StringIO()).json({"a": ["x" * 50, None], "é": 1})
    assert terminal.getvalue() == '{"a":["' + "x" * 50 + '",null],"é":1}\n'


def test_results_go_to_stdout_and_the_rest_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen.say("result")
    screen.note("beside")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("result\n", "beside\n")


def test_an_empty_line_is_one() -> None:
    file = io.StringIO()
    Screen(file, io.StringIO()).say()
    assert file.getvalue() == "\n"
