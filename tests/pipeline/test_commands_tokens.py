import contextlib
import time

import pytest

from plait.pipeline.commands.tokens import Kind, tokenize
from plait.pipeline.commands.verdicts import Unacceptable


def values(text: str) -> list[str]:
    return [token.value for token in tokenize(text.encode())]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ls -la", ["ls", "-la"]),
        ("echo\t a  b", ["echo", "a", "b"]),
        ("echo 'a  b'", ["echo", "a  b"]),
        ("echo 'a'\"b\"c", ["echo", "abc"]),
        ("echo ''", ["echo", ""]),
        (r"echo \$HOME \( \; a\ b", ["echo", "$HOME", "(", ";", "a b"]),
        (r'echo "a\"b\\c\$d\`e\f"', ["echo", 'a"b\\c$d`e\\f']),
        ("grep 'a$' x$", ["grep", "a$", "x$"]),
        ('grep "foo$" "a $ b"', ["grep", "foo$", "a $ b"]),
        ("echo a~ b#c x! {} a{}b ]", ["echo", "a~", "b#c", "x!", "{}", "a{}b", "]"]),
        ("echo 'two\nlines'", ["echo", "two\nlines"]),
        ("echo é 日本 \\é", ["echo", "é", "日本", "é"]),
        ("find . -name '*.[ch]' ! -newer x", ["find", ".", "-name", "*.[ch]", "!", "-newer", "x"]),
        ("a|b&&c||d;e>f", ["a", "|", "b", "&&", "c", "||", "d", ";", "e", ">", "f"]),
        ("a>>b<c", ["a", ">>", "b", "<", "c"]),
    ],
)
def test_literal_text_reads_as_a_shell_reads_it(text: str, expected: list[str]) -> None:
    assert values(text) == expected


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("echo $HOME", "C-expansion"),
        ("echo ${HOME}", "C-expansion"),
        ("echo $(id)", "C-expansion"),
        ("echo $((1+1))", "C-expansion"),
        ('echo "$[1+1]"', "C-expansion"),
        ('echo "a$b"', "C-expansion"),
        ('echo "`id`"', "C-expansion"),
        ("echo `id`", "C-expansion"),
        ("echo $'a'", "C-expansion"),
        ('echo $"a"', "C-expansion"),
        ("echo ~", "C-expansion"),
        ("echo a=~root", "C-expansion"),
        ("echo {a,b}", "C-expansion"),
        ("echo {1..3}", "C-expansion"),
        ("ls *", "C-glob"),
        ("ls /bin/r?", "C-glob"),
        ("ls [a-z]", "C-glob"),
        ("[ -f x ]", "C-shell"),
        ("[[ -f x ]]", "C-shell"),
        ("ls &", "C-shell"),
        ("(ls)", "C-shell"),
        ("f() ls", "C-shell"),
        ("cat <<x", "C-shell"),
        ("cat <<<x", "C-shell"),
        ("cat <(ls)", "C-shell"),
        ("ls # all", "C-comment"),
        ("ls 'a", "C-syntax"),
        ('ls "a', "C-expansion"),
        ("ls \\\n-la", "C-newline"),
        ("ls \\", "C-newline"),
        ("ls \0", "C-text"),
        ("ls '\0'", "C-text"),
        ("ls\r-la", "C-text"),
        ("ls\x0b-la", "C-text"),
        ("ls \x7f", "C-text"),
    ],
)
def test_what_a_shell_would_expand_or_interpret_is_refused_by_name(text: str, rule: str) -> None:
    with pytest.raises(Unacceptable) as caught:
        tokenize(text.encode())
    assert caught.value.refusal.rule == rule


def test_the_number_before_a_redirection_is_no_word() -> None:
    kinds = [token.kind for token in tokenize(b"ls 2 2>x")]
    assert kinds == [Kind.WORD, Kind.WORD, Kind.DESCRIPTOR, Kind.OPERATOR, Kind.WORD]


def test_tokens_know_their_bytes_in_text_that_is_not_ascii() -> None:
    source = "echo é 'ü' x".encode()
    slices = [source[token.start : token.end].decode() for token in tokenize(source)]
    assert slices == ["echo", "é", "'ü'", "x"]


@pytest.mark.parametrize(
    "unit", ['"', '"a', "'", "\\", '"\\', "$", "a|", "<", ">", "~", "{", "{}", "a~", " x", "é"]
)
def test_no_text_takes_long_to_cut(unit: str) -> None:
    source = (unit * 65536)[:65536].encode()
    started = time.process_time()
    with contextlib.suppress(Unacceptable):
        tokenize(source)
    assert time.process_time() - started < 1.0
