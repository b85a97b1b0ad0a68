"""Programs that run other programs or any code: what is needed before one of them may be run."""

import re
from collections.abc import Sequence

from plait.pipeline.commands.arguments import Rule, names
from plait.pipeline.commands.changing import CHANGING
from plait.pipeline.commands.reading import READING

_INTERPRETERS = names(
    "python pypy perl ruby node nodejs php lua luajit tclsh Rscript julia guile osascript "
    "sh bash dash zsh ksh mksh ash fish csh tcsh rbash pwsh"
)
_LAUNCHERS = names(
    # they run what their arguments say
    "xargs parallel nohup nice ionice setsid timeout time watch strace ltrace gdb script stdbuf unbuffer "
    "chroot unshare nsenter flock taskset chrt setarch linux32 linux64 prlimit systemd-run sudo su doas "
    "pkexec runuser setpriv capsh at batch crontab start-stop-daemon entr rlwrap expect screen tmux ssh scp "
    "sftp rsync mosh docker podman nerdctl kubectl nc ncat netcat socat telnet ftp ip run-parts bwrap "
    "firejail exec eval command builtin source busybox toybox ld.so ld-linux-x86-64.so ld-linux-aarch64.so "
    # they run what a project's files say
    "make gmake cmake ninja npm npx yarn pnpm bun bunx deno cargo go gradle mvn ant pip pipx uv uvx poetry "
    "tox nox pytest bundle gem rake composer meson bazel just java javac rustc gcc cc clang ld hg svn "
    # a language, or a way to a shell, is inside them
    "awk gawk mawk nawk original-awk m4 vi vim nvim view ex ed red emacs nano pico less more most man info "
    "mail mailx mutt sqlite mysql mariadb psql tar bsdtar cpio zip unzip split csplit tcpdump wish irb"
)
# One file, many programs: the name it is called by decides which.
_MULTICALL = frozenset({"busybox", "toybox", "coreutils"})
_VERSION = re.compile(r"[-.]?\d[-.\d]*$")
_TELLS = ("--version", "-V", "--help")


def launcher(arguments: Sequence[str], covered: int) -> str | None:
    if covered:
        return None
    return "it runs other programs: allow-list the exact words it may be run with, such as 'npm test'"


def interpreter(arguments: Sequence[str], covered: int) -> str | None:
    """A script in a file may run; code in an option or on standard input may not."""
    if covered or (len(arguments) == 1 and arguments[0] in _TELLS):
        return None
    if arguments and arguments[0] and not arguments[0].startswith(("-", "+")):
        return None
    return "it may only run a script in a file, named first, not code from its options or its input"


def rules_for(name: str, program: str) -> list[tuple[str, Rule]]:
    """The rules on a command: by the name it is called by, and by the program that this really is."""
    names = {name} if program in _MULTICALL else {name, program}
    return [found for each in sorted(names) if (found := _rule(each)) is not None]


def _rule(name: str) -> tuple[str, Rule] | None:
    for each in (name, _VERSION.sub("", name)):
        if (rule := READING.get(each) or CHANGING.get(each)) is not None:
            return "C-argument", rule
        if each in _INTERPRETERS:
            return "C-launcher", interpreter
        if each in _LAUNCHERS:
            return "C-launcher", launcher
    return None
