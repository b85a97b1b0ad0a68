"""12,607 real one-liners: a policy that refuses honest work is switched off."""

import re
from pathlib import Path

import pytest

from plait.pipeline.commands import DEFAULT_ALLOW, CommandPolicy, Refusal

QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\$`]|\\.)*"|\\.""")
SPECIAL = re.compile(r"""[$`*?\[}{<>|&;()'"\\]|(?:^|[\s=:])~|(?:^|\s)\#""")


@pytest.fixture
def commands(corpora: Path) -> list[str]:
    path = corpora / "nl2bash" / "all.cm"
    if not path.is_file():
        pytest.skip("nl2bash is not among the corpora")
    return path.read_text(encoding="utf-8").splitlines()


def is_plain(command: str) -> bool:
    """Our definition, independent of the policy's: nothing special is left outside of quotes."""
    return not SPECIAL.search(QUOTED.sub("x", command).replace("{}", "x"))


def test_plain_commands_with_allowed_programs_are_rarely_refused(commands: list[str]) -> None:
    policy = CommandPolicy()
    plain = [each for each in commands if is_plain(each) and each.split()[0] in DEFAULT_ALLOW]
    verdicts = [(each, policy.judge(each)) for each in plain]
    by_name = [each for each, no in verdicts if isinstance(no, Refusal) and no.rule == "C-argument"]
    refused = [(each, no) for each, no in verdicts if isinstance(no, Refusal) and each not in by_name]
    assert len(plain) > 4000
    assert len(refused) <= (len(plain) - len(by_name)) * 0.005, refused


def test_judging_never_fails_on_any_of_them(commands: list[str]) -> None:
    for policy in (CommandPolicy(), CommandPolicy(shell=True, roots=[Path("/tmp")]), CommandPolicy(deny=[])):
        verdicts = [policy.judge(each) for each in commands]
        assert all(verdict.reason for verdict in verdicts if isinstance(verdict, Refusal))
