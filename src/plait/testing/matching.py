"""A call that a test expects, to compare with one that was made, in whatever form it was written down."""

from collections.abc import Mapping

from msgspec import MsgspecError
from msgspec.json import decode

from plait.routing.naming import MountPrefix, Naming, build_mcp_function
from plait.wire.tools import ToolCallRequest


class ToolCall:
    """Made by `tool_call`. Equal to a call of this tool with these arguments."""

    def __init__(self, name: str, arguments: Mapping[str, object] | None) -> None:
        self.name = name
        """As clients and models see it."""
        self.arguments = arguments

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ToolCall):
            return (self.name, self.arguments) == (other.name, other.arguments)
        call = _read(other)
        if call is None or call.name != self.name:
            return False
        return self.arguments is None or dict(self.arguments) == dict(call.arguments)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        arguments = "any arguments" if self.arguments is None else repr(dict(self.arguments))
        return f"<a call of {self.name} with {arguments}>"


def tool_call(
    prefix: MountPrefix,
    tool: str,
    arguments: Mapping[str, object] | None = None,
    *,
    naming: Naming | None = None,
) -> ToolCall:
    """What the call of a mounted tool equals, and nothing else.

    The name is the one that `build_mcp_function` makes; `naming` is the compositor's, where that is not
    the usual. Without `arguments` any will do; given, they must be these, all of them and no others: a
    model that makes one up has made a mistake. Single values may be matchers, such as `mock.ANY`.

    It compares with a `ToolCallRequest`, with the params of a `tools/call` or the whole message, with a
    `tool_use` of Anthropic's and a `tool_call` of OpenAI's, as mappings or as their packages' objects.
    """
    return ToolCall(build_mcp_function(prefix, tool, naming), arguments)


def _read(call: object) -> ToolCallRequest | None:
    """A call in the one form that we compare, or None if it is none."""
    if isinstance(call, tuple) and len(call) == 2 and call[0] == "tools/call":
        return _read(call[1])
    for holder in ("params", "function"):
        if (inner := _part(call, holder)) is not None:
            return _read(inner)
    name = _part(call, "name")
    given = _part(call, "arguments")
    arguments = _arguments(_part(call, "input") if given is None else given)
    return ToolCallRequest(name, arguments) if isinstance(name, str) and arguments is not None else None


def _part(call: object, name: str) -> object:
    if isinstance(call, Mapping):
        return call.get(name)
    return None if isinstance(call, str | type | type(None)) else getattr(call, name, None)


def _arguments(given: object) -> Mapping[str, object] | None:
    """OpenAI has them as JSON text, and nobody has any where there are none."""
    if isinstance(given, str):
        try:
            return decode(given or "{}", type=dict[str, object])
        except MsgspecError:
            return None
    if given is None:
        return {}
    return given if isinstance(given, Mapping) else None
