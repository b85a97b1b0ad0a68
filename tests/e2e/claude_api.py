"""A stand-in for the Messages API on loopback: it has the model call one tool, and repeat what came of it."""

import json
from collections.abc import Iterator
from typing import Self

from aiohttp import web

Block = dict[str, object]


class MessagesApi:
    """`async with MessagesApi(tool, arguments) as api:`; `api.url` is for ANTHROPIC_BASE_URL."""

    def __init__(self, tool: str, arguments: Block) -> None:
        self._call: Block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": arguments}
        self.offered: set[str] = set()
        """The names of the tools that the model was offered."""
        self.url = ""

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.router.add_post("/v1/messages", self._answer)
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        names = {str(tool["name"]) for tool in asked.get("tools", [])}
        self.offered |= names
        block = self._next(names, asked["messages"])
        message = _message(str(asked["model"]), block)
        if not asked.get("stream"):
            return web.json_response(message)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in _events(message, block):
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        return response

    def _next(self, names: set[str], messages: list[Block]) -> Block:
        content = messages[-1]["content"]
        results = (
            [part for part in content if part["type"] == "tool_result"] if isinstance(content, list) else []
        )
        if results:
            return {"type": "text", "text": f"the tool said {json.dumps(results[0]['content'])}"}
        if self._call["name"] in names:
            return self._call
        return {"type": "text", "text": "nothing to call"}


def _message(model: str, block: Block) -> Block:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [block],
        "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _events(message: Block, block: Block) -> Iterator[Block]:
    """The same message as a stream: begun empty, then its one block, then why it ends."""
    is_call = block["type"] == "tool_use"
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    empty = {**block, "input": {}} if is_call else {**block, "text": ""}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    text: Block = {"type": "text_delta", "text": block.get("text")}
    call: Block = {"type": "input_json_delta", "partial_json": json.dumps(block.get("input"))}
    yield {"type": "content_block_delta", "index": 0, "delta": call if is_call else text}
    yield {"type": "content_block_stop", "index": 0}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}
