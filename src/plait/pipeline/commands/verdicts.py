"""What a command policy answers: what exactly may be run, or which rule refuses it and why."""

import shlex

from msgspec import Struct


class Refusal(Struct, frozen=True):
    """No, and the rule that says so. The ids of rules are stable; the reasons are for people and models."""

    rule: str
    reason: str


class Redirection(Struct, frozen=True):
    """Where one of a command's three streams leads: into a file, or where another stream leads."""

    descriptor: int
    operator: str
    """One of <, >, >> and >&; after the last, the target is 1 or 2."""
    target: str


class Command(Struct, frozen=True):
    """One program and its words, as they were written."""

    argv: tuple[str, ...]
    redirections: tuple[Redirection, ...] = ()
    executable: str = ""
    """The file to execute, free of symbolic links; `argv[0]` stays what was written."""


class Pipeline(Struct, frozen=True):
    """Commands whose output feeds the next, and when they run: always, or depending on what ran before."""

    commands: tuple[Command, ...]
    when: str = ";"
    """One of ; && and ||."""


class Approved(Struct, frozen=True):
    """What may be run. It needs no shell: the text it came from has been read completely."""

    pipelines: tuple[Pipeline, ...]

    @property
    def argv(self) -> tuple[str, ...] | None:
        """The words of a single plain command; None for anything more."""
        match self.pipelines:
            case (Pipeline(commands=(Command(redirections=()) as command,)),):
                return command.argv
        return None

    @property
    def text(self) -> str:
        """The same as shell text in which nothing is left to interpretation."""
        texts = [(pipeline.when, " | ".join(map(_quote, pipeline.commands))) for pipeline in self.pipelines]
        first, *others = texts
        return "".join(
            [first[1], *(f"; {text}" if when == ";" else f" {when} {text}" for when, text in others)]
        )


def _quote(command: Command) -> str:
    redirections = [
        f"{redirection.descriptor}{redirection.operator}{shlex.quote(redirection.target)}"
        for redirection in command.redirections
    ]
    return " ".join([shlex.join(command.argv), *redirections])


class Unacceptable(Exception):
    """How the readers and rules of this package tell the policy that, and why, the answer is no."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(reason)
        self.refusal = Refusal(rule, reason)
