"""What holds for every text, not only for those we thought of."""

import shlex

from hypothesis import given, settings
from hypothesis import strategies as st

from plait.pipeline.commands import Approved, CommandPolicy, Refusal

PLAIN = CommandPolicy()
SHELL = CommandPolicy(shell=True)
OPEN = CommandPolicy(deny=[])

# Texts that come close to commands, so that the interesting branches are reached.
CHARACTERS = "'\"\\$` \t\n\r\0;|&><()*?[]{}~#!=,é\u00a0\u2028\ud8001"
WORDS = """ls echo cat find env rm /bin/ls -la -- || && >> << 2> {} A=1 ｌｓ $(id) 'x' "y" if then fi case
esac function time -exec -delete /dev/null /etc/x .."""
PIECES = st.sampled_from([*CHARACTERS, *WORDS.split(), "a b", "\\ ", "\\\n"])
TEXTS = st.one_of(
    st.text(max_size=60), st.lists(PIECES, max_size=14).map("".join), st.lists(PIECES).map(" ".join)
)


@settings(max_examples=600, deadline=None)
@given(TEXTS)
def test_every_text_gets_a_verdict(text: str) -> None:
    for policy in (PLAIN, SHELL, OPEN):
        assert isinstance(policy.judge(text), Approved | Refusal)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(st.lists(TEXTS, max_size=6), st.lists(st.one_of(st.none(), st.integers(), TEXTS)), st.binary())
)
def test_every_list_gets_a_verdict(argv: list[str]) -> None:
    for policy in (PLAIN, OPEN):
        assert isinstance(policy.judge(argv), Approved | Refusal)


@settings(max_examples=600, deadline=None)
@given(TEXTS)
def test_an_approved_word_was_literally_in_the_text(text: str) -> None:
    verdict = SHELL.judge(text)
    if isinstance(verdict, Refusal):
        return
    bare = text.replace("'", "").replace('"', "").replace("\\", "")
    for pipeline in verdict.pipelines:
        for command in pipeline.commands:
            for word in command.argv:
                assert word.replace("'", "").replace('"', "").replace("\\", "") in bare


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12), max_size=5
    )
)
def test_quoted_words_come_back_as_they_are(words: list[str]) -> None:
    verdict = PLAIN.judge(shlex.join(["echo", *words]))
    if isinstance(verdict, Refusal):
        # The two readers may differ on odd text; then it is refused, never misread.
        assert verdict.rule == "C-syntax"
    else:
        assert verdict.argv == ("echo", *words)


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_the_text_of_what_was_approved_means_the_same(text: str) -> None:
    verdict = SHELL.judge(text)
    if isinstance(verdict, Approved):
        assert SHELL.judge(verdict.text) == verdict


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_what_is_plain_is_the_same_with_and_without_a_shell_permitted(text: str) -> None:
    verdict = PLAIN.judge(text)
    if isinstance(verdict, Approved):
        assert SHELL.judge(text) == verdict
