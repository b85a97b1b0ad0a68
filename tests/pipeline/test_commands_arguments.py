import time
from collections.abc import Sequence

import pytest

from plait.pipeline.commands import Approved, CommandPolicy
from plait.pipeline.commands.arguments import operands, spelled
from plait.pipeline.commands.launchers import rules_for


def fault(argv: str | Sequence[str], covered: int = 0) -> str | None:
    """What the rules have against a command; its words are separated by single blanks."""
    name, *arguments = argv.split(" ") if isinstance(argv, str) else argv
    found = [rule(arguments, covered) for _, rule in rules_for(name, name)]
    return next((each for each in found if each is not None), None)


@pytest.mark.parametrize(
    ("argument", "found"),
    [
        ("--output", "--output"),
        ("--output=x", "--output"),
        ("--out", "--output"),
        ("--o=x", "--output"),
        ("--outputs", None),
        ("--", None),
        ("-o", "-o"),
        ("-rox", "-o"),
        ("-ko", None),
        ("-", None),
        ("o", None),
        ("", None),
    ],
)
def test_an_option_is_recognised_however_it_is_spelled(argument: str, found: str | None) -> None:
    assert spelled(argument, "o", ["output"], valued="k") == found


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["a", "-", "b"], ["a", "-", "b"]),
        (["-f", "1", "a"], ["a"]),
        (["-cf", "1", "a"], ["a"]),
        (["-f1", "a"], ["a"]),
        (["-fc", "a"], ["a"]),
        (["-If", "a"], ["a"]),
        (["--fields", "1", "a"], ["a"]),
        (["--fields=1", "a"], ["a"]),
        (["--", "-a", "b"], ["-a", "b"]),
        (["-f", "--", "a", "b"], ["a", "b"]),
        (["-f"], []),
    ],
)
def test_operands_are_told_from_options_and_their_values(arguments: list[str], found: list[str]) -> None:
    assert operands(arguments, "f", ("fields",), attached="I") == found


@pytest.mark.parametrize(
    "command",
    [
        "find . -exec rm {} ;",
        "find . -execdir rm {} ;",
        "find . -ok rm {} ;",
        "find . -okdir rm {} ;",
        "find . -name x -delete",
        "find . -fprint x",
        "find . -fprint0 x",
        "find . -fprintf x %p",
        "find . -fls x",
        "sort -o x",
        "sort -ox",
        "sort -uo x",
        "sort --output=x",
        "sort --ou x",
        "sort -- -o x",
        "sort -T /etc",
        "sort --compress-program=sh",
        "sort --comp sh",
        "uniq a b",
        "uniq -c a b",
        "uniq -f 1 a b",
        "uniq -- a b",
        "uniq -f -- a b",
        "date -s tomorrow",
        "date -us tomorrow",
        "date --set=tomorrow",
        "date --se tomorrow",
        "date 010100002030",
        "date -u 010100002030",
        "date -Id 010100002030",
        "date -- 010100002030",
        "diff -l a b",
        "diff --paginate a b",
        "env ls",
        "env A=1 ls",
        "env -i ls",
        "env -S ls",
        "env --split-string=ls",
        "env -u A ls",
        "env -C / ls",
        "env -- ls",
    ],
)
def test_the_default_commands_cannot_write_run_or_set_anything(command: str) -> None:
    assert fault(command) is not None


