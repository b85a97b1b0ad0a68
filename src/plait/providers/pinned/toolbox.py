"""Tools of parts of plait: arguments that are checked, results in both forms, failures in words that help."""

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder, encode

from plait.errors import NotFound, PermissionDenied, PlaitError
from plait.pipeline.audit_arguments import MAX_READ
from plait.providers.builtin import in_words
from plait.providers.function import schema_of
from plait.providers.pinned.part import listing
from plait.session.exchange import Exchange, Reply, Verdict, refuse
from plait.wire.address import as_raw, read_text
from plait.wire.content import error_result
from plait.wire.envelope import EMPTY, Fields
from plait.wire.spec import METHOD_NOT_FOUND

_log = logging.getLogger("plait.pinned")

Arguments = TypeVar("Arguments", bound=Struct)


class Hints(Struct, frozen=True, rename="camel"):
    """What a tool says of its effects. Clients may show it; nothing here depends on it (BD-45)."""

    read_only_hint: bool = False
    destructive_hint: bool = False
    idempotent_hint: bool = True
    open_world_hint: bool = False


LOOKS = Hints(read_only_hint=True)
CHANGES = Hints()


class Refused(PlaitError):
    """What was asked cannot be done; the words say why, and what to do instead."""


class Runnable(Protocol):
    """A tool, whatever its arguments are."""

    name: str

    def listed(self) -> dict[str, object]: ...
    async def run(self, arguments: Raw, exchange: Exchange) -> Raw: ...


class Tool(Generic[Arguments]):
    """A method whose docstring is the tool's description, and the Struct of its arguments."""

    def __init__(
        self,
        arguments: type[Arguments],
        act: Callable[[Arguments, Exchange], Awaitable[object]],
        hints: Hints,
        *,
        recorded: bool = False,
    ) -> None:
        """`recorded`: the audit has its arguments, not only their shape."""
        self.name = getattr(act, "__name__", "")
        self._arguments = arguments
        self._read = Decoder(arguments).decode
        self._act = act
        self._hints = hints
        self._recorded = recorded

    def listed(self) -> dict[str, object]:
        schema = schema_of(self._arguments)
        schema.pop("description", None)
        return {
            "name": self.name,
            "description": " ".join((inspect.getdoc(self._act) or "").split()),
            "inputSchema": {**schema, "x-plait-audit": "arguments"} if self._recorded else schema,
            "annotations": self._hints,
        }

    async def run(self, arguments: Raw, exchange: Exchange) -> Raw:
        if self._recorded and len(arguments) > MAX_READ:
            raise Refused(f"the arguments are longer than {MAX_READ} bytes, and could not be recorded")
        try:
            given = self._read(arguments)
        except (MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            raise Refused(str(problem)) from None
        return in_both_forms(await self._act(given, exchange))


def in_both_forms(value: object) -> Raw:
    """As structured content and, for clients that read no such thing, as text."""
    encoded = encode(value)
    block = {"type": "text", "text": encoded.decode()}
    return as_raw({"content": [block], "structuredContent": Raw(encoded)})


class Toolbox:
    def __init__(self, tools: Sequence[Runnable]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self.list = listing("tools", lambda: [tool.listed() for tool in tools])

    async def call(self, params: Fields, exchange: Exchange | None) -> Reply:
        """Whatever goes wrong is a result that says so."""
        if exchange is None:
            return refuse(METHOD_NOT_FOUND, "tools are called for clients only")
        name = read_text(params["name"])
        try:
            tool = self._tools.get(name)
            if tool is None:
                raise NotFound(name)
            return Reply(result=await tool.run(params.get("arguments", EMPTY), exchange))
        except PermissionDenied as denied:
            verdict = Verdict("denied", "operators", denied.reason)
            return Reply(result=error_result(str(denied)), verdict=verdict)
        except PlaitError as problem:
            return Reply(result=error_result(f"{name}: {problem}"))
        except Exception as problem:
            _log.exception("%s failed", name)
            return Reply(
                result=error_result(f"{name} failed: {in_words(problem)}; the log of plait says more")
            )
