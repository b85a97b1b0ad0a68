"""What the client scenarios of the conformance suite want a client to do, done in front of plait.

The suite's own server is mounted in plait, and the official SDK's client talks to plait. So it is plait that
the suite's server meets and judges.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import mcp.types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from gateway import PATIENCE, write_config

MODERN = "2026-07-28"
INVALID_VALUES: dict[str, object] = {"object": {}, "array": [], "number": 1, "null": None}


async def list_tools(client: Client, context: str) -> None:
    await client.list_tools()


async def add_numbers(client: Client, context: str) -> None:
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def answer_with_defaults(client: Client, context: str) -> None:
    await client.list_tools()
    await client.call_tool("test_client_elicitation_defaults", {})


async def come_back(client: Client, context: str) -> None:
    await client.list_tools()
    await client.call_tool("test_reconnection", {})


async def answer_in_rounds(client: Client, context: str) -> None:
    await client.list_tools()
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        await client.call_tool(f"test_mrtr_{name}", {})


async def do_everything(client: Client, context: str) -> None:
    for tool in (await client.list_tools()).tools:
        if "headers" in tool.name or "hyphenated" in tool.name:
            await client.call_tool(tool.name, {})
    for resource in (await client.list_resources()).resources:
        if "path" in str(resource.uri) or "example.com" in str(resource.uri):
            await client.read_resource(str(resource.uri))
    for prompt in (await client.list_prompts()).prompts:
        await client.get_prompt(prompt.name)


async def make_the_calls_given(client: Client, context: str) -> None:
    await client.list_tools()
    for call in json.loads(context)["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


async def call_all_there_is(client: Client, context: str) -> None:
    """Whatever plait shows of that server; what it must not call, it must not show."""
    for tool in (await client.list_tools()).tools:
        if tool.name.startswith(("valid_", "invalid_")):
            fields: dict[str, dict[str, str]] = tool.input_schema["properties"]
            values = {name: INVALID_VALUES.get(field["type"], "x") for name, field in fields.items()}
            await client.call_tool(tool.name, values)


async def echo_the_schema(client: Client, context: str) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    await client.call_tool("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})


SCENARIOS: dict[str, Callable[[Client, str], Awaitable[None]]] = {
    "initialize": list_tools,
    "tools_call": add_numbers,
    "elicitation-sep1034-client-defaults": answer_with_defaults,
    "sse-retry": come_back,
    "request-metadata": list_tools,
    "sep-2322-client-request-state": answer_in_rounds,
    "http-standard-headers": do_everything,
    "http-custom-headers": make_the_calls_given,
    "http-invalid-tool-headers": call_all_there_is,
    "json-schema-ref-no-deref": list_tools,
    "json-schema-2020-12-preservation": echo_the_schema,
}


async def accept(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Say yes to everything, with the values that the server suggests."""
    if not isinstance(params, types.ElicitRequestFormParams):
        return types.ElicitResult(action="decline")
    fields: dict[str, dict[str, object]] = params.requested_schema["properties"]
    content = {name: field["default"] for name, field in fields.items() if "default" in field}
    return types.ElicitResult.model_validate({"action": "accept", "content": content or {"confirmed": True}})


async def through_plait(scenario: str, revision: str, folder: Path, url: str, context: str) -> None:
    judge = {"url": url, "plait": {"prefix": ""}}
    config = write_config(folder / "plait.json", {"judge": judge}, {"startWait": PATIENCE})
    arguments = ["-m", "plait", "mcp-server", "-c", str(config)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with os.fdopen(nowhere, "w") as log:
        client = Client(
            stdio_client(StdioServerParameters(command=sys.executable, args=arguments), errlog=log),
            mode=MODERN if revision == MODERN else "legacy",
            read_timeout_seconds=PATIENCE,
            elicitation_callback=accept,
            cache=None,
        )
        async with asyncio.timeout(PATIENCE), client:
            await SCENARIOS[scenario](client, context)
