"""A server that misbehaves on request: each tool is one fault, each flag a fault at the start.

Standard library only and raw bytes, so that it can break every rule and starts fast. Flags:
    --record FILE    append every line received      --starts FILE   append the pid at every start
    --die-if FILE    exit at the start if it exists  --tools FILE    more names to list, one per line
    --deaf           never read a line               --mute          never answer `initialize`
    --die            exit when greeted               --noisy         200 KB to stderr first
    --stubborn       ignore end of input and SIGTERM
"""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator

from replies import BEGINNING, REPLIES

CHUNK = 1 << 20


def write(data: bytes) -> None:
    """All of it to stdout, whatever it is."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


class Server:
    """Reads lines and does what each tool is named for."""

    def __init__(self, flags: argparse.Namespace) -> None:
        self.flags = flags
        self.lines = self._read()
        self.waiting: list[bytes] = []

    def _read(self) -> Iterator[bytes]:
        rest = b""
        while chunk := os.read(0, CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                note(self.flags.record, line)
                yield line

    def serve(self) -> None:
        """Answer until our input ends."""
        for line in self.lines:
            message = json.loads(line)
            if "id" in message and "method" in message:
                id = json.dumps(message["id"]).encode()
                self._answer(id, message["method"], message.get("params", {}))
        while self.flags.stubborn:
            time.sleep(100)

    def _answer(self, id: bytes, method: str, params: dict[str, object]) -> None:
        match method:
            case "initialize":
                self._greet(id, params["protocolVersion"])
            case "tools/list":
                names = [*REPLIES, *FAULTS, *extra(self.flags.tools)]
                self.result(
                    id, {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
                )
            case "tools/call":
                self._call(id, str(params["name"]), params["arguments"])
            case _:
                write(b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32601,"message":"no"}}\n' % id)

    def _greet(self, id: bytes, revision: object) -> None:
        if self.flags.die:
            sys.exit(3)
        if not self.flags.mute:
            info = {"name": "misbehaving", "version": "1"}
            tools = {"tools": {"listChanged": True}, "logging": {}}
            self.result(id, {"protocolVersion": revision, "capabilities": tools, "serverInfo": info})

    def _call(self, id: bytes, name: str, arguments: object) -> None:
        assert isinstance(arguments, dict)
        if name in REPLIES:
            write(REPLIES[name].replace(b"ID", id))
        elif name in FAULTS:
            FAULTS[name](self, id, arguments)
        else:
            self.say(id, name)

    def result(self, id: bytes, result: object) -> None:
        write(b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (id, json.dumps(result).encode()))

    def say(self, id: bytes, text: object) -> None:
        """An honest answer."""
        self.result(id, {"content": [{"type": "text", "text": str(text)}]})


Arguments = dict[str, object]
Fault = Callable[[Server, bytes, Arguments], None]


def number(arguments: Arguments, name: str) -> int:
    value = arguments[name]
    assert isinstance(value, int)
    return value


# ---- honest tools


def echo(server: Server, id: bytes, arguments: Arguments) -> None:
    server.say(id, arguments["text"])


def env(server: Server, id: bytes, arguments: Arguments) -> None:
    server.say(id, json.dumps(dict(os.environ)))


def pid(server: Server, id: bytes, arguments: Arguments) -> None:
    server.say(id, os.getpid())


def slow(server: Server, id: bytes, arguments: Arguments) -> None:
    """Answered when `release` is called, and not before."""
    server.waiting.append(id)


def release(server: Server, id: bytes, arguments: Arguments) -> None:
    for waiting in server.waiting:
        server.say(waiting, "at last")
    server.waiting.clear()
    server.say(id, "released")


def consult(server: Server, id: bytes, arguments: Arguments) -> None:
    """Ask the client something, and tell what came back."""
    write(
        b'{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}\n'
    )
    server.say(id, next(server.lines).decode())


# ---- lines that do not end, or not soon


def half_line_then_hang(server: Server, id: bytes, arguments: Arguments) -> None:
    write(BEGINNING.replace(b"ID", id))


def half_line_then_exit(server: Server, id: bytes, arguments: Arguments) -> None:
    write(BEGINNING.replace(b"ID", id))
    sys.exit(3)


def long_line(server: Server, id: bytes, arguments: Arguments) -> None:
    write(BEGINNING.replace(b"ID", id))
    for _ in range(number(arguments, "megabytes")):
        write(b"x" * CHUNK)
    write(b'"}]}}\n')


def endless_line(server: Server, id: bytes, arguments: Arguments) -> None:
    write(BEGINNING.replace(b"ID", id) if arguments.get("readable") else b"x")
    while True:
        write(b"x" * CHUNK)


# ---- floods, and pipes that are not used as they should be


def flood(server: Server, id: bytes, arguments: Arguments) -> None:
    """This many of this notification, then the answer."""
    body = json.dumps({"jsonrpc": "2.0", "method": arguments["method"], "params": arguments["params"]})
    count = number(arguments, "count")
    for _ in range(0, count, 1000):
        write((body + "\n").encode() * min(count, 1000))
    server.say(id, "flooded")


def complain(server: Server, id: bytes, arguments: Arguments) -> None:
    """This many megabytes to stderr, then the answer."""
    for _ in range(number(arguments, "megabytes")):
        os.write(2, b"complaint\n" * (CHUNK // 10))
    server.say(id, "complained")


def stop_reading(server: Server, id: bytes, arguments: Arguments) -> None:
    server.say(id, "I read no more")
    time.sleep(1000)


def close_output(server: Server, id: bytes, arguments: Arguments) -> None:
    os.close(1)
    time.sleep(1000)


# ---- processes


def leave(server: Server, id: bytes, arguments: Arguments) -> None:
    print("I am leaving", file=sys.stderr, flush=True)
    sys.exit(3)


def leave_a_child_behind(server: Server, id: bytes, arguments: Arguments) -> None:
    """Exit while a child holds our stdout."""
    if os.fork() == 0:
        time.sleep(1000)
    sys.exit(3)


def daemonize(server: Server, id: bytes, arguments: Arguments) -> None:
    """Double fork and setsid: no parent, no group, no session leads back to us. Tells its pid."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(writer, str(os.getpid()).encode())
        time.sleep(1000)
    os.wait()
    server.say(id, os.read(reader, 100).decode())


