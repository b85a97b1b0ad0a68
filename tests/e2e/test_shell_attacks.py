"""Spellings that try to get around the command policy, each executed for real if it is approved.

Twice: with a sandbox that is wide open, so that only the policy stands between the text and the files
outside; and with a generous policy, so that only the sandbox does.
"""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from plait.errors import ExecutionFailed, PermissionDenied
from plait.pipeline.commands import CommandPolicy
from plait.providers.tools.landlock import Kernel
from plait.providers.tools.shell import ShellTools
from plait.upstream.process import Guardian

pytestmark = pytest.mark.e2e

# @ is a file outside that must not come to be, % a file outside that must stay, ^ the workspace.
TEXTS = {
    "quoting": [
        "r\\m %",
        "'rm' %",
        '"rm" %',
        "r''m %",
        'r""m %',
        "\\rm %",
        "'touch' '@'",
        "t'ouc'h @",
        "$'touch' @",
        "$'\\x74ouch' @",
        '$"touch" @',
        "'touch @'",
        "ls '' ; touch @",
        'ls ";" touch @',
    ],
    "expansion": [
        "${x:-touch} @",
        "$(echo touch) @",
        "`echo touch` @",
        "$0 -c 'touch @'",
        "$SHELL -c 'touch @'",
        "{touch,@}",
        "{ls,-la,@}",
        "x=touch;$x @",
        "IFS=,;x=touch,@;$x",
        "eval touch @",
        "eval 'touch @'",
        "ls $(touch @)",
        'ls "$(touch @)"',
        'ls "`touch @`"',
        "ls `touch @`",
        "echo $((a[$(touch @)]))",
        "echo $[a[$(touch @)]]",
        "echo ${x:=$(touch @)}",
        "echo ${x@P}",
        "ls <(touch @)",
        "ls >(touch @)",
        "cat ~root/../../%",
        "touch ~+/../outside/new",
    ],
    "globs": ["/bin/touc? @", "/bin/[t]ouch @", "/???/touch @", "/bin/touc* @", "/bin/{touch,ls} @", "r? %"],
    "separators": [
        "ls;touch @",
        "ls ; touch @",
        "ls&touch @",
        "ls & touch @",
        "ls&&touch @",
        "false||touch @",
        "ls|touch @",
        "ls |& touch @",
        "ls\ntouch @",
        "ls\n\n touch @\n",
        "ls\r\ntouch @",
        "ls\rtouch @",
        "ls\x0btouch @",
        "ls\x0ctouch @",
        "ls\x00touch @",
        "ls\x1btouch @",
        "ls\u0085touch @",
        "ls\u2028touch @",
        "ls\u00a0;touch @",
        "ls；touch @",
        "ls｜touch @",
        "ls #\ntouch @",
        "ls \\\n; touch @",
        "(touch @)",
        "{ touch @; }",
        "! touch @",
        "time touch @",
        "coproc touch @",
        "ls;;touch @",
        "\ntouch @",
        "touch @\n",
        "touch @ ",
        "touch @;",
    ],
    "redirections": [
        "echo x > @",
        "echo x >@",
        "echo x >> @",
        "echo x >| @",
        "echo x &> @",
        "echo x >& @",
        "echo x 1> @",
        "ls nothing 2> @",
        "echo x <> @",
        "> %",
        ">%",
        ": > %",
        "cat /dev/null > %",
        "echo x > ../outside/new",
        "echo x > away/new",
        "echo x > ./away/../away/new",
        "echo x > ^/../outside/new",
        "echo x > /proc/self/cwd/../outside/new",
        "echo x > ''@",
        "cat << E > @\nx\nE",
        "cat <<< x > @",
        "echo x | tee @",
        "exec > @",
        "echo x > x 3> @",
    ],
    "launchers": [
        "env touch @",
        "env -i touch @",
        "env - touch @",
        "env A=1 touch @",
        "env -S 'touch @'",
        "env --split-string='touch @'",
        "env -u HOME touch @",
        "env -C / touch @",
        "env -- touch @",
        "echo @ | xargs touch",
        "xargs -a ^/names touch",
        "find . -exec touch @ \\;",
        "find . -exec touch @ {} +",
        "find . -execdir touch @ \\;",
        "find . -ok touch @ \\;",
        "find . -fprint @",
        "find . -fprint0 @",
        "find . -fprintf @ x",
        "find . -fls @",
        "find ../outside -delete",
        "find ../outside '-delete'",
        "find ../outside -del''ete",
        "find . -exec sh -c 'touch @' \\;",
        "sort -o @ names",
        "sort -o@ names",
        "sort names -o @",
        "sort -no @ names",
        "sort --output=@ names",
        "sort --outp=@ names",
        "sort --output @ names",
        "sort -- names -o @",
        "sort -T . -- -o @",
        "sort -S 1b --compress-program=^/evil names",
        "uniq names @",
        "uniq - @",
        "uniq -c names @",
        "uniq -- names @",
        "uniq -f 0 names @",
        "bash -c 'touch @'",
        "sh -c 'touch @'",
        "sh ^/evil",
        'python3 -c \'open("@","w")\'',
        "perl -e 'open F,\">@\"'",
        "awk 'BEGIN{system(\"touch @\")}'",
        "awk 'BEGIN{print > \"@\"}'",
        "sed -n '1w @' names",
        "sed '1e touch @' names",
        "tar cf @ names",
        "git -c alias.x='!touch @' x",
        "nohup touch @",
        "nice touch @",
        "timeout 5 touch @",
        "setsid touch @",
        "stdbuf -o0 touch @",
        "busybox touch @",
        "command touch @",
        "builtin eval touch @",
        "exec touch @",
        "source ^/evil",
        ". ^/evil",
        "trap 'touch @' EXIT",
    ],
    "variables and aliases": [
        "A=1 touch @",
        "PATH=^ ls",
        "PATH=^:$PATH ls",
        "LD_PRELOAD=^/evil.so ls",
        "BASH_ENV=^/evil ls",
        "PS4='$(touch @)' ls",
        "PROMPT_COMMAND='touch @' ls",
        "alias ls='touch @'; ls",
        "ls() { touch @; }; ls",
        "function ls { touch @; }",
        "export PATH=^; ls",
        "hash -p ^/evil ls; ls",
        "declare -x PATH=^",
    ],
    "paths": [
        "^/ls @",
        "^/evil",
        "./ls @",
        "./evil",
        "../ws/ls @",
        "~/ls",
        "//bin//touch @",
        "/bin/../bin/touch @",
        "/proc/self/root/bin/touch @",
        "/proc/self/exe @",
        "^/linked/ls @",
        "^/linked/cat -c 'touch @'",
        "linked/ls @",
        "/lib64/ld-linux-x86-64.so.2 /bin/touch @",
        "/bin/sh -c 'touch @'",
    ],
    "look-alikes": [
        "ｌｓ",
        "lѕ",
        "ls\u200b",
        "\u202etouch @",
        "touch\u00a0@",
        "тouch @",
        "LS",
        "Touch @",
        "ls\u0000",
        "\ufefftouch @",
    ],
    "control": [
        "if true; then touch @; fi",
        "while true; do touch @; break; done",
        "for i in @; do touch $i; done",
        "case x in x) touch @;; esac",
        "until touch @; do :; done",
        "[[ $(touch @) ]]",
        "[ x ] && touch @",
        "((x=1)) && touch @",
        "!touch",
        "!!",
        "ls && { touch @; }",
        "ls; exit; touch @",
    ],
}
LISTS = [
    ["touch", "@"],
    ["sh", "-c", "touch @"],
    ["/bin/sh", "-c", "touch @"],
    ["bash", "-c", "touch @"],
    ["ls;touch @"],
    ["ls\ntouch @"],
    ["ls", "\ntouch", "@"],
    ["ls", "$(touch @)"],
    ["ls", "; touch @"],
    ["", "touch", "@"],
    [" touch", "@"],
    ["touch ", "@"],
    ["ls\0touch", "@"],
    ["env", "touch", "@"],
    ["env", "-S", "touch @"],
    ["env", "-Stouch @"],
    ["find", ".", "-exec", "touch", "@", ";"],
    ["find", "../outside", "-delete"],
    ["sort", "-o", "@", "names"],
    ["sort", "-o@", "names"],
    ["uniq", "names", "@"],
    ["^/ls", "@"],
    ["^/evil"],
    ["./ls"],
    ["ls", "--", ";", "touch", "@"],
    ["-c", "touch @"],
    ["/"],
    ["."],
]


