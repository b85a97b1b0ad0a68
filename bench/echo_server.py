"""A raw MCP server with one tool, `echo`, as fast as plain Python can answer: the floor for every gateway.

Standard library only, so that `python -I -S` starts it in a few milliseconds. All lines of one read are
answered in one write. Give it a directory, and it leaves a file there once it is ready to read.
"""

import json
import os
import sys
from json.encoder import encode_basestring_ascii

CHUNK = 1 << 16
SERVER = b'{"name":"echo","version":"1"}'
TOOL = (
    b'{"name":"echo","description":"Answers with the text it was given.","inputSchema":{"type":"object",'
    b'"properties":{"text":{"type":"string"}},"required":["text"]}}'
)
HANDSHAKE_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


def answer(line: bytes) -> bytes:
    """The reply to one line; nothing for a notification or a response."""
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        return b""
    identifier = message["id"]
    address = b"%d" % identifier if type(identifier) is int else json.dumps(identifier).encode()
    if message["method"] == "tools/call":
        text = encode_basestring_ascii(message["params"]["arguments"]["text"]).encode()
        return b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":%b}]}}\n' % (
            address,
            text,
        )
    return b'{"jsonrpc":"2.0","id":%b,%b}\n' % (
        address,
        outcome(message["method"], message.get("params", {})),
    )


def outcome(method: str, params: dict[str, object]) -> bytes:
    """The `result` or `error` member for everything but a tool call."""
    match method:
        case "initialize":
            asked = params.get("protocolVersion")
            revision = asked if asked in HANDSHAKE_REVISIONS else HANDSHAKE_REVISIONS[-1]
            agreed = json.dumps(revision).encode()
            return b'"result":{"protocolVersion":%b,"capabilities":{"tools":{}},"serverInfo":%b}' % (
                agreed,
                SERVER,
            )
        case "tools/list":
            return b'"result":{"tools":[%b]}' % TOOL
        case "ping":
            return b'"result":{}'
        case _:
            return b'"error":{"code":-32601,"message":"Method not found"}'


def serve() -> None:
    """Answer until our input ends."""
    rest = b""
    while chunk := os.read(0, CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        replies = memoryview(b"".join(map(answer, filter(None, lines))))
        while replies:
            replies = replies[os.write(1, replies) :]


if __name__ == "__main__":
    for directory in sys.argv[1:]:
        with open(os.path.join(directory, f"{os.getpid()}.ready"), "w"):
            pass
    serve()