def fork_many(server: Server, id: bytes, arguments: Arguments) -> None:
    for index in range(number(arguments, "count")):
        if os.fork() == 0:
            if index % 2:
                os.setsid()
            time.sleep(1000)
    server.say(id, "forked")


def hog(server: Server, id: bytes, arguments: Arguments) -> None:
    """Take memory until there is none."""
    held = []
    while True:
        held.append(bytearray(CHUNK))


HONEST: list[Fault] = [echo, env, pid, slow, release, consult]
UNREADABLE: list[Fault] = [half_line_then_hang, half_line_then_exit, long_line, endless_line]
UNRULY: list[Fault] = [flood, complain, stop_reading, close_output]
MORTAL: list[Fault] = [leave, leave_a_child_behind, daemonize, fork_many, hog]
FAULTS = {fault.__name__: fault for fault in (*HONEST, *UNREADABLE, *UNRULY, *MORTAL)}


# ---- the start


def note(file: str | None, line: bytes) -> None:
    if file is not None:
        with open(file, "ab") as output:
            output.write(line + b"\n")


def extra(file: str | None) -> list[str]:
    if file is None or not os.path.exists(file):
        return []
    with open(file) as names:
        return names.read().split()


def read_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("--record", "--starts", "--die-if", "--tools"):
        parser.add_argument(name)
    for name in ("--deaf", "--mute", "--die", "--noisy", "--stubborn"):
        parser.add_argument(name, action="store_true")
    return parser.parse_args()


def main() -> None:
    flags = read_flags()
    note(flags.starts, str(os.getpid()).encode())
    if flags.noisy:
        os.write(2, b"warming up\n" * 20_000)
    if flags.die_if is not None and os.path.exists(flags.die_if):
        sys.exit("the file that kills me is there")
    if flags.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while flags.deaf:
        time.sleep(1000)
    Server(flags).serve()


if __name__ == "__main__":
    main()
