"""The part of docs/reference/tools.md that is made from the tools themselves.

`python tests/tool_reference.py` writes it; test_guides.py sees that it is up to date.
"""

import asyncio
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec.json import encode

from plait.config.model import Settings
from plait.providers.results import PREFIX, READ_RESULT
from plait.providers.tools.builtin import builtin_tools
from plait.upstream.process import Guardian
from plait.wire.tools import ToolDefinition

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "tools.md"
MARK = "<!-- from here on made by tests/tool_reference.py -->\n"


async def reference(folder: Path) -> str:
    """Every tool that we ship. The folder is where the tools would keep things."""
    settings, guardian = Settings(workspace=str(folder)), Guardian()
    async with builtin_tools(settings, {"XDG_STATE_HOME": str(folder)}, guardian) as provider:
        tools = await provider.list_tools()
    parts = [described(f"{provider.namespace}__{tool.name}", tool) for tool in tools]
    parts.append(described(f"{PREFIX}__read_result", ToolDefinition.of(READ_RESULT)))
    return "".join(parts)


def described(exposed: str, tool: ToolDefinition) -> str:
    properties, required = tool.input_schema.get("properties"), tool.input_schema.get("required")
    assert isinstance(properties, Mapping)
    assert isinstance(required, list)
    rows = [row(name, schema, required=name in required) for name, schema in properties.items()]
    head = ["| parameter | type | default | |", "| --- | --- | --- | --- |"]
    return "\n".join(["", f"## `{exposed}`", "", tool.description, "", *head, *rows, ""])


def row(name: str, schema: Mapping[str, object], *, required: bool) -> str:
    default = schema.get("default")
    shown = "required" if required else "" if default is None else f"`{encode(default).decode()}`"
    words = re.sub(r"([|*])", r"\\\1", str(schema.get("description", "")))
    return f"| `{name}` | {kind(schema)} | {shown} | {words} |"


def kind(schema: object) -> str:
    """The type of a parameter in words."""
    assert isinstance(schema, Mapping)
    if isinstance(choices := schema.get("enum"), list):
        return " ".join(str(choice) for choice in choices)
    if isinstance(choices := schema.get("anyOf"), list):
        return " or ".join(kind(choice) for choice in choices if choice != {"type": "null"})
    if isinstance(inner := schema.get("items"), Mapping):
        return f"list of {kind(inner)}"
    if isinstance(inner := schema.get("additionalProperties"), Mapping):
        return f"object of {kind(inner)}"
    return str(schema.get("type", "anything"))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = asyncio.run(reference(Path(folder)))
    before, mark, _ = PAGE.read_text().partition(MARK)
    PAGE.write_text(before + mark + made)


if __name__ == "__main__":
    main()
