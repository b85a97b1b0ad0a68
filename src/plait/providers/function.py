"""A plain Python function becomes a tool: its signature is the schema, its docstring the description."""

from __future__ import annotations

import asyncio
import inspect
import threading
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
from msgspec import Meta, Struct, defstruct

from plait.errors import ConfigError, NotFound
from plait.providers.builtin import in_words
from plait.wire.tools import CallToolResult, ContentBlock, ToolDefinition

Function = Callable[..., object]
Report = Callable[[float, float | None, str | None], None]


class ToolContext:
    """Ask for it by a parameter of this type: progress to the caller, and whether it still waits."""

    def __init__(self, report: Report | None = None) -> None:
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self.cancelled = False
        """Has the caller given up? An async tool is cancelled anyway; a sync one has to look."""

    def progress(self, value: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the caller how far it is; from any thread; only where the caller asked for it."""
        if self._report is None or self.cancelled:
            return
        if threading.get_ident() == self._thread:
            # At once: what waits for its turn here could come after the result.
            self._report(value, total, message)
        else:
            self._loop.call_soon_threadsafe(self._report, value, total, message)


class FunctionTool:
    """One function, with its schema made once."""

    def __init__(self, function: Function, name: str | None = None) -> None:
        self._function = function
        self.name = name or getattr(function, "__name__", "tool").strip("_")
        self._context = None
        hints = typing.get_type_hints(function, include_extras=True)
        fields: list[tuple[str, object] | tuple[str, object, object]] = []
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise ConfigError(f"{self.name}: a tool's parameters have names; *{parameter.name} has none")
            kind = hints.get(parameter.name, object)
            if kind is ToolContext:
                self._context = parameter.name
                continue
            described = _described(kind)
            if parameter.default is parameter.empty:
                fields.append((parameter.name, described))
            else:
                fields.append((parameter.name, described, parameter.default))
        self._arguments = _struct(self.name, fields)
        self.definition = ToolDefinition(self.name, _first_paragraph(function), schema_of(self._arguments))

    async def __call__(self, arguments: Mapping[str, object], context: ToolContext) -> CallToolResult:
        """Whatever goes wrong is a result that says so."""
        try:
            given = msgspec.convert(arguments, self._arguments)
        except msgspec.ValidationError as problem:
            return CallToolResult.error(f"{self.name}: {problem}")
        values = {name: getattr(given, name) for name in self._arguments.__struct_fields__}
        if self._context is not None:
            values[self._context] = context
        try:
            return as_result(await self._run(values))
        except asyncio.CancelledError:
            context.cancelled = True
            raise
        except Exception as problem:
            return CallToolResult.error(in_words(problem))

    async def _run(self, values: dict[str, object]) -> object:
        """A sync function runs off the loop: it may block."""
        if inspect.iscoroutinefunction(self._function):
            return await self._function(**values)
        answer = await asyncio.to_thread(self._function, **values)
        return await answer if isinstance(answer, Awaitable) else answer


class FunctionProvider:
    """Functions as the tools of one namespace."""

    def __init__(self, namespace: str, functions: Sequence[Function]) -> None:
        self.namespace = namespace
        tools = [FunctionTool(function) for function in functions]
        self._tools = {tool.name: tool for tool in tools}

    def __repr__(self) -> str:
        return f"<FunctionProvider {self.namespace}: {len(self._tools)} tools>"

    async def list_tools(self) -> list[ToolDefinition]:
        return [tool.definition for tool in self._tools.values()]

    async def call_tool(self, name: str, arguments: dict[str, object]) -> CallToolResult:
        return await self.call_with(name, arguments, ToolContext())

    async def call_with(
        self, name: str, arguments: dict[str, object], context: ToolContext
    ) -> CallToolResult:
        tool = self._tools.get(name)
        if tool is None:
            raise NotFound(name)
        return await tool(arguments, context)


def as_result(value: object) -> CallToolResult:
    """A result as it is, text as text, a mapping or a Struct as JSON in both of its places."""
    if isinstance(value, CallToolResult):
        return value
    if value is None or isinstance(value, str):
        return CallToolResult.text(value or "")
    if isinstance(value, ContentBlock):
        return CallToolResult((value,))
    plain = msgspec.to_builtins(value)
    text = ContentBlock.text(msgspec.json.encode(plain).decode())
    return CallToolResult((text,), structured=plain) if isinstance(plain, dict) else CallToolResult((text,))


def _struct(name: str, fields: Sequence[tuple[str, object] | tuple[str, object, object]]) -> type[Struct]:
    try:
        return defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
    except TypeError as problem:
        raise ConfigError(f"tool {name}: {problem}") from None


def _described(kind: object) -> object:
    """`Annotated[str, "what it is"]` puts the words into the schema."""
    words = [each for each in getattr(kind, "__metadata__", ()) if isinstance(each, str)]
    if not words:
        return _open(kind)
    return typing.Annotated[_open(typing.get_args(kind)[0]), Meta(description=words[0])]


def _open(kind: object) -> object:
    """`object` is any JSON value here; msgspec calls that typing.Any, and `object` a type it cannot know."""
    if kind is object:
        return typing.Any  # noqa: TID251
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (dict, list) and inner:
        opened: object = origin[tuple(_open(each) for each in inner)]
        return opened
    return kind


def schema_of(arguments: type[Struct]) -> dict[str, object]:
    """The root of a tool's schema must be an object's, not a reference to one."""
    try:
        (root,), components = msgspec.json.schema_components((arguments,), ref_template="#/$defs/{name}")
    except TypeError as problem:
        raise ConfigError(f"tool {arguments.__name__}: {problem}") from None
    own = str(root["$ref"]).rpartition("/")[2]
    schema = dict(components.pop(own))
    schema.pop("title", None)
    return {**schema, "$defs": components} if components else schema


def _first_paragraph(function: Function) -> str:
    return (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ").strip()
