"""Tools and their results between MCP, OpenAI and Anthropic: the one place that knows how each writes them.

Seed 001 keeps definitions in OpenAI's shape; ours are MCP's. Either can be given.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.json import encode

from plait.agent import shaped
from plait.delegation.conversation import Block, Outcome
from plait.routing.catalog import matches
from plait.wire.schemas import acceptable
from plait.wire.tools import ToolDefinition


def read_definition(entry: Mapping[str, object] | ToolDefinition) -> ToolDefinition | None:
    """From any of the three shapes; None if it is none of them."""
    if isinstance(entry, ToolDefinition):
        return entry
    fields = entry.get("function") if entry.get("type") == "function" else entry
    if not isinstance(fields, Mapping) or not isinstance(fields.get("name"), str):
        return None
    schema = next(
        (fields[key] for key in ("parameters", "inputSchema", "input_schema") if key in fields), None
    )
    if schema is None and "function" not in entry:
        return None
    return ToolDefinition.of(
        {"name": fields["name"], "description": fields.get("description"), "inputSchema": schema}
    )


def openai_to_anthropic(entries: Iterable[Mapping[str, object] | ToolDefinition]) -> list[Block]:
    """Unwrapped, `parameters` as `input_schema`; what cannot be read is left out."""
    read = map(read_definition, entries)
    return [shaped(definition, "anthropic") for definition in read if definition is not None]


def wanted(names: Sequence[str], include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Is a tool with these names on offer? An empty `include` means all."""
    if any(matches(exclude, name) for name in names):
        return False
    return not include or any(matches(include, name) for name in names)


def tool_result(outcome: Outcome) -> Block:
    """As Anthropic takes it."""
    failed = {"is_error": True} if outcome.is_error else {}
    return {"type": "tool_result", "tool_use_id": outcome.id, "content": outcome.text, **failed}


def as_text(value: object) -> str:
    """What a tool gave, for a model: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else encode(value).decode()


class Toolset(Struct, frozen=True):
    """The tools of one task. What is not in it does not exist for the model, whatever it names (K-15)."""

    definitions: Mapping[str, ToolDefinition]
    """By the names that models see."""

    @classmethod
    def of(cls, definitions: Iterable[ToolDefinition]) -> "Toolset":
        return cls({str(shaped(each, "anthropic")["name"]): each for each in definitions})

    def anthropic(self) -> list[Block]:
        return [shaped(definition, "anthropic") for definition in self.definitions.values()]

    def sampling(self) -> list[Block]:
        """As MCP has them, in a request for sampling."""
        return [
            {"name": name, "description": each.description, "inputSchema": acceptable(each.input_schema)}
            for name, each in self.definitions.items()
        ]

    def find(self, name: str) -> str | None:
        """The tool's real name."""
        definition = self.definitions.get(name)
        return None if definition is None else definition.name
