"""The smallest honest MCP server: one tool, `echo`. Standard library only."""

import json
import sys

TOOL = {"name": "echo", "description": "Says it again.", "inputSchema": {"type": "object"}}


def answer(method: str, params: dict[str, object]) -> dict[str, object]:
    if method == "initialize":
        info = {"name": "echo", "version": "1"}
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": info,
        }
    if method == "tools/list":
        return {"tools": [TOOL]}
    return {"content": [{"type": "text", "text": json.dumps(params.get("arguments"))}]}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            result = answer(message["method"], message.get("params", {}))
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
