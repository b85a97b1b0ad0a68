"""What was cut from results, as resources that any client can read page by page."""

from collections.abc import Awaitable

from msgspec import Raw
from msgspec.json import decode

from plait.errors import ExecutionFailed, NotFound
from plait.pipeline.kept import TEMPLATE, KeptResults, Page
from plait.session.exchange import Exchange, Reply, refuse
from plait.upstream.base import Link
from plait.upstream.client import Listener
from plait.upstream.opening import Behalf
from plait.wire.address import as_raw, read_text
from plait.wire.content import error_result, text_result
from plait.wire.envelope import Fields
from plait.wire.spec import METHOD_NOT_FOUND, RESOURCE_NOT_FOUND

PREFIX = "plait-results"
LISTED = {
    "uriTemplate": TEMPLATE,
    "name": "the rest of a large result",
    "description": "What was cut from a tool's result, in pages; the result itself has the link.",
}
READ_RESULT = {
    "name": "read_result",
    "description": "Reads what was cut from a large tool result, page by page.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "The id or the plait://results/ link of the result."},
            "offset": {"type": "integer", "minimum": 0, "description": "The byte to begin with."},
            "limit": {"type": "integer", "minimum": 4, "description": "How many bytes at most."},
        },
        "required": ["id"],
    },
}


class ResultsOpener:
    """Mounted like any server; `tool` offers `read_result` to clients that read no resources."""

    instructions = ""

    def __init__(self, store: KeptResults, *, tool: bool) -> None:
        self._store = store
        self._tool = tool

    async def open(self, listener: Listener, behalf: Awaitable[Behalf]) -> Link:
        return ResultsLink(self._store, tool=self._tool)


class ResultsLink:
    """Each reads only what belongs to its own identity."""

    instructions = ""
    warning: str | None = None

    def __init__(self, store: KeptResults, *, tool: bool) -> None:
        self._store = store
        self._tool = tool

    async def request(self, method: str, params: Fields | None, exchange: Exchange | None = None) -> Reply:
        identity = "" if exchange is None else exchange.caller.identity
        match method:
            case "resources/templates/list":
                return Reply(result=as_raw({"resourceTemplates": [LISTED]}))
            case "resources/list":
                return Reply(result=as_raw({"resources": []}))
            case "tools/list":
                return Reply(result=as_raw({"tools": [READ_RESULT]}))
            case "resources/read" if params is not None:
                return self._read(identity, read_text(params["uri"]))
            case "tools/call" if params is not None:
                return Reply(result=self._call(identity, decode(params["arguments"], type=dict[str, object])))
        return refuse(METHOD_NOT_FOUND, f"Method not found: {method}")

    def _read(self, identity: str, uri: str) -> Reply:
        try:
            page = self._store.read(identity, uri)
        except NotFound as missing:
            return refuse(RESOURCE_NOT_FOUND, str(missing), {"uri": uri})
        contents = [{"uri": uri, "mimeType": page.media_type, "text": page.text}]
        if page.next_uri is not None:
            # For programs in the URI, for models in words: few clients show them anything else.
            words = f"[{page.end} of {page.total} bytes; the next page is {page.next_uri}]"
            contents.append({"uri": page.next_uri, "mimeType": "text/plain", "text": words})
        return Reply(result=as_raw({"contents": contents}))

    def _call(self, identity: str, arguments: dict[str, object]) -> Raw:
        try:
            offset, limit = _number(arguments, "offset"), _number(arguments, "limit")
            page = self._store.read(identity, str(arguments.get("id", "")), offset or 0, limit)
        except (NotFound, ExecutionFailed) as problem:
            return error_result(str(problem))
        return text_result(page.text + _more(page))

    def notify(self, method: str, params: Fields | None = None) -> None:
        """Nothing here changes."""

    def supports(self, capability: str, detail: str | None = None) -> bool:
        return detail is None and (capability == "resources" or (capability == "tools" and self._tool))

    def working_for(self) -> list[Exchange]:
        return []

    async def aclose(self) -> None: ...


def _number(arguments: dict[str, object], name: str) -> int | None:
    value = arguments.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise ExecutionFailed(f"{name} is a whole number of bytes")
    return value


def _more(page: Page) -> str:
    return (
        ""
        if page.end >= page.total
        else f"\n[{page.end} of {page.total} bytes; go on with offset {page.end}]"
    )
