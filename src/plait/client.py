"""A client for programs: `async with Client(compositor) as client`, then list, call, read, and be told.

What an agent needs of MCP, in plain values. It is an `McpSession` inside, on a compositor of this
process or on any transport; a call goes through the same guards as anybody's.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, Self, runtime_checkable

from msgspec import MsgspecError, Raw
from msgspec.json import decode

from plait.agent import Dialect, ToolText, in_words, read_arguments, shaped
from plait.errors import ExecutionFailed, LocalProtocolError, PlaitError, UpstreamBroken
from plait.handlers import Asked, Handlers, Logged, Report, Roots, Told
from plait.mounts.changes import Changes
from plait.notices import NotificationsBuffer
from plait.upstream.base import Transport
from plait.upstream.decoded import unwrap
from plait.upstream.handshake import McpSession
from plait.upstream.lists import fetch
from plait.wire.address import as_raw
from plait.wire.envelope import Fields
from plait.wire.spec import Kind
from plait.wire.tools import CallToolResult, ToolDefinition

DEADLINE = 600.0
"""Seconds for one request. Long: the gateway ends a call by its server's own deadline, and says so better."""


@runtime_checkable
class Endpoint(Protocol):
    """A compositor, as its clients see it."""

    @property
    def changes(self) -> Changes: ...
    def transport(self) -> Transport: ...


