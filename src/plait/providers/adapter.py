"""A ToolProvider, mounted like any other server: it answers the same requests."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from msgspec import Raw
from msgspec.json import decode

from plait.errors import ToolError, UpstreamBroken, UpstreamTimeout, UpstreamUnavailable
from plait.providers.builtin import in_words
from plait.providers.function import Report, ToolContext
from plait.providers.provider import ToolProvider
from plait.session.exchange import Exchange, Reply, refuse
from plait.tasks import Interruptible
from plait.upstream.base import Link
from plait.upstream.client import Listener
from plait.upstream.opening import Behalf
from plait.wire.address import as_raw, read_text
from plait.wire.envelope import Fields
from plait.wire.spec import METHOD_NOT_FOUND
from plait.wire.tools import CallToolResult

_log = logging.getLogger("plait.provider")

LAST_WAIT = 5.0
"""Seconds for calls to end that were interrupted."""


@runtime_checkable
class Contextual(Protocol):
    """A provider whose tools may report progress."""

    async def call_with(
        self, name: str, arguments: dict[str, object], context: ToolContext
    ) -> CallToolResult: ...


@runtime_checkable
class Changing(Protocol):
    """A provider whose tools come and go, and that says so."""

    def on_change(self, listener: Callable[[], None]) -> None: ...


class ProviderOpener:
    """There is nothing to start: the provider is here already."""

    instructions = ""

    def __init__(self, provider: ToolProvider, timeout: float | None = None) -> None:
        """`timeout`: seconds for one call; progress starts the time anew."""
        self._provider = provider
        self._timeout = timeout

    async def open(self, listener: Listener, behalf: Awaitable[Behalf]) -> Link:
        if isinstance(self._provider, Changing):
            self._provider.on_change(lambda: listener.heard("notifications/tools/list_changed", {}))
        return ProviderLink(self._provider, self._timeout)


class ProviderLink:
    """The provider's side of the one dispatch path."""

    instructions = ""
    warning: str | None = None

    def __init__(self, provider: ToolProvider, timeout: float | None = None) -> None:
        self._provider = provider
        self._timeout = timeout
        self._calls = Interruptible()

    async def request(self, method: str, params: Fields | None, exchange: Exchange | None = None) -> Reply:
        match method:
            case "tools/list":
                return Reply(result=await self._list())
            case "tools/call" if params is not None:
                name = read_text(params["name"])
                arguments = decode(params["arguments"], type=dict[str, object])
                return Reply(result=await self._within(name, arguments, exchange))
        return refuse(METHOD_NOT_FOUND, f"Method not found: {method}")

    async def _list(self) -> Raw:
        """A provider that fails here is a broken server: it is told, and tried again."""
        try:
            return as_raw({"tools": [tool.listed() for tool in await self._provider.list_tools()]})
        except Exception as problem:
            _log.exception("provider %s failed to list its tools", self._provider.namespace)
            raise UpstreamBroken(
                f"provider '{self._provider.namespace}' failed to list its tools: {in_words(problem)}"
            ) from problem

    async def _within(self, name: str, arguments: dict[str, object], exchange: Exchange | None) -> Raw:
        seconds = self._timeout
        try:
            async with self._calls.timeout(seconds) as deadline:
                report = _progress_of(exchange)
                context = ToolContext(report if seconds is None else _extending(deadline, seconds, report))
                return await self._call(name, arguments, context)
        except TimeoutError:
            if self._calls.interrupted:
                raise UpstreamUnavailable(f"its provider was unmounted during {name}") from None
            raise UpstreamTimeout(f"{name} was not done within {seconds:g} s") from None

    async def _call(self, name: str, arguments: dict[str, object], context: ToolContext) -> Raw:
        """Whatever a tool does wrong is a result that says so: never a JSON-RPC error, never a crash."""
        try:
            if isinstance(self._provider, Contextual):
                return as_raw((await self._provider.call_with(name, arguments, context)).wire())
            return as_raw((await self._provider.call_tool(name, arguments)).wire())
        except ToolError as problem:
            return _failure(str(problem))
        except Exception as problem:
            _log.exception("tool %s failed", name)
            return _failure(f"{name} failed: {in_words(problem)}")

    def notify(self, method: str, params: Fields | None = None) -> None:
        """Providers hear no notifications."""

    def supports(self, capability: str, detail: str | None = None) -> bool:
        return capability == "tools" and detail is None

    def working_for(self) -> list[Exchange]:
        return []

    async def aclose(self) -> None:
        """Nobody may use the provider any more: its calls end."""
        await self._calls.aclose(LAST_WAIT)


def _failure(text: str) -> Raw:
    # Half a character, as in a file name that is no UTF-8, cannot be sent.
    return as_raw(CallToolResult.error(text.encode(errors="replace").decode()).wire())


def _extending(deadline: asyncio.Timeout, seconds: float, tell: Report | None) -> Report:
    """Whoever reports progress has its time anew, also where nobody asked for the report."""
    loop = asyncio.get_running_loop()

    def report(value: float, total: float | None, message: str | None) -> None:
        with contextlib.suppress(RuntimeError):  # it is over already: a thread was late
            deadline.reschedule(loop.time() + seconds)
        if tell is not None:
            tell(value, total, message)

    return report


def _progress_of(exchange: Exchange | None) -> Report | None:
    """Progress to the client of this exchange, where it asked for some; it only ever increases."""
    if exchange is None or exchange.meta is None or "progressToken" not in exchange.meta:
        return None
    token, caller, id = exchange.meta["progressToken"], exchange.caller, exchange.id
    last = float("-inf")

    def report(value: float, total: float | None, message: str | None) -> None:
        nonlocal last
        if value <= last:
            return
        last = value
        params = {"progressToken": token, "progress": as_raw(value)}
        if total is not None:
            params["total"] = as_raw(total)
        if message is not None:
            params["message"] = as_raw(message)
        caller.notify("notifications/progress", params, id)

    return report
