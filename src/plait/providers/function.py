"""A plain Python function becomes a tool: its signature is the schema, its docstring the description."""

from __future__ import annotations

import asyncio
import inspect
import typing
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence

import msgspec
from msgspec import Meta, Struct, defstruct

from plait.errors import ConfigError, NotFound
from plait.providers.builtin import in_words
from plait.providers.context import ToolContext
from plait.providers.streaming import collect
from plait.wire.tools import CallToolResult, ContentBlock, ToolDefinition

Function = Callable[..., object]


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
        self.logs = inspect.isasyncgenfunction(function) or self._context is not None
        """Might it send log messages?"""
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
            answer = await self._run(values)
            if isinstance(answer, AsyncIterable):
                return await collect(answer, context, self.name)
            return as_result(answer)
        except asyncio.CancelledError:
            context.cancelled = True
            raise
        except Exception as problem:
            return CallToolResult.error(in_words(problem))

    async def _run(self, values: dict[str, object]) -> object:
        """A sync function runs off the loop: it may block. Calling a generator function runs nothing yet."""
        if inspect.isasyncgenfunction(self._function):
            return self._function(**values)
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

    @property
    def logs(self) -> bool:
        return any(tool.logs for tool in self._tools.values())

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
