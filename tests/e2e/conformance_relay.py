"""What the conformance suite starts as a client: the test at `PORT` does the work, and this waits for it."""

import json
import os
import socket
import sys


def main(port: str, url: str) -> int:
    context = os.environ.get("MCP_CONFORMANCE_CONTEXT", "")
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        connection.sendall(json.dumps({"url": url, "context": context}).encode() + b"\n")
        return 0 if connection.recv(16) == b"done\n" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
