"""How arguments are read as options and operands, cautiously: what might be an option is one.

A rule looks at a command's arguments and says what is wrong with them, or nothing. It is also told how
many of them the allow-list's own entry spells out: those were the operator's decision.
"""

from collections.abc import Callable, Iterable, Sequence

Rule = Callable[[Sequence[str], int], str | None]


def names(text: str) -> frozenset[str]:
    """The words of a text, for lists of many names."""
    return frozenset(text.split())


def spelled(argument: str, shorts: str, longs: Iterable[str], valued: str = "") -> str | None:
    """Which of these options an argument may spell: abbreviated, in a cluster, with its value attached.

    After a letter of `valued` the rest of a cluster is that option's value.
    """
    if argument.startswith("--"):
        name = argument[2:].partition("=")[0]
        return next((f"--{long}" for long in longs if name and long.startswith(name)), None)
    if argument.startswith("-"):
        for letter in argument[1:]:
            if letter in shorts:
                return f"-{letter}"
            if letter in valued:
                break
    return None


def refuse_options(why: str, shorts: str = "", longs: Sequence[str] = (), valued: str = "") -> Rule:
    """A rule against some options. It reads past a `--`, which may itself be an option's value."""

    def rule(arguments: Sequence[str], covered: int) -> str | None:
        for argument in arguments[covered:]:
            if (option := spelled(argument, shorts, longs, valued)) is not None:
                return f"{option} {why}"
        return None

    return rule


def operands(arguments: Sequence[str], consuming: str, longs: Sequence[str], attached: str = "") -> list[str]:
    """The arguments that are neither options nor the values of options.

    Letters of `consuming`, and `longs`, take the next argument if nothing is attached to them; letters
    of `attached` take what is attached, and nothing else.
    """
    found: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return [*found, *rest]
        if not argument.startswith("-") or argument == "-":
            found.append(argument)
        elif _takes_next(argument, consuming, longs, attached):
            next(rest, None)
    return found


def _takes_next(option: str, consuming: str, longs: Sequence[str], attached: str) -> bool:
    if option.startswith("--"):
        return "=" not in option and any(long.startswith(option[2:]) for long in longs)
    for position, letter in enumerate(option[1:], 2):
        if letter in attached:
            return False
        if letter in consuming:
            return position == len(option)
    return False
