"""Which arguments the calls of a server's tools repeat in their headers: learnt from the lists that pass by.

"Clients MUST exclude tools with an invalid `x-mcp-header` from the result of tools/list" (2026-07-28,
basic/transports): over HTTP such a tool could not be called as its server wants it.
"""

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder, decode

from plait.wire.address import as_raw, read_text
from plait.wire.envelope import Fields, encode, open_fields
from plait.wire.header_schema import ANNOTATION, BadAnnotation, Mirrored, mirrored, parameter_headers

_MARK = ANNOTATION.encode()
_UNREADABLE = (MsgspecError, UnicodeDecodeError, RecursionError, KeyError)

_read_items = Decoder(list[Raw]).decode


class Dropped(Struct, frozen=True):
    """A tool that clients never see, and why."""

    name: str
    reason: str


class Mirrors:
    """By the server's own names of its tools; most have none."""

    def __init__(self) -> None:
        self._tools: dict[str, list[Mirrored]] = {}

    def headers(self, params: Fields) -> dict[str, str]:
        """Those of a `tools/call`, made of the arguments that are really sent."""
        try:
            parameters = self._tools.get(read_text(params["name"]))
            arguments = decode(params["arguments"]) if parameters else None
        except _UNREADABLE:
            return {}
        return parameter_headers(parameters or [], arguments) if isinstance(arguments, dict) else {}

    def learn(self, line: bytes, *, anew: bool) -> tuple[bytes, list[Dropped]]:
        """A page of the list on its way in, without the tools that are dropped; `anew`: the first page."""
        if anew:
            self._tools.clear()
        if _MARK not in line:
            return line, []
        try:
            message = open_fields(line)
            result = open_fields(message["result"])
            tools = _read_items(result["tools"])
        except _UNREADABLE:
            return line, []  # whoever reads it says what is wrong with it
        judged = [(tool, self._judge(tool)) for tool in tools]
        dropped = [verdict for _, verdict in judged if verdict is not None]
        if not dropped:
            return line, []
        kept = as_raw([tool for tool, verdict in judged if verdict is None])
        return encode({**message, "result": as_raw({**result, "tools": kept})}), dropped

    def _judge(self, tool: Raw) -> Dropped | None:
        try:
            fields = open_fields(tool)
            name = read_text(fields["name"])
            found = mirrored(decode(fields["inputSchema"]))
        except BadAnnotation as problem:
            return Dropped(name, str(problem))
        except _UNREADABLE:
            return None
        if found:
            self._tools[name] = found
        return None
