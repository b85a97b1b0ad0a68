"""A ToolProvider, mounted like any other server: it answers the same requests."""

import asyncio
import contextlib
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from msgspec import Raw
from msgspec.json import decode

from plait.config.model import StreamSettings
from plait.errors import ToolError, UpstreamBroken, UpstreamTimeout, UpstreamUnavailable
from plait.providers.builtin import in_words
from plait.providers.calling import Provider, call, may_log
from plait.providers.context import Clock, Log, Report, ToolContext
from plait.providers.streaming import GRACE
from plait.session.exchange import Exchange, Reply, level_of, refuse
from plait.tasks import Interruptible, TaskSet
from plait.upstream.base import Link
from plait.upstream.client import Listener
from plait.upstream.opening import Behalf
from plait.wire.address import as_raw, read_text
from plait.wire.envelope import EMPTY, Fields
from plait.wire.spec import LEVELS, METHOD_NOT_FOUND
from plait.wire.tools import CallToolResult

_log = logging.getLogger("plait.provider")

LAST_WAIT = 5.0
"""Seconds for calls to end that were interrupted."""


@runtime_checkable
class Changing(Protocol):
    """A provider whose tools come and go, and that says so."""

    def on_change(self, listener: Callable[[], None]) -> None: ...


class ProviderOpener:
    """There is nothing to start: the provider is here already."""

    instructions = ""

    def __init__(
        self, provider: Provider, timeout: float | None = None, limits: StreamSettings | None = None
    ) -> None:
        """`timeout`: seconds for one call; progress starts the time anew. `limits`: how much one streams."""
        self._provider = provider
        self._timeout = timeout
        self._limits = limits

    async def open(self, listener: Listener, behalf: Awaitable[Behalf]) -> Link:
        if isinstance(self._provider, Changing):
            self._provider.on_change(lambda: listener.heard("notifications/tools/list_changed", {}))
        return ProviderLink(self._provider, self._timeout, self._limits, listener)


class ProviderLink:
    """The provider's side of the one dispatch path."""

    instructions = ""
    warning: str | None = None

    def __init__(
        self,
        provider: Provider,
        timeout: float | None = None,
        limits: StreamSettings | None = None,
        listener: Listener | None = None,
    ) -> None:
        self._provider = provider
        self._timeout = timeout
        self._calls = Interruptible()
        self._limits = limits
        self._listener = listener or Listener()
        self._tasks = TaskSet()

    async def request(self, method: str, params: Fields | None, exchange: Exchange | None = None) -> Reply:
        match method:
            case "tools/list":
                return Reply(result=await self._list())
            case "tools/call" if params is not None:
                name = read_text(params["name"])
                arguments = decode(params["arguments"], type=dict[str, object])
                return Reply(result=await self._within(name, arguments, exchange))
            case "logging/setLevel" if self.supports("logging"):
                return Reply(result=EMPTY)  # what each client wants is looked at for each message
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
                clock = None if seconds is None else Clock(deadline, seconds)
                return await self._call(name, arguments, self._context(name, exchange, clock))
        except TimeoutError:
            if self._calls.interrupted:
                raise UpstreamUnavailable(f"its provider was unmounted during {name}") from None
            raise UpstreamTimeout(f"{name} was not done within {seconds:g} s") from None

    def _context(self, name: str, exchange: Exchange | None, clock: Clock | None) -> ToolContext:
        return ToolContext(
            progress_of(exchange),
            _log_of(exchange, name) if may_log(self._provider) else None,
            clock=clock,
            limits=self._limits,
            tasks=self._tasks,
            count=self._listener.counted,
        )

    async def _call(self, name: str, arguments: dict[str, object], context: ToolContext) -> Raw:
        """Whatever a tool does wrong is a result that says so: never a JSON-RPC error, never a crash."""
        try:
            return as_raw((await call(self._provider, name, arguments, context)).wire())
        except ToolError as problem:
            return _failure(str(problem))
        except Exception as problem:
            _log.exception("tool %s failed", name)
            return _failure(f"{name} failed: {in_words(problem)}")

    def notify(self, method: str, params: Fields | None = None) -> None:
        """Providers hear no notifications."""

    def supports(self, capability: str, detail: str | None = None) -> bool:
        return detail is None and (
            capability == "tools" or (capability == "logging" and may_log(self._provider))
        )

    def working_for(self) -> list[Exchange]:
        return []

    async def aclose(self) -> None:
        """Nobody may use the provider any more: streams that are still read end with what they gave, and
        its other calls too; one that cannot be ended is not waited for."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await asyncio.shield(self._tasks.aclose())
        await self._calls.aclose(LAST_WAIT)


def _failure(text: str) -> Raw:
    # Half a character, as in a file name that is no UTF-8, cannot be sent.
    return as_raw(CallToolResult.error(text.encode(errors="replace").decode()).wire())


def progress_of(exchange: Exchange | None) -> Report | None:
    """Progress to the client of this exchange, where it asked for some; it only ever increases."""
    if exchange is None or exchange.meta is None or "progressToken" not in exchange.meta:
        return None
    token, caller, id = exchange.meta["progressToken"], exchange.caller, exchange.id
    last = -math.inf

    def report(value: float, total: float | None, message: str | None) -> None:
        nonlocal last
        if not last < value < math.inf:
            return
        last = value
        params = {"progressToken": token, "progress": as_raw(value)}
        if total is not None:
            params["total"] = as_raw(total)
        if message is not None:
            params["message"] = as_raw(message)
        caller.notify("notifications/progress", params, id)

    return report


def _log_of(exchange: Exchange | None, name: str) -> Log | None:
    """Log messages to the client of this exchange and to nobody else, from the level on that it asked for."""
    if exchange is None:
        return None
    caller, id, route = exchange.caller, exchange.id, exchange.destination
    server = "" if route is None else route.server

    def log(level: str, data: object, logger: str | None) -> None:
        wanted = level_of(caller)
        if wanted is None or LEVELS.index(level) < wanted:
            return
        named = "/".join(part for part in (server, logger or name) if part)
        params = {"level": as_raw(level), "logger": as_raw(named), "data": _sendable(data)}
        caller.notify("notifications/message", params, id)

    return log


def _sendable(data: object) -> Raw:
    """ "Arbitrary JSON-serializable data" (server/utilities/logging); what is none is told in words."""
    try:
        return as_raw(data)
    except (TypeError, ValueError):
        return as_raw(str(data).encode(errors="replace").decode())