@pytest.mark.parametrize(
    "command",
    [
        "find . -name x -executable -print0",
        "find . -printf %p -ls",
        "sort -k 2,2n -t o -S 1M x",
        "sort -to x",
        "sort -ru --key=2",
        "uniq",
        "uniq -c x",
        "uniq -f 1 x",
        "uniq --skip-fields 1 x",
        "date",
        "date +%s",
        "date -u +%F",
        "date -d yesterday +%F",
        "date -ud @0",
        "date --date yesterday",
        "date -r x",
        "date -Iseconds",
        "date --iso-8601=seconds",
        "diff -ru a b",
        "diff -I xl a b",
        "env",
        "env -0",
        "env -i A=1",
    ],
)
def test_and_what_they_read_and_print_they_may(command: str) -> None:
    assert fault(command) is None


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /",
        "rm -fr /",
        "rm -r -f //",
        "rm -rf /.",
        "rm -rf /tmp/..",
        "rm -rf /usr",
        "rm -rf /usr/bin",
        "rm -rf /home/somebody",
        "rm -rf /proc/self/root",
        "rm -rf ..",
        "rm -rf ../..",
        "rm -rf -- /",
        "rm --no-preserve-root -rf x",
        "rm --no-p -rf x",
        "mv /etc /tmp/x",
        "chmod -R 777 /",
        "chmod 777 /",
        "chown -R me /usr",
        "dd if=/dev/zero of=/dev/sda",
        "dd of=/dev/../dev/sda",
        "git -c core.pager=x log",
        "git --exec-path=. status",
        "git -C / status",
        "git push",
        "git clone ext::x",
        "git submodule foreach x",
        "git diff --ext-diff",
        "git diff --output=x",
        "git log --outp x",
        "git",
        "sed -i s/a/b/ x",
        "sed -f script x",
        "sed s/a/b/w x",
        "sed s/a/b/e x",
        "sed e x",
        "sed 1e x",
        "sed -n /a/w\tx",
        "sed r/etc/passwd x",
        "sed s/[/]/x/w x",
        "sed s/[/x/;/]/y/e/ x",
        "sed {p} x",
        "sed --expression=w x",
        "sed -e p -e w x",
        "sed -ne p x",
        "sed x -i",
        "sed 1!{e} x",
    ],
)
def test_commands_that_change_things_are_kept_from_the_worst(command: str) -> None:
    assert fault(command) is not None


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /tmp/x",
        "rm -rf build",
        "rm -rf ../build",
        "mv a b",
        "chmod 644 x",
        "dd if=a of=b",
        "dd if=a of=/dev/null",
        "git status",
        "git log --oneline -5",
        "git commit -m x",
        "git diff --text",
        "git --version",
        "sed s/a/b/ x",
        "sed -n 1,5p x",
        "sed -E s/(a|b)+/[\\1]/g x",
        "sed -e 1d -e $d x",
        "sed s,/usr,/opt,g;s|a|b| x",
        "sed /a[b-c]*/d x",
        "sed -n /start/,/end/p x",
        "sed 0~2d x",
        "sed /a/!d x",
    ],
)
def test_and_do_what_they_are_for(command: str) -> None:
    assert fault(command) is None


@pytest.mark.parametrize(
    "command",
    [
        "xargs rm",
        "awk {print}",
        'gawk BEGIN{system("id")}',
        "tar xf a",
        "vim x",
        "less x",
        "npm test",
        "npx x",
        "sudo ls",
        "timeout 5 ls",
        "nice ls",
        "nohup ls",
        "ssh host",
        "make",
        "busybox sh",
        "python3 -c x",
        "python3.11 -c x",
        "python -m http.server",
        "python3",
        "python3 -",
        "perl -e x",
        "perl5.36 -ne x",
        "node -e x",
        "node --eval=x",
        "bash -c x",
        "sh -c x",
        "sh",
        "bash +x",
        "bash --rcfile x",
    ],
)
def test_launchers_and_interpreters_run_nothing_of_their_own(command: str) -> None:
    assert fault(command) is not None


@pytest.mark.parametrize(
    "command", ["python3 script.py -c x", "node app.js", "bash build.sh", "python3 --version"]
)
def test_an_interpreter_runs_a_script_that_is_a_file(command: str) -> None:
    assert fault(command) is None


def test_words_that_the_operator_wrote_down_are_the_operator_s_decision() -> None:
    assert fault("npm test", covered=1) is None
    assert fault("python3 -m pytest -x", covered=2) is None
    assert fault("find . -delete", covered=2) is None
    assert fault("find . -delete -exec x ;", covered=2) is not None
    assert fault("git push origin", covered=1) is None
    assert fault("git push --exec=x", covered=1) is not None
    assert fault("sed -i s/a/b/ x", covered=1) is None
    assert fault("sed -i w x", covered=1) is not None
    assert fault("sed -f own x", covered=2) is None
    assert fault("sed -f own -f other x", covered=2) is not None
    assert fault("sed -e w -e e x", covered=2) is not None


def test_a_program_under_another_name_is_still_that_program() -> None:
    assert rules_for("py", "python3.11")
    assert rules_for("awk", "mawk")
    assert not rules_for("ls", "busybox")


def test_no_script_makes_the_reader_of_sed_scripts_slow() -> None:
    hostile = [
        "s/" + "a" * 996,
        " " * 1000,
        "1" * 1000,
        "/" * 1000,
        "s/[" * 300,
        "p;" * 500 + "w",
        "! " * 500,
    ]
    hostile += ["1" + " " * 998 + "w", "s///" + "g" * 995 + "w", "s/\\" * 250, "s,[],]" * 160]
    started = time.process_time()
    for script in hostile:
        fault(["sed", script])
    assert time.process_time() - started < 1.0


def test_every_default_command_is_there_and_runs_plainly() -> None:
    policy = CommandPolicy()
    for command in (
        "ls -la",
        "cat x",
        "pwd",
        "head -5 x",
        "tail -5 x",
        "wc -l x",
        "grep -rn x .",
        "test -f x",
        "true",
    ):
        assert isinstance(policy.judge(command), Approved), command
