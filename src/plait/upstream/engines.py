"""Recognise a command that runs a container, and say how to put options of ours into it."""

import os
import re
from collections.abc import Collection, Sequence

from msgspec import Struct

ENGINES = ("docker", "podman")


def _flags(names: str) -> frozenset[str]:
    return frozenset(names.split())


# An option that is not listed here takes a value: such lists are short, and the others long.
WRAPPERS = {
    "env": _flags("-i -0 -v --ignore-environment --null --debug"),
    "sudo": _flags(
        "-A -b -B -E -H -i -k -K -n -N -P -S -s --askpass --background --bell --preserve-env --set-home"
        " --login --reset-timestamp --non-interactive --no-update --preserve-groups --stdin --shell"
    ),
    "doas": _flags("-L -n -s"),
    "nice": _flags(""),
}
ENGINE_FLAGS = _flags(
    "-D -r -v -h --debug --tls --tlsverify --remote --noout --syslog --trace --transient-store"
    " --version --help"
)
RUN_FLAGS = _flags(
    "-d -i -t -P -q --detach --interactive --tty --publish-all --quiet --rm --rmi --init --privileged"
    " --read-only --read-only-tmpfs --no-healthcheck --oom-kill-disable --disable-content-trust --sig-proxy"
    " --use-api-socket --env-host --unsetenv-all --http-proxy --no-hosts --no-hostname --passwd --replace"
    " --rootfs --tls-verify --help"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class ContainerCommand(Struct, frozen=True):
    """A command that runs a container, taken apart."""

    engine: tuple[str, ...]
    """The engine with its own options, and whatever stands before it: what every call of it begins with."""
    start: tuple[str, ...]
    """All words up to `run`, and that word itself."""
    rest: tuple[str, ...]
    cidfile: str | None
    """Where it has the container's id written of its own accord, as it says it."""

    def with_options(self, *options: str) -> tuple[str, ...]:
        return (*self.start, *options, *self.rest)


def recognise(argv: Sequence[str]) -> ContainerCommand | None:
    """`docker run …` and its like; None for anything else, such as `docker exec` and `docker compose run`."""
    words = tuple(argv)
    program = _past_wrappers(words)
    if engine_in(words[program : program + 1]) is None:
        return None
    _, verb = read_options(words, program + 1, ENGINE_FLAGS)
    run = verb + 1 if words[verb : verb + 1] == ("container",) else verb
    if words[run : run + 1] != ("run",):
        return None
    options, _ = read_options(words, run + 1, RUN_FLAGS)
    cidfiles = [value for name, value in options if name == "--cidfile"]
    # Of an option that is given twice, the last one counts.
    return ContainerCommand(
        words[:verb], words[: run + 1], words[run + 1 :], cidfiles[-1] if cidfiles else None
    )


def engine_in(words: Sequence[str]) -> str | None:
    """The plain name of the engine among these words: `docker` for `/usr/bin/docker`."""
    names = (os.path.basename(word) for word in words)
    return next((name for name in names if name in ENGINES), None)


def read_options(
    words: Sequence[str], start: int, flags: Collection[str]
) -> tuple[list[tuple[str, str]], int]:
    """The options from there on with their values, and where the first other word stands."""
    found: list[tuple[str, str]] = []
    rest = list(reversed(words[start:]))
    while rest and rest[-1].startswith("-") and rest[-1] != "-":
        word = rest.pop()
        if word == "--":
            break
        name, value = _long(word) if word.startswith("--") else _short(word, flags)
        if value is None and name not in flags:
            value = rest.pop() if rest else ""
        found.append((name, value or ""))
    return found, len(words) - len(rest)


def _long(word: str) -> tuple[str, str | None]:
    name, equals, value = word.partition("=")
    return name, value if equals else None


def _short(word: str, flags: Collection[str]) -> tuple[str, str | None]:
    """Of letters put together, as in `-itv`, only the last may take a value: the rest of the word."""
    for place, letter in enumerate(word[1:], start=2):
        if f"-{letter}" not in flags:
            return f"-{letter}", word[place:] or None
    return f"-{word[-1]}", None


def _past_wrappers(words: Sequence[str]) -> int:
    """Where the program stands that `sudo -n env A=1 …` comes to run."""
    place = 0
    while place < len(words) and (flags := WRAPPERS.get(os.path.basename(words[place]))) is not None:
        _, place = read_options(words, place + 1, flags)
        while place < len(words) and _ASSIGNMENT.match(words[place]):
            place += 1
    return place