class Client:
    """One client, entered once.

    A handler for `sampling`, `elicitation` or `roots` is what makes the client declare it; details of
    them go into `capabilities`. `logging` gets the params of log messages, `listener` the method and
    params of every notification, `progress` the progress of every call that names no other.
    """

    def __init__(
        self,
        to: Endpoint | Transport,
        *,
        sampling: Asked | None = None,
        elicitation: Asked | None = None,
        roots: Roots | None = None,
        logging: Logged | None = None,
        listener: Told | None = None,
        progress: Report | None = None,
        capabilities: Mapping[str, object] | None = None,
        timeout: float = DEADLINE,
    ) -> None:
        self.notifications = NotificationsBuffer()
        """What has changed since it was last polled. Of a compositor: per server, from the beginning."""
        self._to = to
        self._handlers = Handlers(
            sampling=sampling, elicitation=elicitation, roots=roots, logging=logging, listener=listener
        )
        self._declared = self._handlers.capabilities(capabilities)
        self._progress = progress
        self._timeout = timeout
        self._entered = False
        self._session: McpSession | None = None
        self._stop_listening: Callable[[], None] = lambda: None
        self._shown: dict[str, str] = {}
        """Tools that a model's API knows by another name."""

    async def __aenter__(self) -> Self:
        if self._entered:
            raise LocalProtocolError("a client is entered once; make another one")
        self._entered = True
        if isinstance(self._to, Endpoint):
            await self._connect(self._to.transport(), "plait")
            self._stop_listening = self._to.changes.listen(self.notifications)
        else:
            self._handlers.buffer = self.notifications
            await self._connect(self._to, "server")
        return self

    async def _connect(self, transport: Transport, name: str) -> None:
        try:
            self._session = await McpSession.connect(
                transport,
                capabilities=self._declared,
                name=name,
                timeout=self._timeout,
                listener=self._handlers,
            )
        except BaseException:
            await self._handlers.aclose()
            raise

    async def __aexit__(self, *exc: object) -> None:
        self._stop_listening()
        session, self._session = self._session, None
        try:
            if session is not None:
                await session.aclose()
        finally:
            await self._handlers.aclose()

    def __repr__(self) -> str:
        return f"<Client {'not connected' if self._session is None else self._session.protocol_version}>"

    @property
    def session(self) -> McpSession:
        """What was agreed with the server: its capabilities, instructions, name, revision."""
        if self._session is None:
            raise LocalProtocolError("the client is not connected: use it inside `async with Client(…)`")
        return self._session

    # ---- anything

    async def request(
        self, method: str, params: Mapping[str, object] | None = None, *, timeout: float | None = None
    ) -> object:
        """The decoded result of any request. Raises UpstreamRefused for the server's own error."""
        fields = None if params is None else {name: as_raw(value) for name, value in params.items()}
        return await self._ask(method, fields, timeout=timeout)

    async def _ask(
        self,
        method: str,
        fields: Fields | None,
        *,
        timeout: float | None = None,
        report: Report | None = None,
    ) -> dict[str, object]:
        on_progress = None if report is None else self._handlers.reporting(report)
        reply = await self.session.request(method, fields, None, timeout, on_progress)
        try:
            result = unwrap(reply)
        except (MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            raise UpstreamBroken(f"{method} was answered with something unreadable: {problem}") from None
        assert isinstance(result, dict), "a reply that is no object never gets here"
        return result

    async def _list(self, kind: Kind) -> list[dict[str, object]]:
        return [decode(item, type=dict[str, object]) for item in await fetch(self.session, kind)]

    async def ping(self) -> None:
        await self._ask("ping", None)

    # ---- tools

    async def list_tools(self) -> list[ToolDefinition]:
        """Every page of them."""
        listed = await self._list(Kind.TOOLS)
        return [ToolDefinition.of(tool) for tool in listed if isinstance(tool.get("name"), str)]

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        on_progress: Report | None = None,
        timeout: float | None = None,
        raise_on_error: bool = False,
    ) -> CallToolResult:
        """A failure of the tool is a result that says so; with `raise_on_error`, ExecutionFailed."""
        result = await self._call(name, as_raw(dict(arguments or {})), on_progress, timeout)
        if raise_on_error and result.is_error:
            raise ExecutionFailed(in_words(result))
        return result

    async def _call(
        self, name: str, arguments: Raw, report: Report | None, timeout: float | None
    ) -> CallToolResult:
        fields = {"name": as_raw(name), "arguments": arguments}
        report = report or self._progress
        return CallToolResult.of(await self._ask("tools/call", fields, timeout=timeout, report=report))

    # ---- for agent loops

    async def schemas(self, dialect: Dialect) -> list[dict[str, object]]:
        """Every tool as that API takes it in its `tools`. A name it would refuse is another one there."""
        tools = await self.list_tools()
        shapes = [shaped(tool, dialect) for tool in tools]
        for tool, shape in zip(tools, shapes, strict=True):
            function = shape.get("function", shape)
            assert isinstance(function, dict)
            self._shown[str(function["name"])] = tool.name
        return shapes

    async def execute(
        self, name: str, arguments: Mapping[str, object] | str | None = None, *, timeout: float | None = None
    ) -> ToolText:
        """Do what a model asked for, and say in words what came of it, for the model.

        `arguments` may be the JSON text that OpenAI has. Nothing that goes wrong with the call is raised:
        the loop goes on, and the model can do something about it. `is_error` of the text tells.
        """
        try:
            given = read_arguments(arguments)
            return in_words(await self._call(self._shown.get(name, name), given, None, timeout))
        except PlaitError as problem:
            if isinstance(problem, LocalProtocolError):
                raise
            return ToolText(str(problem), is_error=True)

    # ---- resources

    async def list_resources(self) -> list[dict[str, object]]:
        return await self._list(Kind.RESOURCES)

    async def list_resource_templates(self) -> list[dict[str, object]]:
        return await self._list(Kind.TEMPLATES)

    async def read_resource(self, uri: str) -> dict[str, object]:
        """The result: `contents`, and whatever else the server says."""
        return await self._ask("resources/read", {"uri": as_raw(uri)})

    async def subscribe_resource(self, uri: str) -> None:
        await self._ask("resources/subscribe", {"uri": as_raw(uri)})

    async def unsubscribe_resource(self, uri: str) -> None:
        await self._ask("resources/unsubscribe", {"uri": as_raw(uri)})

    # ---- prompts and the rest

    async def list_prompts(self) -> list[dict[str, object]]:
        return await self._list(Kind.PROMPTS)

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> dict[str, object]:
        """The result: `messages`, and whatever else the server says."""
        fields = {"name": as_raw(name), "arguments": as_raw(dict(arguments or {}))}
        return await self._ask("prompts/get", fields)

    async def complete(
        self,
        ref: Mapping[str, object],
        argument: str,
        value: str,
        context: Mapping[str, str] | None = None,
    ) -> dict[str, object]:
        """How the value of this argument of a prompt or template could go on; `ref` as in the protocol."""
        fields = {"ref": as_raw(dict(ref)), "argument": as_raw({"name": argument, "value": value})}
        if context is not None:
            fields["context"] = as_raw({"arguments": dict(context)})
        return await self._ask("completion/complete", fields)

    async def set_logging_level(self, level: str) -> None:
        await self._ask("logging/setLevel", {"level": as_raw(level)})

    def roots_changed(self) -> None:
        """Tell the servers that what `roots` gives is another list now."""
        self.session.notify("notifications/roots/list_changed")
