"""What a tool that streams yields: events, each of a kind; the kinds that are not known are no mistake."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol, Self, runtime_checkable

from msgspec import Struct

from plait.wire.spec import LEVELS
from plait.wire.tools import ContentBlock

LAST = frozenset(("complete", "done"))
"""The kinds that end a stream; its own end does too."""
KINDS = LAST | {"start", "content", "progress", "tool_use", "tool_result", "log", "error", "request"}
BLOCKS = frozenset(("text", "image", "audio", "resource", "resource_link"))
_KIND_KEYS = ("type", "kind", "event")
_OTHER_NAMES = {"data": "content"}
_INNER_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@runtime_checkable
class EventLike(Protocol):
    """All that is asked of an event of somebody's own class."""

    @property
    def kind(self) -> str: ...
    @property
    def fields(self) -> Mapping[str, object]: ...


class StreamEvent(Struct, frozen=True):
    """One event of a stream. Make it by the name of its kind: `StreamEvent.content("Hello")`."""

    kind: str
    fields: Mapping[str, object] = {}

    @classmethod
    def start(cls) -> Self:
        """Says nothing but that the stream has begun."""
        return cls("start")

    @classmethod
    def content(cls, value: object) -> Self:
        """A part of the result: text, which is joined to the text before it; a ContentBlock; or JSON."""
        return cls("content", {"content": value})

    @classmethod
    def progress(
        cls, value: float | None = None, total: float | None = None, message: str | None = None
    ) -> Self:
        return cls("progress", {"progress": value, "total": total, "message": message})

    @classmethod
    def tool_use(cls, name: str, input: object = None) -> Self:
        """The tool uses another one: a block of its own in the result."""
        return cls("tool_use", {"name": name, "input": {} if input is None else input})

    @classmethod
    def tool_result(cls, name: str, result: object) -> Self:
        """What the other one gave back: no part of the result, but of the log."""
        return cls("tool_result", {"name": name, "result": result})

    @classmethod
    def log(cls, data: object, level: str = "info", logger: str | None = None) -> Self:
        return cls("log", {"data": data, "level": level, "logger": logger})

    @classmethod
    def error(cls, message: str, *, recoverable: bool = False) -> Self:
        """A recoverable one is noted; any other makes the result an error. The stream may go on."""
        return cls("error", {"message": message, "recoverable": recoverable})

    @classmethod
    def request(cls, data: object) -> Self:
        """Something that a client may answer by calling a tool; see the guide."""
        return cls("request", {"data": data})

    @classmethod
    def complete(cls) -> Self:
        return cls("complete")

    @classmethod
    def done(cls) -> Self:
        return cls("done")

    @classmethod
    def of(cls, fields: Mapping[str, object]) -> Self | None:
        """From a mapping with its kind under `type`, `kind` or `event`, in any usual spelling."""
        for key in _KIND_KEYS:
            kind = fields.get(key)
            if isinstance(kind, str):
                return cls(kind_of(kind), {name: value for name, value in fields.items() if name != key})
        return None

    def text(self, *names: str) -> str | None:
        """The first of these fields that is text; half a character in it cannot be sent."""
        found = next((value for name in names if isinstance(value := self.fields.get(name), str)), None)
        return None if found is None else found.encode(errors="replace").decode()

    def number(self, *names: str) -> float | None:
        """The first of these fields that is a number."""
        for name in names:
            value = self.fields.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return float(value)
        return None


def as_event(given: object) -> StreamEvent | None:
    """Whatever a generator yields as an event; None if it is none. Text and blocks are content."""
    match given:
        case StreamEvent():
            return given
        case str() | ContentBlock():
            return StreamEvent.content(given)
        case Mapping():
            return StreamEvent.of(given)
        case EventLike():
            return StreamEvent(kind_of(given.kind), given.fields)
    return None


def kind_of(spelling: str) -> str:
    """`ToolUse`, `toolUse` and `tool-use` are `tool_use`; `data` is `content`."""
    name = _INNER_CAPITAL.sub("_", spelling).lower().replace("-", "_")
    return _OTHER_NAMES.get(name, name)


def content_of(event: StreamEvent) -> str | ContentBlock | object | None:
    """The value of a content event: text, a block, or other JSON; None if it has none."""
    value = next(
        (event.fields[name] for name in ("text", "content", "data") if event.fields.get(name) is not None),
        None,
    )
    if isinstance(value, Mapping) and value.get("type") in BLOCKS:
        return ContentBlock.of(value)
    return value


class Notice(Struct, frozen=True):
    """What a log message to the client says of an event."""

    level: str
    data: object
    logger: str | None = None


def notice_of(event: StreamEvent) -> Notice | None:
    """The log message of an event, for clients that asked for such; None for kinds that have none."""
    match event.kind:
        case "content":
            value = content_of(event)
            plain = value.wire() if isinstance(value, ContentBlock) else value
            return None if plain is None or plain == "" else Notice("info", plain)
        case "log":
            level = event.text("level")
            data = next((event.fields[name] for name in ("data", "message") if name in event.fields), None)
            return Notice(level if level in LEVELS else "info", data, event.text("logger"))
        case "error":
            level = "warning" if event.fields.get("recoverable") is True else "error"
            return Notice(level, event.text("message") or dict(event.fields))
        case "tool_use" | "request":
            return Notice("notice", {event.kind: dict(event.fields)})
        case "tool_result":
            return Notice("debug", {event.kind: dict(event.fields)})
    return None
