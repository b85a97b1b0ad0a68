"""The process that every command starts as: it confines itself, and becomes the command.

It reads an order from its standard input, so nothing of it shows in the list of processes. One plain
command replaces it; for pipes and lists it stays and does what a shell would, with programs and words
that are decided already.
"""

from __future__ import annotations

import marshal
import os

from plait.providers.tools.sandbox import confine

TYPE_CHECKING = False  # as typing's, which is too slow to import here
if TYPE_CHECKING:
    import signal
    from typing import NoReturn

    Redirections = list[tuple[int, str, bytes]]
    Command = tuple[bytes, list[bytes], Redirections]
    Pipeline = tuple[str, list[Command]]
    Environment = dict[bytes, bytes]
    Order = tuple[list[str], list[str], dict[str, int], bool, Environment, list[Pipeline]]
else:
    import _signal as signal

CANNOT_RUN, NOT_FOUND = 126, 127  # as shells have it
FLAGS = {
    "<": os.O_RDONLY,
    ">": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    ">>": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
}


def main() -> NoReturn:
    """Carry out the order on standard input."""
    order: Order = marshal.loads(read_all(0))
    readable, writable, limits, network, environment, pipelines = order
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # Python ignores these, and what is ignored stays so through an exec: `yes | head` would never end.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        confine(readable, writable, limits, network=network)
    except OSError as problem:
        fail(f"the sandbox cannot be set up, so nothing was run: {problem}", CANNOT_RUN)
    match pipelines:
        case [(_, [command])]:
            become(command, environment)
    try:
        os._exit(run(pipelines, environment))
    except OSError as problem:  # of a fork or a pipe
        fail(str(problem), CANNOT_RUN)


def read_all(descriptor: int) -> bytes:
    """Everything up to the end of a pipe."""
    chunks = []
    while chunk := os.read(descriptor, 65536):
        chunks.append(chunk)
    return b"".join(chunks)


def run(pipelines: list[Pipeline], environment: Environment) -> int:
    """Run each pipeline whose turn it is; the status of the last one that ran."""
    status = 0
    for when, commands in pipelines:
        if (when == "&&" and status != 0) or (when == "||" and status == 0):
            continue
        status = run_pipeline(commands, environment)
    return status


def run_pipeline(commands: list[Command], environment: Environment) -> int:
    """Run commands at the same time, each reading what the one before writes; the last one's status."""
    source = os.open(os.devnull, os.O_RDONLY)
    last = 0
    for position, command in enumerate(commands, 1):
        following, sink = os.pipe() if position < len(commands) else (-1, -1)
        last = os.fork()
        if last == 0:
            attach(source, sink)
            become(command, environment)
        for descriptor in (source, sink):
            if descriptor != -1:
                os.close(descriptor)
        source = following
    return await_all(last)


def attach(source: int, sink: int) -> None:
    """Give a command its place in a pipeline."""
    os.dup2(source, 0)
    if sink != -1:
        os.dup2(sink, 1)


def await_all(last: int) -> int:
    """Wait for every command that was started; the status of this one."""
    status = 0
    try:
        while True:
            pid, ended = os.wait()
            if pid == last:
                code = os.waitstatus_to_exitcode(ended)
                status = code if code >= 0 else 128 - code
    except ChildProcessError:
        return status


def become(command: Command, environment: Environment) -> NoReturn:
    """Turn this process into the command."""
    executable, argv, redirections = command
    try:
        for descriptor, operator, target in redirections:
            redirect(descriptor, operator, target)
        os.execve(executable, argv, environment)
    except FileNotFoundError as problem:
        fail(str(problem), NOT_FOUND)
    except OSError as problem:
        fail(str(problem), CANNOT_RUN)


def redirect(descriptor: int, operator: str, target: bytes) -> None:
    """Lead one of the streams elsewhere; Landlock refuses what lies outside."""
    if operator == ">&":
        os.dup2(int(target), descriptor)
        return
    opened = os.open(target, FLAGS[operator], 0o666)
    os.dup2(opened, descriptor)
    os.close(opened)


def fail(reason: str, status: int) -> NoReturn:
    """Say why the command was not run, where its own complaints would be."""
    try:
        os.write(2, f"plait: {reason}\n".encode(errors="replace"))
    finally:
        os._exit(status)
