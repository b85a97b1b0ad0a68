"""The seeds' form of a guard: three hooks instead of one call."""

import inspect
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from msgspec import MsgspecError
from msgspec.json import decode

from plait.errors import ToolError
from plait.pipeline.compose import Layer
from plait.session.exchange import Exchange, Handler, Reply, Verdict, refuse
from plait.wire.address import as_raw
from plait.wire.content import error_result
from plait.wire.spec import INVALID_PARAMS
from plait.wire.tools import CallToolResult, ToolCallRequest, ToolDefinition

Value = TypeVar("Value")


class Middleware:
    """Override what you need; each hook may be a plain or an async method."""

    def filter_tools(
        self, tools: Sequence[ToolDefinition]
    ) -> Sequence[ToolDefinition] | Awaitable[Sequence[ToolDefinition]]:
        """The tools that a client is shown."""
        return tools

    def before_call(self, request: ToolCallRequest) -> ToolCallRequest | Awaitable[ToolCallRequest]:
        """The call as it goes on. Raise ToolError to refuse it: the tool is never reached."""
        return request

    def after_call(
        self, request: ToolCallRequest, result: CallToolResult
    ) -> CallToolResult | Awaitable[CallToolResult]:
        """The result as it goes back, of failed calls too."""
        return result


class MiddlewareLayer:
    """Any Middleware as a layer: it decodes what the hooks look at, once."""

    def __init__(self, middleware: Middleware) -> None:
        self._middleware = middleware

    async def __call__(self, exchange: Exchange, call_next: Handler) -> Reply:
        if exchange.method == "tools/call":
            return await self._call(exchange, call_next)
        reply = await call_next(exchange)
        if exchange.method != "tools/list" or reply.result is None:
            return reply
        page = decode(reply.result, type=dict[str, object])
        listed = page.get("tools")
        tools = [ToolDefinition.of(tool) for tool in listed] if isinstance(listed, list) else []
        kept = await _wait(self._middleware.filter_tools(tools))
        return Reply(result=as_raw({**page, "tools": [tool.listed() for tool in kept]}))

    async def _call(self, exchange: Exchange, call_next: Handler) -> Reply:
        try:
            arguments = decode(exchange.params.get("arguments", b"{}"), type=dict[str, object] | None) or {}
        except (MsgspecError, RecursionError):
            return refuse(INVALID_PARAMS, "the 'arguments' of tools/call must be an object")
        request = ToolCallRequest(exchange.address, arguments)
        try:
            request = await _wait(self._middleware.before_call(request))
        except ToolError as refusal:
            verdict = Verdict("denied", type(self._middleware).__name__, str(refusal))
            reply = Reply(result=error_result(str(refusal)), verdict=verdict)
            request = ToolCallRequest(exchange.address)
        else:
            exchange.params["arguments"] = as_raw(request.arguments)
            reply = await call_next(exchange)
        return await self._after(request, reply)

    async def _after(self, request: ToolCallRequest, reply: Reply) -> Reply:
        if reply.result is None:
            return reply
        result = CallToolResult.of(decode(reply.result, type=dict[str, object]))
        try:
            changed = await _wait(self._middleware.after_call(request, result))
        except ToolError as problem:
            changed = CallToolResult.error(str(problem))
        return reply if changed is result else Reply(result=as_raw(changed.wire()), verdict=reply.verdict)


def as_layer(given: Layer | Middleware) -> Layer:
    """Whatever somebody gives as middleware, as a layer."""
    return MiddlewareLayer(given) if isinstance(given, Middleware) else given


async def _wait(value: Value | Awaitable[Value]) -> Value:
    return await value if inspect.isawaitable(value) else value
