"""Seed 002: definitions and one function that runs them."""

import msgspec
import pytest

from plait.errors import ExecutionFailed, NotFound, PermissionDenied
from plait.providers.builtin import BuiltinToolProvider
from plait.wire.tools import CallToolResult, ContentBlock, ToolDefinition

TOOLS = [ToolDefinition("echo", "Says it."), ToolDefinition("add", "Adds."), ToolDefinition("fail", "Fails.")]


def dispatch(name: str, arguments: dict[str, object]) -> str:
    if name == "fail":
        raise ExecutionFailed("it broke")
    if name == "add":
        return str(arguments["a"] + arguments["b"])  # type: ignore[operator]
    return str(arguments["text"])


PROVIDER = BuiltinToolProvider(TOOLS, dispatch)


def said(result: CallToolResult) -> object:
    return result.content[0].fields["text"]


@pytest.mark.requirement("S2-10", "S2-T01", "S1-T7.1", "S1-038")
def test_namespace_returns_builtin() -> None:
    assert PROVIDER.namespace == "builtin"


@pytest.mark.requirement("S2-T02", "S1-T7.2", "S2-05", "S2-06", "S0-24", "S1-AC13")
async def test_list_tools_returns_registered_tools() -> None:
    assert await PROVIDER.list_tools() == TOOLS


@pytest.mark.requirement("S2-T03", "S1-T7.3", "S2-08")
async def test_call_tool_dispatches_correctly() -> None:
    result = await PROVIDER.call_tool("echo", {"text": "hi"})
    assert (said(result), result.is_error) == (dispatch("echo", {"text": "hi"}), False)


@pytest.mark.requirement("S2-T04")
async def test_call_tool_add_dispatches_correctly() -> None:
    assert said(await PROVIDER.call_tool("add", {"a": 2, "b": 3})) == "5"


@pytest.mark.requirement("S2-09", "S2-T05", "S1-T7.4")
async def test_call_tool_not_found_and_the_dispatcher_is_not_called() -> None:
    def never(name: str, arguments: dict[str, object]) -> str:
        raise AssertionError("called")

    with pytest.raises(NotFound, match="not found: nope"):
        await BuiltinToolProvider(TOOLS, never).call_tool("nope", {})


@pytest.mark.requirement("S2-T06", "S2-07")
@pytest.mark.parametrize(
    "problem", [ExecutionFailed("it broke"), ValueError("it broke"), NotFound("it broke")]
)
async def test_call_tool_dispatcher_error_returns_error_result(problem: Exception) -> None:
    def failing(name: str, arguments: dict[str, object]) -> str:
        raise problem

    result = await BuiltinToolProvider(TOOLS, failing).call_tool("echo", {})
    assert result.is_error
    assert "it broke" in str(said(result))


async def test_a_dispatcher_may_be_asynchronous() -> None:
    async def later(name: str, arguments: dict[str, object]) -> str:
        return f"{name} later"

    assert said(await BuiltinToolProvider(TOOLS, later).call_tool("echo", {})) == "echo later"


@pytest.mark.requirement("S2-T07", "S2-02")
def test_call_tool_result_text_convenience() -> None:
    assert CallToolResult.text("a").wire() == {"content": [{"type": "text", "text": "a"}], "isError": False}


@pytest.mark.requirement("S2-T08")
def test_call_tool_result_error_convenience() -> None:
    assert CallToolResult.error("a").wire() == {"content": [{"type": "text", "text": "a"}], "isError": True}


@pytest.mark.requirement("S2-T09", "S2-03")
def test_call_tool_result_serde_roundtrip_keeps_what_it_does_not_know() -> None:
    wire: dict[str, object] = {
        "content": [{"type": "text", "text": "a", "future": 1}, {"type": "hologram", "x": [1]}],
        "structuredContent": {"n": 1.5},
        "isError": True,
        "_meta": {"k": "v"},
        "other": None,
    }
    assert CallToolResult.of(msgspec.json.decode(msgspec.json.encode(wire))).wire() == wire


@pytest.mark.requirement("S2-T10", "S2-01")
@pytest.mark.parametrize(
    "block",
    [
        ContentBlock.text("a"),
        ContentBlock.image("AA==", "image/png"),
        ContentBlock.link("x://y", "y", "text/plain"),
        ContentBlock("audio", {"data": "AA==", "mimeType": "audio/wav"}),
        ContentBlock("resource", {"resource": {"uri": "x://y", "text": "z"}}),
        ContentBlock("not-invented-yet", {"a": {"b": []}}),
    ],
)
def test_content_block_serde_roundtrip(block: ContentBlock) -> None:
    assert ContentBlock.of(msgspec.json.decode(msgspec.json.encode(block.wire()))) == block


@pytest.mark.requirement("S2-T11")
def test_call_tool_result_is_error_defaults_false() -> None:
    assert CallToolResult.of({"content": []}).is_error is False


@pytest.mark.requirement("S2-T12", "S2-04")
def test_tool_error_display() -> None:
    assert str(NotFound("x")) == "not found: x"
    assert str(ExecutionFailed("x")) == "execution failed: x"
    assert str(PermissionDenied("t", "r")) == "permission denied for tool 't': r"


@pytest.mark.requirement("S2-T13", "S2-11")
def test_debug_format_shows_the_type_and_the_count_only() -> None:
    assert repr(PROVIDER) == "<BuiltinToolProvider 3 tools>"


def test_a_definition_is_read_in_either_spelling_and_keeps_the_rest() -> None:
    schema = {"type": "object", "properties": {}}
    for spelling in ("inputSchema", "input_schema"):
        tool = ToolDefinition.of({"name": "x", "description": None, spelling: schema, "title": "X"})
        assert tool.listed() == {"name": "x", "inputSchema": schema, "title": "X"}
