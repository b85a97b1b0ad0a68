"""Tools, calls and results as people who write tools and guards see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from msgspec import UNSET, Struct, UnsetType, field

ANY_OBJECT: Mapping[str, object] = {"type": "object"}


class ToolDefinition(Struct, frozen=True):
    """One tool as clients see it. What else is said of it (title, annotations, icons …) is in `more`."""

    name: str
    description: str = ""
    input_schema: Mapping[str, object] = field(default_factory=lambda: ANY_OBJECT)
    more: Mapping[str, object] = {}

    @classmethod
    def of(cls, fields: Mapping[str, object]) -> Self:
        """From its listed form; `input_schema` is accepted beside `inputSchema`."""
        rest = dict(fields)
        schema = rest.pop("inputSchema", None) or rest.pop("input_schema", None)
        name, description = rest.pop("name"), rest.pop("description", None)
        return cls(
            str(name), str(description or ""), schema if isinstance(schema, Mapping) else ANY_OBJECT, rest
        )

    def listed(self) -> dict[str, object]:
        """As it stands in a list. The schema is required there, and its root must be an object's."""
        about = {"description": self.description} if self.description else {}
        return {"name": self.name, **about, "inputSchema": self.input_schema, **self.more}


class ToolCallRequest(Struct, frozen=True):
    """A call on its way to a tool."""

    name: str
    arguments: Mapping[str, object] = {}


class ContentBlock(Struct, frozen=True):
    """One block of a result: text, image, audio, resource_link, resource, or a kind that comes later."""

    type: str
    fields: Mapping[str, object] = {}
    """Everything of the block but its type."""

    @classmethod
    def of(cls, fields: Mapping[str, object]) -> Self:
        rest = dict(fields)
        return cls(str(rest.pop("type", "")), rest)

    @classmethod
    def text(cls, text: str) -> Self:
        return cls("text", {"text": text})

    @classmethod
    def image(cls, data: str, mime_type: str) -> Self:
        """`data` is base64."""
        return cls("image", {"data": data, "mimeType": mime_type})

    @classmethod
    def link(cls, uri: str, name: str, mime_type: str | None = None) -> Self:
        more = {} if mime_type is None else {"mimeType": mime_type}
        return cls("resource_link", {"uri": uri, "name": name, **more})

    def wire(self) -> dict[str, object]:
        return {"type": self.type, **self.fields}


class CallToolResult(Struct, frozen=True):
    """What a tool gives back: content blocks, and whether they tell of a failure."""

    content: Sequence[ContentBlock] = ()
    is_error: bool = False
    structured: object = UNSET
    """`structuredContent`, where the tool has an output schema."""
    more: Mapping[str, object] = {}

    @classmethod
    def text(cls, text: str) -> Self:
        return cls((ContentBlock.text(text),))

    @classmethod
    def error(cls, text: str) -> Self:
        return cls((ContentBlock.text(text),), is_error=True)

    @classmethod
    def of(cls, fields: Mapping[str, object]) -> Self:
        """From the wire; `isError` may be absent, unknown fields are kept."""
        rest = dict(fields)
        content = rest.pop("content", ())
        blocks = (
            [ContentBlock.of(block) for block in content if isinstance(block, Mapping)]
            if isinstance(content, list | tuple)
            else []
        )
        return cls(blocks, rest.pop("isError", False) is True, rest.pop("structuredContent", UNSET), rest)

    def wire(self) -> dict[str, object]:
        """As it is sent: the names are exactly `content`, `isError`, `structuredContent`."""
        structured = {} if isinstance(self.structured, UnsetType) else {"structuredContent": self.structured}
        return {
            "content": [block.wire() for block in self.content],
            **structured,
            "isError": self.is_error,
            **self.more,
        }
