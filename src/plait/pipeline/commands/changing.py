"""What keeps commands that change things, where somebody allow-lists them, from the worst."""

import os
import posixpath
import re
from collections.abc import Mapping, Sequence

from plait.pipeline.commands.arguments import Rule, names, refuse_options, spelled

_SPACIOUS = ("/", "/usr", "/home", "/Users")
"""What lies right below these is a system's or a person's whole belongings."""


def spare_the_system(arguments: Sequence[str], covered: int) -> str | None:
    """Keep rm, mv, chmod … off the root, what lies right below it, homes, and every folder above us."""
    for argument in arguments[covered:]:
        if spelled(argument, "", ("no-preserve-root",)) is not None:
            return f"{argument} is never needed"
        if _vital(argument):
            return f"'{argument}' is a folder that a system or a person cannot do without"
    return None


def _vital(argument: str) -> bool:
    if not argument.startswith("/"):
        return set(posixpath.normpath(argument).split("/")) == {".."}
    # Both as it is written and where it leads: a link to / is as good as /.
    paths = {"/" + posixpath.normpath(argument).lstrip("/"), os.path.realpath(argument)}
    return any(posixpath.dirname(path) in _SPACIOUS or path == os.path.expanduser("~") for path in paths)


def dd(arguments: Sequence[str], covered: int) -> str | None:
    for argument in arguments[covered:]:
        target = os.path.realpath(argument[3:]) if argument.startswith("of=") else ""
        if target.startswith("/dev/") and target != "/dev/null":
            return f"{argument} writes to a device"
    return None


# A small part of sed's language: no w, W, r, R, e, no labels, no braces. Brackets may not hold the
# delimiter, or sed and we could disagree on where a pattern ends.
_SED_PATTERN = r"(?:[^\\\n\[{d}]|\\[^\n]|\[\^?\]?[^\]\[{d}\\\n]*\])*"
_SED_TEXT = r"(?:[^\\\n{d}]|\\[^\n])*"
_SED_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|/{_SED_PATTERN.format(d='/')}/I?)"
_SED_SUBSTITUTIONS = "|".join(
    f"s{d}{_SED_PATTERN.format(d=d)}{d}{_SED_TEXT.format(d=d)}{d}[gpiI0-9]*"
    for d in ("/", ",", ":", "#", "@", r"\|")
)
_SED_COMMAND = (
    rf"\s*(?:{_SED_ADDRESS}(?:,[+~]?{_SED_ADDRESS})?\s*!?\s*)?(?:[dDpPnNgGhHxq=]|{_SED_SUBSTITUTIONS})\s*"
)
_SED_SCRIPT = rf"{_SED_COMMAND}(?:;{_SED_COMMAND})*;?\s*"  # compiled, and then cached by `re`, when needed
_SED_FLAGS = re.compile(r"-[nErsuz]+|--quiet|--silent|--regexp-extended|--posix|--null-data|--separate")


def sed(arguments: Sequence[str], covered: int) -> str | None:
    scripts: list[tuple[int, str]] = []
    files: list[tuple[int, str]] = []
    rest = enumerate(arguments)
    for position, argument in rest:
        if argument in ("-e", "--expression"):
            scripts.append(next(rest, (position, "")))
        elif argument.startswith("--expression="):
            scripts.append((position, argument.partition("=")[2]))
        elif not argument.startswith("-"):
            files.append((position, argument))
        elif position >= covered and not _SED_FLAGS.fullmatch(argument):
            return f"{argument} is not among the options that only print (-n -E -r -s -u -z -e)"
    for position, script in scripts or files[:1]:
        if position >= covered and (len(script) > 1000 or not re.fullmatch(_SED_SCRIPT, script)):
            return "its script does more than substitute, print and delete (w, e, r, labels, braces …)"
    return None


_GIT_COMMANDS = names(
    "add blame branch cat-file checkout cherry-pick commit describe diff init log ls-files ls-tree merge mv "
    "reset restore rev-list rev-parse revert rm shortlog show stash status switch tag"
)
_git_options = refuse_options(
    "runs a program or writes outside the repository",
    longs=("exec", "exec-path", "config", "config-env", "ext-diff", "output", "upload-pack"),
)


def git(arguments: Sequence[str], covered: int) -> str | None:
    """Only subcommands that work on the repository itself, without options before them."""
    if (
        not covered
        and tuple(arguments) != ("--version",)
        and (not arguments or arguments[0] not in _GIT_COMMANDS)
    ):
        return f"only these subcommands, with nothing before them: {' '.join(sorted(_GIT_COMMANDS))}"
    return _git_options(arguments, covered)


CHANGING: Mapping[str, Rule] = {
    **dict.fromkeys(("rm", "rmdir", "mv", "chmod", "chown", "chgrp", "shred"), spare_the_system),
    "dd": dd,
    "sed": sed,
    "git": git,
}
