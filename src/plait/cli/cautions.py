"""What works in a file and is better not there: warnings of `plait check`, never a reason not to start.

| code | what it says                                                                |
| ---- | --------------------------------------------------------------------------- |
| W201 | a package is fetched at every start, in whatever version is the newest      |
| W202 | a server is started through a shell, which reads its arguments as a program |
| W203 | a variable makes the server load or run something else                      |
| W204 | an argument looks like a secret that is written out                         |
| W205 | a parameter is said to be a command or a URL, and there is no policy for it |

W210 and W211 are in `plait.cli.coverage`. A code keeps its meaning for ever.
"""

import os
from collections.abc import Iterator, Sequence

from msgspec import Struct

from plait.cli.literals import literal_secrets
from plait.cli.packages import unpinned
from plait.config.load import read_document
from plait.config.masking import quoted
from plait.config.model import Config, PolicySettings, Settings, StdioServer
from plait.config.problem import Problem, Where
from plait.config.spot import Spot
from plait.errors import ConfigError
from plait.pipeline.rules import BUILTIN

UNPINNED = "W201"
SHELL = "W202"
LOADING_VARIABLE = "W203"
LITERAL_SECRET = "W204"
NO_POLICY = "W205"

_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "fish"))
_LOADING = frozenset(
    (
        *("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "GIT_SSH", "GIT_SSH_COMMAND"),
        *("NODE_OPTIONS", "PYTHONSTARTUP", "PERL5OPT", "RUBYOPT"),
    )
)
_ENV_VALUES = frozenset(("-u", "--unset", "-C", "--chdir"))


def cautions(config: Config) -> list[Problem]:
    """Everything of that kind in a configuration, server by server."""
    found = [
        caution
        for server in config.servers
        if isinstance(server, StdioServer)
        for caution in _about(server, config.settings)
    ]
    return [*found, *_without_a_policy(config.settings.policy)]


def _without_a_policy(policy: PolicySettings) -> Iterator[Problem]:
    """Only our own tools are judged by the policies that we ship."""
    for each in policy.parameters:
        section = {"command": "commands", "url": "urls"}.get(each.kind)
        if section is not None and getattr(policy, section) is None and not each.tool.startswith(BUILTIN):
            parameter = f"parameter {quoted(each.parameter)} of {quoted(each.tool)}"
            yield Problem(
                code=NO_POLICY,
                message=f"{parameter} is said to be a {each.kind}, and nothing judges it",
                hints=(f'write the policy too, it may be empty: "policy": {{"{section}": {{}}}}',),
                severity="warning",
            )


def _about(server: StdioServer, settings: Settings) -> Iterator[Problem]:
    start = _really(server)
    for package in unpinned(start.words):
        what = f"whatever version of {quoted(package.name)} is the newest at each start"
        yield _caution(server, UNPINNED, f"{package.runner} fetches {what}", package.remedy)
    if start.words[0] in _SHELLS and _takes_a_program(start.words[1:]):
        yield _caution(
            server,
            SHELL,
            f"{start.words[0]} -c takes its argument for a program: a path in it can become code",
            "write the program as the command, and each of its arguments as a string of its own in args",
        )
    passed_on = {*settings.env, *server.settings.env}
    for name in sorted((start.variables | passed_on) & _LOADING):
        yield _caution(
            server,
            LOADING_VARIABLE,
            f"{name} makes the server load or run something that its command does not name",
            "take it out, or give the server's own option for it in args",
        )
    yield from _secrets(server)


# ---- what is really started


class _Start(Struct, frozen=True):
    words: list[str]
    """The program's bare name, and its arguments."""
    variables: frozenset[str]


def _really(server: StdioServer) -> _Start:
    """The program behind `env`, and the variables it is given there."""
    words = [server.command, *server.args]
    variables = set(server.env)
    while os.path.basename(words[0]) == "env" and len(words) > 1:
        rest = words[1:]
        while rest and (rest[0].startswith("-") or "=" in rest[0]):
            word = rest.pop(0)
            if word in _ENV_VALUES:
                del rest[:1]
            elif not word.startswith("-"):
                variables.add(word.partition("=")[0])
        if not rest:
            break
        words = rest
    return _Start([os.path.basename(words[0]), *words[1:]], frozenset(variables))


def _takes_a_program(arguments: Sequence[str]) -> bool:
    """Is there a -c before the first argument that is no option? Letters may stand together: -lc."""
    words = iter(arguments)
    for word in words:
        if not word.startswith(("-", "+")) or word in ("-", "--"):
            return False
        if not word.startswith("--"):
            if word.startswith("-") and "c" in word:
                return True
            if word.endswith(("o", "O")):
                next(words, None)  # `-o pipefail`
    return False


# ---- secrets


def _secrets(server: StdioServer) -> Iterator[Problem]:
    """In the words of the file: there a placeholder is still one."""
    written = _written(server)
    arguments = [text for text, _ in written] if written is not None else server.args
    for index, option in literal_secrets(arguments):
        which = f"the value of {quoted(option)}" if option else f"argument {index + 1}"
        yield _caution(
            server,
            LITERAL_SECRET,
            f"{which} looks like a secret that is written out",
            "write ${NAME} and set NAME in your environment",
            "better still, give it in env: everybody on the machine can read the arguments of a process",
            where=written[index][1] if written is not None else None,
        )


def _written(server: StdioServer) -> list[tuple[str, Where]] | None:
    """The arguments as they stand in the file, and where; None if they cannot be found there."""
    if server.where is None:
        return None
    try:
        document = read_document(server.where.file)
    except ConfigError:
        return None
    entry = _entry(Spot(document, document.root), server.where)
    spot = entry.member("args") if entry is not None else None
    items = list(spot.items()) if spot is not None else []
    if len(items) != len(server.args):
        return None  # the file has changed meanwhile
    return [(str(item.node.value), document.where(item.node.start, item.path)) for item in items]


def _entry(spot: Spot, where: Where) -> Spot | None:
    """The server's entry, by the place of its key."""
    for _, member in spot.members():
        if where.path.startswith(member.path):
            found = member if member.where() == where else _entry(member, where)
            if found is not None:
                return found
    return None


def _caution(
    server: StdioServer, code: str, message: str, *hints: str, where: Where | None = None
) -> Problem:
    return Problem(
        code=code,
        message=f"server {quoted(server.name)}: {message}",
        where=where or server.where,
        server=server.name,
        hints=hints,
        severity="warning",
    )
