"""The server that the conformance suite wants to meet: `conformance_server.py stdio | http [PORT]`."""

import asyncio
import socket
import sys
import warnings
from collections.abc import Callable
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import Prompt
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.types import (
    AudioContent,
    ClientCapabilities,
    EmbeddedResource,
    ImageContent,
    JSONRPCMessage,
    SamplingCapability,
    TextContent,
    TextResourceContents,
)
from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY
from pydantic import Field

import conformance_documents as documents
import conformance_questions as questions

WAVE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
PAUSE = 0.05
"""Seconds between two notifications of a tool, as the suite asks."""

EXTRA = "test_extra"
"""A tool, and a prompt, that come and go."""

RETRY = 0.1
"""Seconds after which a client whose stream was closed shall come back."""

RICH_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


class Events(EventStore):
    """All that was sent, for a client that comes back with the id of the last event it has seen."""

    def __init__(self) -> None:
        self._sent: list[tuple[StreamId, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        self._sent.append((stream_id, message))
        return str(len(self._sent))

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        last = int(last_event_id)
        if not 0 < last <= len(self._sent):
            return None
        stream = self._sent[last - 1][0]
        for number, (owner, message) in enumerate(self._sent[last:], last + 1):
            if owner == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def add_answers(server: MCPServer) -> None:
    """The tools that only answer."""

    @server.tool(structured_output=False)
    def test_simple_text() -> str:
        """Answers with a text."""
        return "This is a simple text response for testing."

    @server.tool(structured_output=False)
    def test_image_content() -> list[ImageContent]:
        """Answers with a picture."""
        return [documents.picture()]

    @server.tool(structured_output=False)
    def test_audio_content() -> list[AudioContent]:
        """Answers with a sound."""
        return [AudioContent(data=WAVE, mime_type="audio/wav")]

    @server.tool(structured_output=False)
    def test_embedded_resource() -> list[EmbeddedResource]:
        """Answers with a resource."""
        return [_embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]

    @server.tool(structured_output=False)
    def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
        """Answers with one of each."""
        data = '{"test":"data","value":123}'
        resource = _embedded("test://mixed-content-resource", "application/json", data)
        return [TextContent(text="Multiple content types test:"), documents.picture(), resource]

    @server.tool(structured_output=False)
    def test_error_handling() -> str:
        """Always fails."""
        raise ValueError("This tool intentionally returns an error for testing")

    @server.tool(structured_output=False)
    def test_header_parameter(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
    ) -> str:
        """Has a parameter that travels as a header too."""
        return region


def _embedded(uri: str, kind: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=kind, text=text))


def add_rich_schema(server: MCPServer) -> None:
    """A tool whose schema uses what JSON Schema 2020-12 has and older dialects have not."""

    @server.tool(structured_output=False)
    def json_schema_2020_12_tool() -> str:
        """Has a rich schema."""
        return "ok"

    tool = server._tool_manager.get_tool("json_schema_2020_12_tool")
    assert tool is not None
    tool.parameters = RICH_SCHEMA


def add_reports(server: MCPServer) -> None:
    """The tools that tell something before they answer."""

    @server.tool(structured_output=False)
    async def test_tool_with_logging(context: Context) -> str:
        """Logs three times."""
        await context.info("Tool execution started")
        await asyncio.sleep(PAUSE)
        await context.info("Tool processing data")
        await asyncio.sleep(PAUSE)
        await context.info("Tool execution completed")
        return "Tool with logging executed successfully"

    @server.tool(structured_output=False)
    async def test_logging_tool(context: Context) -> str:
        """Logs once, for those who asked for logs."""
        await context.info("This is a log message")
        return "logged"

    @server.tool(structured_output=False)
    async def test_tool_with_progress(context: Context) -> str:
        """Reports progress three times."""
        for done in (0, 50, 100):
            await context.report_progress(done, 100, f"Completed step {done} of 100")
            await asyncio.sleep(PAUSE)
        return "Tool with progress executed successfully"

    @server.tool(structured_output=False)
    async def test_reconnection(context: Context) -> str:
        """Closes the stream in the middle of the call; the answer waits for whoever comes back."""
        await context.info("Before the stream is closed")
        await context.close_sse_stream()
        # Long after the client is back. The SDK's server loses an answer that comes while it replays
        # (a comment of its `_replay_events` says so), and RETRY would be just that moment.
        await asyncio.sleep(5 * RETRY)
        return "Reconnection test completed successfully"


def add_changes(server: MCPServer) -> None:
    """The tools that change what the server offers, and what only some clients may call."""

    @server.tool(structured_output=False)
    async def test_trigger_tool_change(context: Context) -> str:
        """Has one tool more, or less, from now on."""
        if server._tool_manager.get_tool(EXTRA) is None:
            server.add_tool(lambda: "here today", name=EXTRA, description="Comes and goes.")
        else:
            server.remove_tool(EXTRA)
        await context.notify_tools_changed()
        return "changed"

    @server.tool(structured_output=False)
    async def test_trigger_prompt_change(context: Context) -> str:
        """Has one prompt more, or less, from now on."""
        if server._prompt_manager.get_prompt(EXTRA) is None:
            server.add_prompt(
                Prompt.from_function(lambda: "here today", name=EXTRA, description="Comes and goes.")
            )
        else:
            server.remove_prompt(EXTRA)
        await context.notify_prompts_changed()
        return "changed"

    @server.tool(structured_output=False)
    async def test_missing_capability(context: Context) -> str:
        """Needs a client that can sample."""
        if not context.session.check_client_capability(ClientCapabilities(sampling=SamplingCapability())):
            raise MCPError(
                MISSING_REQUIRED_CLIENT_CAPABILITY,
                "this tool needs a client that can sample",
                {"requiredCapabilities": {"sampling": {}}},
            )
        return "the client can sample"


def reference() -> MCPServer:
    server = MCPServer("conformance", version="1.0.0", log_level="ERROR")
    parts: tuple[Callable[[MCPServer], None], ...] = (
        add_answers,
        add_rich_schema,
        add_reports,
        add_changes,
        questions.add_requests,
        questions.add_rounds,
        documents.add_resources,
        documents.add_prompts,
        documents.add_requests,
    )
    for add in parts:
        add(server)
    return server


def main(kind: str, port: int = 0) -> None:
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    server = reference()
    if kind == "stdio":
        server.run("stdio")
        return
    app = server.streamable_http_app(event_store=Events(), retry_interval=int(1000 * RETRY))
    listening = socket.create_server(("127.0.0.1", port))
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
