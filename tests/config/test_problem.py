"""A problem reads as the block that people know."""

from plait.config import ConfigFileError, Problem, Where
from plait.errors import ConfigError

WHERE = Where("plait.json", 9, 41, "mcpServers.github.headers.Authorization")


def test_a_place_reads_as_file_line_and_column() -> None:
    assert str(WHERE) == "plait.json:9:41"


def test_a_problem_renders_as_a_block() -> None:
    problem = Problem(
        code="C104",
        message="environment variable GITHUB_TOKEN is not set",
        where=WHERE,
        server="github",
        excerpt='"Authorization": "Bearer ${GITHUB_TOKEN}"',
        hints=("set it, or give a default: ${GITHUB_TOKEN:-…}",),
    )
    assert problem.render() == (
        "error[C104]: environment variable GITHUB_TOKEN is not set\n"
        "  --> plait.json:9:41   mcpServers.github.headers.Authorization\n"
        '   |      "Authorization": "Bearer ${GITHUB_TOKEN}"\n'
        "   = server 'github' is not started; the others are not affected\n"
        "   = set it, or give a default: ${GITHUB_TOKEN:-…}"
    )


def test_a_warning_with_nothing_but_a_message_is_one_line() -> None:
    problem = Problem("C109", "defined twice", server="fs", severity="warning")
    assert problem.render() == "warning[C109]: defined twice"


def test_a_file_that_cannot_be_used_is_a_config_error_with_its_problem() -> None:
    problem = Problem("C101", "unterminated string", Where("plait.json", 1, 7))
    fault = ConfigFileError(problem)
    assert isinstance(fault, ConfigError)
    assert (str(fault), fault.problem) == ("plait.json:1:7: unterminated string", problem)
