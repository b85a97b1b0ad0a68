"""A server without an opinion: it sends the bytes it finds in a folder and writes down the bytes it gets.

Usage: raw_server.py FOLDER. For a request of `tools/call` it looks, anew each time, for

    tools_call.before   bytes to write first, such as a notification or garbage; $TOKEN is the progress token
    tools_call.gate     a named pipe; the answer comes when there is a byte to read in it
    tools_call.error    the bytes of the answer's error
    tools_call.result   the bytes of the answer's result

and likewise for every other method. What it gets is appended to FOLDER/received, before it answers.
"""

import contextlib
import json
import sys
from pathlib import Path
from typing import BinaryIO

CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
    "logging": {},
}
EMPTY = {
    "tools/list": b'{"tools":[]}',
    "prompts/list": b'{"prompts":[]}',
    "resources/list": b'{"resources":[]}',
    "resources/templates/list": b'{"resourceTemplates":[]}',
}


def main(folder: Path, lines: BinaryIO, out: BinaryIO) -> None:
    with (folder / "received").open("ab", 0) as log:
        for line in lines:
            log.write(line)
            message = json.loads(line)
            if "method" in message and "id" in message:
                answer(folder, message, out)


def answer(folder: Path, message: dict[str, object], out: BinaryIO) -> None:
    name = str(message["method"]).replace("/", "_")
    before, gate, error, result = (
        folder / f"{name}.{ending}" for ending in ("before", "gate", "error", "result")
    )
    if before.exists():
        out.write(before.read_bytes().replace(b"$TOKEN", token_of(message)))
        out.flush()
    with contextlib.suppress(FileNotFoundError), gate.open("rb", 0) as pipe:
        pipe.read(1)
    id = json.dumps(message["id"]).encode()
    if error.exists():
        out.write(b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (id, error.read_bytes()))
    else:
        payload = result.read_bytes() if result.exists() else by_default(message)
        out.write(b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (id, payload))
    out.flush()


def token_of(message: dict[str, object]) -> bytes:
    match message:
        case {"params": {"_meta": {"progressToken": token}}}:
            return json.dumps(token).encode()
    return b"null"


def by_default(message: dict[str, object]) -> bytes:
    params = message.get("params")
    if message["method"] != "initialize" or not isinstance(params, dict):
        return EMPTY.get(str(message["method"]), b"{}")
    greeting = {
        "protocolVersion": params["protocolVersion"],
        "capabilities": CAPABILITIES,
        "serverInfo": {"name": "raw", "version": "1"},
    }
    return json.dumps(greeting).encode()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)
