"""What a scripted server lists, and what it answers with."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from plait.providers.context import Report, ToolContext
from plait.providers.function import Function, FunctionTool, as_result
from plait.wire.spec import Kind

Message = dict[str, object]


class Refusal(Struct, frozen=True):
    """A JSON-RPC error, where an answer is expected."""

    code: int = -32000
    message: str = "no"


class Held:
    """An answer that the test gives later, by `answer`."""

    def __init__(self) -> None:
        self.answer: Callable[[object], None] = lambda result: None


Answer = Callable[[Message], object]
"""From the params of a request to its result, a Refusal, a Held, or something to await for one of them."""

Body = str | Mapping[str, object] | Function
"""What an entry answers with: a text, a whole result, or a function that makes one of them."""

Entries = Sequence[str | Message | Function] | Mapping[str, Body]
"""One list: what identifies each entry, or the entry itself, or a function; or with their bodies.

A function among the tools is a tool as `FunctionProvider` makes one. Under a resource it is called
without arguments, under a prompt with the prompt's arguments by name.
"""


def listed(kind: Kind, entries: Entries) -> list[Message]:
    """As they stand in the list."""
    if isinstance(entries, Mapping):
        return [
            _tool(body, key) if _is_tool(kind, body) else item(kind, key) for key, body in entries.items()
        ]
    return [item(kind, entry) for entry in entries]


def item(kind: Kind, entry: str | Message | Function) -> Message:
    """An entry of a list, from what identifies it or as it is given."""
    if isinstance(entry, dict):
        return entry
    if not isinstance(entry, str):
        return _tool(entry, None)
    extra: Message = {"inputSchema": {"type": "object"}} if kind is Kind.TOOLS else {}
    return {kind.key: entry, "name": entry, **extra}


def body_of(kind: Kind, entries: Entries, key: str) -> Body | None:
    if isinstance(entries, Mapping):
        return entries.get(key)
    functions = [each for each in entries if not isinstance(each, str | dict)]
    return next((each for each in functions if FunctionTool(each).name == key), None)


async def played(kind: Kind, body: Body, params: Message, report: Report | None) -> object:
    """The result that a body makes of a request."""
    arguments = params.get("arguments")
    given = arguments if isinstance(arguments, dict) else {}
    if _is_tool(kind, body):
        assert callable(body)
        tool = FunctionTool(_inline(body), str(params["name"]))
        return (await tool(given, ToolContext(report))).wire()
    made: object = body
    if callable(body):
        made = body(**given) if kind is Kind.PROMPTS else body()
    if inspect.isawaitable(made):
        made = await made
    return _told(kind, made, params) if isinstance(made, str) else made


def _inline(function: Function) -> Function:
    """Run in the loop, not in a thread as other tools: a test's own clock cannot wait for threads."""

    @functools.wraps(function)
    async def run(*args: object, **values: object) -> object:
        made = function(*args, **values)
        return await made if inspect.isawaitable(made) else made

    return run


def _is_tool(kind: Kind, body: Body) -> bool:
    return kind is Kind.TOOLS and callable(body)


def _tool(body: Body, name: str | None) -> Message:
    assert callable(body)
    return FunctionTool(body, name).definition.listed()


def _told(kind: Kind, text: str, params: Message) -> Message:
    match kind:
        case Kind.TOOLS:
            return as_result(text).wire()
        case Kind.PROMPTS:
            return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
    return {"contents": [{"uri": params["uri"], "text": text}]}
