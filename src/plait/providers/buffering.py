"""Buffer: the events of a stream become one result, in the order in which they came.

What seed 004 calls buffering, with what was decided where its sources disagree: adjacent text is one
block (X-42), an error that is not recoverable makes the result an error and the stream may go on (X-41),
a stream without content is one empty text block (X-43), and nothing is ever put into the text that the
tool did not say (BP-20). What is to be noted, for programs, is under `_meta`.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from plait.config.model import StreamSettings
from plait.providers.stream_events import KINDS, LAST, StreamEvent, content_of
from plait.wire.tools import CallToolResult, ContentBlock

NOTED = "plait/stream"
"""The `_meta` key of a result that was streamed, where there is something to note."""
UNSAID = "the tool failed, and did not say why"


class Buffer:
    """Pure: it is given events, and knows no clock."""

    def __init__(self, limits: StreamSettings) -> None:
        self._limits = limits
        self._blocks: list[ContentBlock] = []
        self._text: list[str] = []
        self._bytes = 0
        self._recovered: list[str] = []
        self.events = 0
        self.skipped = 0
        """Events of kinds that we do not know."""
        self.is_error = False
        self.over = False
        """Has it said that it is done, or was it too much? Nothing is taken any more."""

    def take(self, event: StreamEvent | None) -> None:
        """None is something that is no event. Raises what the value of one that cannot be sent raises."""
        if self.over:
            return
        if event is not None and event.kind in LAST:
            self.over = True
            return
        self.events += 1
        if self.events > self._limits.items:
            self.cut(f"more than {self._limits.items} events", "stream.items")
        elif event is None or event.kind not in KINDS:
            self.skipped += 1
        else:
            self._add(event)

    def _add(self, event: StreamEvent) -> None:
        match event.kind:
            case "content":
                self._add_content(content_of(event))
            case "tool_use":
                name, input = event.text("name") or "", event.fields.get("input", {})
                given = input if isinstance(input, str) else _as_json(input)
                self._add_block(ContentBlock.text(f"[Tool: {name}] {given}"))
            case "error" if event.fields.get("recoverable") is True:
                self._note(event.text("message") or UNSAID)
            case "error":
                self.fail(event.text("message") or UNSAID)

    def _add_content(self, value: object) -> None:
        match value:
            case None:
                pass
            case str():
                self._add_text(value)
            case ContentBlock():
                self._add_block(value)
            case _:
                self._add_block(ContentBlock.text(_as_json(value)))

    def _add_text(self, text: str) -> None:
        """As much of it as there is room for."""
        data = text.encode(errors="replace")  # half a character cannot be sent
        room = self._limits.bytes - self._bytes
        self._text.append(data[:room].decode(errors="ignore"))
        self._bytes += len(data)
        if len(data) > room:
            self._too_large()

    def _add_block(self, block: ContentBlock) -> None:
        self._bytes += len(msgspec.json.encode(block.wire()))
        if self._bytes > self._limits.bytes:
            self._too_large()
        else:
            self._flush()
            self._blocks.append(block)

    def _note(self, message: str) -> None:
        self._bytes += len(message)
        if self._bytes > self._limits.bytes:
            self._too_large()
        else:
            self._recovered.append(message)

    def _too_large(self) -> None:
        self.cut(f"more than {self._limits.bytes} bytes", "stream.bytes")

    def fail(self, message: str) -> None:
        """What it fails with is a block of its own, where it came; the stream may go on."""
        self.is_error = True
        self._flush()
        self._blocks.append(ContentBlock.text(message.encode(errors="replace").decode()))

    def cut(self, much: str, setting: str) -> None:
        """It is over, and what came so far is kept."""
        self.fail(f"the stream was stopped: {much}. What came before is kept; '{setting}' is the limit")
        self.over = True

    def _flush(self) -> None:
        text = "".join(self._text)
        self._text.clear()
        if text:
            self._blocks.append(ContentBlock.text(text))

    def result(self) -> CallToolResult:
        self._flush()
        noted = {"recovered": self._recovered, "skipped": self.skipped}
        noted = {name: value for name, value in noted.items() if value}
        more: Mapping[str, object] = {"_meta": {NOTED: noted}} if noted else {}
        return CallToolResult(tuple(self._blocks) or (ContentBlock.text(""),), self.is_error, more=more)


def _as_json(value: object) -> str:
    plain = msgspec.to_builtins(value) if isinstance(value, Struct) else value
    return msgspec.json.encode(plain).decode()
