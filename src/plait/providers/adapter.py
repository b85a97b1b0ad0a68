"""A ToolProvider, mounted like any other server: it answers the same requests."""

import logging
from collections.abc import Awaitable

from msgspec.json import decode

from plait.errors import ToolError
from plait.providers.provider import CallToolResult, ToolProvider
from plait.session.exchange import Exchange, Reply, refuse
from plait.upstream.base import Link
from plait.upstream.client import Listener
from plait.upstream.opening import Behalf
from plait.wire.address import as_raw, read_text
from plait.wire.envelope import Fields
from plait.wire.spec import METHOD_NOT_FOUND

_log = logging.getLogger("plait.provider")


class ProviderOpener:
    """There is nothing to start: the provider is here already."""

    instructions = ""

    def __init__(self, provider: ToolProvider) -> None:
        self._provider = provider

    async def open(self, listener: Listener, behalf: Awaitable[Behalf]) -> Link:
        return ProviderLink(self._provider)


class ProviderLink:
    """The provider's side of the one dispatch path."""

    instructions = ""
    warning: str | None = None

    def __init__(self, provider: ToolProvider) -> None:
        self._provider = provider

    async def request(self, method: str, params: Fields | None, exchange: Exchange | None = None) -> Reply:
        match method:
            case "tools/list":
                tools = [tool.fields() for tool in await self._provider.list_tools()]
                return Reply(result=as_raw({"tools": tools}))
            case "tools/call" if params is not None:
                name = read_text(params["name"])
                result = await self._call(name, decode(params["arguments"], type=dict[str, object]))
                return Reply(result=as_raw(result.fields()))
        return refuse(METHOD_NOT_FOUND, f"Method not found: {method}")

    async def _call(self, name: str, arguments: dict[str, object]) -> CallToolResult:
        """Whatever a tool does wrong is a result that says so: never a JSON-RPC error, never a crash."""
        try:
            return await self._provider.call_tool(name, arguments)
        except ToolError as problem:
            return CallToolResult.error(str(problem))
        except Exception as problem:
            _log.exception("tool %s failed", name)
            return CallToolResult.error(f"{name} failed: {type(problem).__name__}: {problem}")

    def notify(self, method: str, params: Fields | None = None) -> None:
        """Providers hear no notifications."""

    def supports(self, capability: str, detail: str | None = None) -> bool:
        return capability == "tools" and detail is None

    def working_for(self) -> list[Exchange]:
        return []

    async def aclose(self) -> None: ...
