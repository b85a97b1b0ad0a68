"""A plain function as a tool."""

import asyncio
import threading
from typing import Annotated, Literal

import msgspec
import pytest

from plait.errors import ConfigError, ExecutionFailed, NotFound
from plait.providers.context import ToolContext
from plait.providers.function import FunctionProvider, FunctionTool
from plait.wire.tools import CallToolResult


class Point(msgspec.Struct):
    x: float
    y: float = 0.0


async def greet(
    name: Annotated[str, "Whom to greet."], times: int = 1, mood: Literal["kind", "cool"] = "kind"
) -> str:
    """Greets somebody.

    As often as asked.
    """
    return " ".join([f"hello {name}"] * times) + f" ({mood})"


def shift(point: Point, by: float) -> Point:
    """Moves a point."""
    return Point(point.x + by, point.y + by)


async def call(
    function: object, arguments: dict[str, object], context: ToolContext | None = None
) -> CallToolResult:
    return await FunctionTool(function)(arguments, context or ToolContext())  # type: ignore[arg-type]


def test_the_signature_is_the_schema_and_the_docstring_the_description() -> None:
    tool = FunctionTool(greet).definition
    assert (tool.name, tool.description) == ("greet", "Greets somebody.")
    assert tool.input_schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Whom to greet."},
            "times": {"type": "integer", "default": 1},
            "mood": {"enum": ["cool", "kind"], "default": "kind"},
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def test_a_structure_in_a_parameter_is_described_too() -> None:
    schema = FunctionTool(shift).definition.input_schema
    assert schema["type"] == "object"
    assert "Point" in schema["$defs"]  # type: ignore[operator]


async def test_arguments_are_checked_and_converted() -> None:
    assert (await call(greet, {"name": "ada", "times": 2})).content[0].fields[
        "text"
    ] == "hello ada hello ada (kind)"
    moved = await call(shift, {"point": {"x": 1}, "by": 2})
    assert moved.structured == {"x": 3.0, "y": 2.0}
    assert moved.content[0].fields["text"] == '{"x":3.0,"y":2.0}'


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "missing required field `name`"),
        ({"name": 5}, "Expected `str`, got `int`"),
        ({"name": "x", "nmae": "y"}, "unknown field `nmae`"),
        ({"name": "x", "mood": "sad"}, "Invalid enum value 'sad'"),
    ],
)
async def test_wrong_arguments_are_an_error_result_that_says_which(
    arguments: dict[str, object], complaint: str
) -> None:
    result = await call(greet, arguments)
    assert result.is_error
    assert complaint in str(result.content[0].fields["text"])


async def test_what_a_tool_raises_is_an_error_result() -> None:
    def fails() -> str:
        raise ExecutionFailed("no disk")

    def breaks() -> str:
        raise KeyError

    assert (await call(fails, {})).content[0].fields["text"] == "no disk"
    assert (await call(breaks, {})).content[0].fields["text"] == "KeyError"


async def test_a_sync_function_runs_off_the_loop() -> None:
    def where() -> str:
        return threading.current_thread().name

    assert (await call(where, {})).content[0].fields["text"] != threading.current_thread().name


async def test_a_tool_that_asks_for_a_context_can_report_progress_from_any_thread() -> None:
    reported: list[tuple[float, float | None, str | None]] = []
    last = asyncio.Event()

    def report(value: float, total: float | None, message: str | None) -> None:
        reported.append((value, total, message))
        if value == 2:
            last.set()

    def works(context: ToolContext) -> str:
        context.progress(1, 2, "half")
        context.progress(2)
        return "done"

    tool = FunctionTool(works)
    assert tool.definition.input_schema["properties"] == {}
    await tool({}, ToolContext(report))
    async with asyncio.timeout(5):
        await last.wait()
    assert reported == [(1, 2, "half"), (2, None, None)]


async def test_progress_of_an_async_tool_is_told_before_its_result() -> None:
    reported: list[float] = []

    async def works(context: ToolContext) -> str:
        context.progress(1)
        return "done"

    await FunctionTool(works)({}, ToolContext(lambda value, total, message: reported.append(value)))
    assert reported == [1]


async def test_a_tool_whose_call_was_cancelled_reports_to_nobody() -> None:
    reported: list[float] = []
    context = ToolContext(lambda value, total, message: reported.append(value))
    context.cancelled = True
    context.progress(1)
    assert reported == []


async def test_a_cancelled_call_is_seen_by_the_tool() -> None:
    started, seen = threading.Event(), threading.Event()
    context = ToolContext()

    def waits(context: ToolContext) -> str:
        started.set()
        for _ in range(2000):
            if context.cancelled:
                seen.set()
                break
            threading.Event().wait(0.005)
        return ""

    task = asyncio.get_running_loop().create_task(FunctionTool(waits)({}, context))
    await asyncio.to_thread(started.wait, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(seen.wait, 5)


async def test_a_provider_of_functions() -> None:
    provider = FunctionProvider("demo", [greet, shift])
    assert [tool.name for tool in await provider.list_tools()] == ["greet", "shift"]
    with pytest.raises(NotFound):
        await provider.call_tool("nope", {})


def test_a_function_that_cannot_be_a_tool_is_refused_when_it_is_made() -> None:
    def star(*args: str) -> str:
        return ""

    def odd(value: threading.Thread) -> str:
        return ""

    for function in (star, odd):
        with pytest.raises(ConfigError):
            FunctionTool(function)
