"""The shell tests T7.13 to T7.18 of seed 001, on the built-in echo."""

import pytest

from clients import RawClient, compositor, error_of, result_of
from fakes import Message, words
from plait.errors import ExecutionFailed
from plait.providers.function import FunctionProvider
from plait.providers.tools.echo import echo
from plait.wire.tools import CallToolResult, ToolDefinition


class Failing:
    namespace = "failing"

    async def list_tools(self) -> list[ToolDefinition]:
        return [ToolDefinition("fail")]

    async def call_tool(self, name: str, arguments: dict[str, object]) -> CallToolResult:
        raise ExecutionFailed("the disk is full")


async def talk(*requests: tuple[str, Message]) -> list[Message]:
    """The answers to these requests, whose ids are 1, 2 …, in that order."""
    async with compositor() as made, RawClient(made) as client:
        await made.mount_provider(FunctionProvider("builtin", [echo]))
        await made.mount_provider(Failing())
        for id, (method, params) in enumerate(requests, 1):
            client.say(method, id, **params)
        await client.answered()
        return [client.answer(id) for id, _ in enumerate(requests, 1)]


INITIALIZE: tuple[str, Message] = ("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}})


@pytest.mark.requirement("S1-T7.13", "S1-041")
async def test_initialize() -> None:
    [answer] = await talk(INITIALIZE)
    result = result_of(answer)
    assert result["protocolVersion"] == "2025-06-18"
    assert result["capabilities"]["tools"] == {"listChanged": True}  # type: ignore[index]


@pytest.mark.requirement("S1-T7.14", "S1-AC18")
async def test_before_initialize_a_request_is_rejected() -> None:
    [answer] = await talk(("tools/list", {}))
    assert (error_of(answer)["code"], error_of(answer)["message"]) == (-32002, "not initialized")


@pytest.mark.requirement("S1-T7.15")
async def test_the_list_has_prefixes() -> None:
    _, answer = await talk(INITIALIZE, ("tools/list", {}))
    tools = result_of(answer)["tools"]
    assert isinstance(tools, list)
    assert [tool["name"] for tool in tools] == ["builtin__echo", "failing__fail"]


@pytest.mark.requirement("S1-T7.16")
async def test_calling_builtin_echo_answers_with_the_text() -> None:
    call: Message = {"name": "builtin__echo", "arguments": {"text": "hello"}}
    _, answer = await talk(INITIALIZE, ("tools/call", call))
    assert words(result_of(answer)) == "hello"


@pytest.mark.requirement("S1-T7.17")
async def test_an_unknown_method_is_an_error() -> None:
    _, answer = await talk(INITIALIZE, ("nonsense", {}))
    assert error_of(answer)["code"] == -32601


@pytest.mark.requirement("S1-T7.18")
async def test_a_tool_error_is_a_result_that_says_so() -> None:
    _, answer = await talk(INITIALIZE, ("tools/call", {"name": "failing__fail"}))
    assert result_of(answer)["isError"] is True
    assert "the disk is full" in words(result_of(answer))
