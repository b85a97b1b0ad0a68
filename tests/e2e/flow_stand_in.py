"""Stands in for claude-flow: 353 tools in one long line, an old revision, and resources it has not got."""

import json
import sys

TOOLS = [
    {
        "name": "task_create" if number == 0 else f"tool_{number:03}",
        "description": "Does one of very many things. " * 20,
        "inputSchema": {"type": "object", "properties": {"description": {"type": "string"}}},
    }
    for number in range(353)
]


def answer(method: str, params: dict[str, object]) -> dict[str, object]:
    match method:
        case "initialize":
            offers = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
            info = {"name": "claude-flow", "version": "3.0.0"}
            return {"result": {"protocolVersion": "2024-11-05", "capabilities": offers, "serverInfo": info}}
        case "tools/list":
            return {"result": {"tools": TOOLS}}
        case "tools/call":
            said = json.dumps([params["name"], params["arguments"], params.get("_meta")])
            return {"result": {"content": [{"type": "text", "text": said}]}}
        case "ping":
            return {"result": {}}
    return {"error": {"code": -32601, "message": f"Method not found: {method}"}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        told = {"jsonrpc": "2.0", "id": message["id"], **answer(message["method"], message.get("params", {}))}
        print(json.dumps(told), flush=True)
