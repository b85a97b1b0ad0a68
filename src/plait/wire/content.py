"""Tool results: make one of a text, and take the text out of one."""

from collections.abc import Mapping

from msgspec import Raw

from plait.errors import ExecutionFailed
from plait.wire.address import as_raw

FAULT = "plait/fault"
"""The `_meta` key under which a result of our own says what went wrong, for programs."""


def text_result(text: str) -> Raw:
    return as_raw({"content": [{"type": "text", "text": text}]})


def error_result(text: str, fault: Mapping[str, object] | None = None) -> Raw:
    """A failure that a model can read and act on."""
    body: dict[str, object] = {"content": [{"type": "text", "text": text}], "isError": True}
    if fault is not None:
        body["_meta"] = {FAULT: dict(fault)}
    return as_raw(body)


def extract_tool_result(raw: object) -> object:
    """What a caller who wants no blocks gets: `{"output": text}`, or the raw value (S1-034).

    Text blocks are joined without a separator, bare strings count as text, other blocks are
    ignored. A result that says `isError` is raised as ExecutionFailed.
    """
    if not isinstance(raw, Mapping):
        return raw
    content = raw.get("content")
    text = "".join(_text(block) for block in content) if isinstance(content, list) else None
    if raw.get("isError") is True:
        raise ExecutionFailed(text or "Tool reported an error without details")
    return raw if text is None else {"output": text}


def _text(block: object) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, Mapping) and block.get("type") == "text":
        text = block.get("text")
        return text if isinstance(text, str) else ""
    return ""
