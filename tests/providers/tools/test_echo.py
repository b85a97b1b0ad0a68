"""One tool that answers with what it was given."""

import pytest

from fakes import words
from plait.errors import NotFound
from plait.providers.function import FunctionProvider
from plait.providers.tools.echo import echo


async def test_it_answers_with_the_text() -> None:
    result = await FunctionProvider("builtin", [echo]).call_tool("echo", {"text": "Grüße\n"})
    assert (words(result.wire()), result.is_error) == ("Grüße\n", False)


@pytest.mark.parametrize("arguments", [{}, {"text": 7}, {"text": None}, {"Text": "x"}])
async def test_without_a_text_it_says_what_it_needs(arguments: dict[str, object]) -> None:
    result = await FunctionProvider("builtin", [echo]).call_tool("echo", arguments)
    assert result.is_error
    assert "text" in words(result.wire()).lower()


async def test_it_has_one_tool_with_words_and_a_schema_and_knows_no_other() -> None:
    provider = FunctionProvider("builtin", [echo])
    [tool] = await provider.list_tools()
    assert (provider.namespace, tool.name) == ("builtin", "echo")
    assert tool.description
    assert tool.input_schema["required"] == ["text"]
    with pytest.raises(NotFound, match="shout"):
        await provider.call_tool("shout", {})