class Stage:
    """A workspace full of bait, and beside it what must stay as it is."""

    def __init__(self, root: Path) -> None:
        self.workspace, self.outside = root / "ws", root / "outside"
        self.outside.mkdir(parents=True)
        self.new, self.canary = self.outside / "new", self.outside / "canary"
        self.canary.write_text("alive")
        (self.workspace / "linked").mkdir(parents=True)
        (self.workspace / "names").write_text(f"{self.new}\n")
        (self.workspace / "away").symlink_to(self.outside)
        (self.workspace / "linked" / "ls").symlink_to("/bin/touch")
        (self.workspace / "linked" / "cat").symlink_to("/bin/sh")
        for name in ("evil", "ls"):
            (self.workspace / name).write_text(f"#!/bin/sh\n/bin/touch {self.new}\n")
            (self.workspace / name).chmod(0o755)

    def fill(self, text: str) -> str:
        places = {"@": self.new, "%": self.canary, "^": self.workspace}
        for sign, place in places.items():
            text = text.replace(sign, str(place))
        return text

    def spellings(self) -> list[str | list[str]]:
        texts: list[str | list[str]] = [self.fill(text) for group in TEXTS.values() for text in group]
        return texts + [[self.fill(word) for word in argv] for argv in LISTS]

    def unharmed(self) -> bool:
        names = [path.name for path in self.outside.glob("*")]
        return names == ["canary"] and self.canary.read_text() == "alive"


