"""What keeps the commands of the default allow-list to reading: the few arguments that do more."""

import re
from collections.abc import Mapping, Sequence

from plait.pipeline.commands.arguments import Rule, names, operands, refuse_options, spelled

_FIND_ACTIONS = names("-exec -execdir -ok -okdir -delete -rm -fprint -fprint0 -fprintf -fls")
"""Of GNU, BSD and busybox; find knows no abbreviations."""
_ENV_PRINTS = re.compile(r"-|-0|--null|-i|--ignore-environment|[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)


def find(arguments: Sequence[str], covered: int) -> str | None:
    for argument in arguments[covered:]:
        if argument in _FIND_ACTIONS:
            return f"{argument} runs, writes or deletes: find may only look (print, and act in another call)"
    return None


def env(arguments: Sequence[str], covered: int) -> str | None:
    if all(_ENV_PRINTS.fullmatch(argument) for argument in arguments[covered:]):
        return None
    return "it may only print the environment: give the command itself, without env"


def date(arguments: Sequence[str], covered: int) -> str | None:
    for argument in arguments[covered:]:
        if (option := spelled(argument, "s", ["set"], valued="dfrIvz")) is not None:
            return f"{option} sets the clock"
    longs = ("date", "file", "reference", "rfc-3339")
    for operand in operands(arguments[covered:], "dfr", longs, attached="I"):
        if not operand.startswith("+"):
            return f"'{operand}' would set the clock: a format starts with +"
    return None


def uniq(arguments: Sequence[str], covered: int) -> str | None:
    if len(operands(arguments[covered:], "fsw", ("skip-fields", "skip-chars", "check-chars"))) > 1:
        return "its second file would be written to: name only the one to read"
    return None


sort = refuse_options(
    "writes a file or runs a program",
    shorts="oT",
    longs=("output", "temporary-directory", "compress-program"),
    valued="ktS",
)
diff = refuse_options("runs the program pr", shorts="l", longs=("paginate",), valued="CDFILSUWXx")

READING: Mapping[str, Rule] = {
    "find": find,
    "env": env,
    "date": date,
    "uniq": uniq,
    "sort": sort,
    "diff": diff,
}
