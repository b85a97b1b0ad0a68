"""Between a model and its tools: definitions in the shape its API takes, arguments in, words back."""

from collections.abc import Callable, Mapping
from typing import Literal, Self

from msgspec import MsgspecError, Raw, UnsetType
from msgspec.json import decode

from plait.errors import ToolError
from plait.routing.naming import fit
from plait.wire.address import as_raw
from plait.wire.envelope import encode
from plait.wire.schemas import acceptable
from plait.wire.tools import CallToolResult, ContentBlock, ToolDefinition

Dialect = Literal["openai", "anthropic"]

LONGEST_DESCRIPTION = 1024
"""Characters of a description; OpenAI refuses a longer one: "string too long"."""


class ToolText(str):
    """What a tool said, for the model to read. It is the text; `is_error` says whether it is a failure.

    Whoever encodes with msgspec, which takes no subclass of `str`, takes `str(text)`.
    """

    is_error: bool

    def __new__(cls, text: str, *, is_error: bool = False) -> Self:
        made = super().__new__(cls, text)
        made.is_error = is_error
        return made


# ---- definitions


def shaped(tool: ToolDefinition, dialect: str) -> dict[str, object]:
    """The definition of a tool as the API called so takes it in its `tools`."""
    shape = _SHAPES.get(dialect)
    if shape is None:
        raise ValueError(f"{dialect!r} is no dialect; there is {' and '.join(_SHAPES)}")
    about = tool.description or str(tool.more.get("title") or tool.name)
    return shape(fit(tool.name), about, acceptable(tool.input_schema))


def _openai(name: str, about: str, schema: dict[str, object]) -> dict[str, object]:
    if len(about) > LONGEST_DESCRIPTION:
        about = f"{about[: LONGEST_DESCRIPTION - 1]}…"
    return {"type": "function", "function": {"name": name, "description": about, "parameters": schema}}


def _anthropic(name: str, about: str, schema: dict[str, object]) -> dict[str, object]:
    return {"name": name, "description": about, "input_schema": schema}


_SHAPES: Mapping[str, Callable[[str, str, dict[str, object]], dict[str, object]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
}


# ---- arguments


def read_arguments(given: Mapping[str, object] | str | None) -> Raw:
    """What a model gave as arguments: an object, its JSON as OpenAI has it, or nothing at all.

    A model's mistake is a ToolError, with words that help it to do better.
    """
    try:
        if isinstance(given, str):
            return as_raw(decode(given, type=dict[str, object]) if given.strip() else {})
        return as_raw({} if given is None else dict(given))
    except (MsgspecError, RecursionError, TypeError, ValueError) as problem:
        raise ToolError(f"the arguments are not one JSON object: {problem}; call again with one") from None


# ---- results


def in_words(result: CallToolResult) -> ToolText:
    """All of a result that a model can read.

    Adjacent texts are joined without a separator (X-15); what is no text is named, on a line of its
    own. The structured content is for who finds no text: usually it says the same.
    """
    lines: list[str] = []
    joining = False
    for block in result.content:
        text = _text(block)
        if text is not None and joining:
            lines[-1] += text
        else:
            lines.append(_named(block) if text is None else text)
        joining = text is not None
    said = "\n".join(lines)
    if not said and not isinstance(result.structured, UnsetType):
        said = encode(result.structured).decode()
    nothing = "Tool reported an error without details" if result.is_error else "(no output)"
    return ToolText(said or nothing, is_error=result.is_error)


def _text(block: ContentBlock) -> str | None:
    """Its words, where it has some: a text, or a resource that is one."""
    within = block.fields.get("resource") if block.type == "resource" else block.fields
    text = within.get("text") if isinstance(within, Mapping) and block.type in ("text", "resource") else None
    return text if isinstance(text, str) else None


def _named(block: ContentBlock) -> str:
    within = block.fields.get("resource")
    fields = within if isinstance(within, Mapping) else block.fields
    told = [str(fields[key]) for key in ("name", "uri", "mimeType") if key in fields]
    return f"[{' '.join([block.type or 'block', *told])}]"
