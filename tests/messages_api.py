"""A server on loopback that speaks Anthropic's Messages API, and misbehaves where a test says so."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Self

import pytest
from msgspec import Struct

from loopback import Received, Site, plain

KEY = "sk-ant-hush-hush"
Message = dict[str, object]


class Status(Struct):
    """An answer that says no."""

    code: int
    kind: str = "api_error"
    message: str = "something"
    headers: dict[str, str] = {}


class Cut(Struct):
    """A stream that breaks off after so many events."""

    message: Message
    events: int = 3
    silently: bool = False
    """As if that were all of it."""


class Events(Struct):
    """A stream with just these events."""

    events: list[Message]


class Hang:
    """No answer at all, until the connection is gone."""


Scripted = Message | Status | Cut | Events | Hang


def said(text: str, stop: str = "end_turn", **usage: int) -> Message:
    return message([{"type": "text", "text": text}], stop, **usage)


def uses(*calls: tuple[str, object], text: str = "") -> Message:
    before: list[Message] = [{"type": "text", "text": text}] if text else []
    blocks = [
        {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": given}
        for index, (name, given) in enumerate(calls)
    ]
    return message([*before, *blocks], "tool_use")


def message(content: Sequence[Message], stop: str | None, **usage: int) -> Message:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5, **usage},
    }


def events(whole: Message) -> list[Message]:
    """The stream of a message, as the real API cuts it."""
    content = whole["content"]
    assert isinstance(content, list)
    start = {**whole, "content": [], "stop_reason": None}
    made: list[Message] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(content):
        made += _block(index, block)
    made.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
            "usage": whole["usage"],
        }
    )
    return [*made, {"type": "message_stop"}]


def _block(index: int, block: Message) -> list[Message]:
    if block["type"] == "text":
        text = str(block["text"])
        empty: Message = {"type": "text", "text": ""}
        half = len(text) // 2
        deltas = [{"type": "text_delta", "text": part} for part in (text[:half], text[half:]) if part]
    else:
        empty = {**block, "input": {}}
        given = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in (given[:3], given[3:])]
    return [
        {"type": "content_block_start", "index": index, "content_block": empty},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def stream(happening: Sequence[Message]) -> bytes:
    return "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in happening).encode()


class MessagesApi:
    """Answers from a list; the last one again and again. `async with MessagesApi(said("hi")) as api: …`"""

    def __init__(self, *script: Scripted) -> None:
        pytest.importorskip("anthropic")  # on a base install there is nobody who would ask
        self._script = list(script)
        self._site = Site(self._answer)
        self.asked = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._site.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._site.__aexit__(None, None, None)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._site.port}"

    @property
    def received(self) -> list[Received]:
        return self._site.received

    @property
    def requests(self) -> list[Message]:
        return [json.loads(each.body) for each in self._site.received]

    def messages(self, request: int = -1) -> list[Message]:
        found = self.requests[request]["messages"]
        assert isinstance(found, list)
        return found

    def tools(self, request: int = 0) -> list[object]:
        """The names of those that were on offer."""
        found = self.requests[request]["tools"]
        assert isinstance(found, list)
        return [tool["name"] for tool in found]

    def results(self) -> list[Message]:
        """What the model was told last of its calls."""
        content = self.messages()[-1]["content"]
        assert isinstance(content, list)
        return content

    async def _answer(self, received: Received, writer: asyncio.StreamWriter) -> None:
        self.asked.set()
        scripted = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        match scripted:
            case Status():
                writer.write(_refusal(scripted))
            case Cut():
                body = stream(events(scripted.message)[: scripted.events])
                writer.write(_streamed(body, 0 if scripted.silently else 100))
                await writer.drain()
                writer.close()
            case Events():
                writer.write(_streamed(stream(scripted.events)))
            case Hang():
                await asyncio.Event().wait()
            case _:
                writer.write(_streamed(stream(events(scripted))))


def _refusal(status: Status) -> bytes:
    body = {"type": "error", "error": {"type": status.kind, "message": status.message}}
    headers = {"Content-Type": "application/json", **status.headers}
    named = {name.replace("-", "_"): value for name, value in headers.items()}
    return plain(json.dumps(body).encode(), status.code, **named)


def _streamed(body: bytes, missing: int = 0) -> bytes:
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(body) + missing}\r\n\r\n"
    )
    return head.encode() + body


@contextlib.asynccontextmanager
async def speaking(*script: Scripted) -> AsyncIterator[MessagesApi]:
    async with MessagesApi(*script) as api:
        yield api


Pauses = list[float]


def noting(pauses: Pauses) -> Callable[[float], "asyncio.Future[None]"]:
    """A sleep that takes no time, and is remembered."""

    def sleep(seconds: float) -> "asyncio.Future[None]":
        pauses.append(seconds)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    return sleep