async def attempt(shell: ShellTools, spelling: str | list[str]) -> bool:
    """Whether it was approved, and so has run."""
    with contextlib.suppress(ExecutionFailed):
        try:
            if isinstance(spelling, str):
                await shell.exec_shell(command=spelling, timeout=10)
            else:
                await shell.exec_shell(argv=spelling, timeout=10)
        except PermissionDenied:
            return False
    return True


@pytest.fixture
async def guardian() -> AsyncIterator[Guardian]:
    guardian = Guardian()
    yield guardian
    await guardian.aclose()


@pytest.mark.requirement("K-05")
@pytest.mark.parametrize("shell_text", [False, True])
async def test_no_spelling_gets_past_the_policy(tmp_path: Path, guardian: Guardian, shell_text: bool) -> None:
    stage = Stage(tmp_path)
    policy = CommandPolicy(shell=shell_text, roots=[stage.workspace])
    everywhere = [Path("/")]
    shell = ShellTools(
        stage.workspace, policy, guardian, readable=everywhere, writable=everywhere, network=True
    )
    spellings = stage.spellings()
    assert len(spellings) >= 200
    approved = []
    for spelling in spellings:
        if await attempt(shell, spelling):
            approved.append(spelling)
        assert stage.unharmed(), spelling
    # Some are harmless commands that only look odd; they ran, and had no effect.
    assert 3 <= len(approved) <= 10, approved


@pytest.mark.requirement("K-05")
async def test_with_a_generous_policy_no_spelling_gets_out_of_the_sandbox(
    tmp_path: Path, guardian: Guardian
) -> None:
    if Kernel().version() < 3:
        pytest.skip("this kernel's Landlock cannot hold files; `plait doctor` says so")
    stage = Stage(tmp_path)
    generous = ["python3 -c", "awk", "env touch", "nice touch", "xargs touch", "timeout 5 touch", "perl -e"]
    generous += [
        "find . -exec",
        "sort -o",
        "sh",
        "sh -c",
        "bash -c",
        "touch",
        "rm",
        "ls",
        "echo",
        "cat",
        "tee",
    ]
    policy = CommandPolicy(generous, shell=True, roots=[stage.workspace, stage.outside])
    shell = ShellTools(stage.workspace, policy, guardian)
    approved = []
    for spelling in stage.spellings():
        if await attempt(shell, spelling):
            approved.append(spelling)
        assert stage.unharmed(), spelling
    assert len(approved) >= 40, approved


async def test_in_a_real_shell_the_spellings_do_what_they_are_for(tmp_path: Path, guardian: Guardian) -> None:
    """Or the tests above would show nothing. In a sandbox, which here includes what is outside."""
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    texts = [text for group in TEXTS.values() for text in group if "\0" not in text]
    stages = {text: Stage(tmp_path / str(number)) for number, text in enumerate(texts)}
    policy = CommandPolicy(["bash -O expand_aliases -c"])
    eight_at_once = asyncio.Semaphore(8)

    async def try_it(text: str, stage: Stage) -> None:
        shell = ShellTools(stage.workspace, policy, guardian, writable=[tmp_path])
        async with eight_at_once:
            with contextlib.suppress(ExecutionFailed):
                await shell.exec_shell(
                    argv=["bash", "-O", "expand_aliases", "-c", stage.fill(text)], timeout=5
                )

    async with asyncio.TaskGroup() as group:
        for text, stage in stages.items():
            group.create_task(try_it(text, stage))
    harmless = [text for text, stage in stages.items() if stage.unharmed()]
    assert len(texts) - len(harmless) >= 150, harmless
