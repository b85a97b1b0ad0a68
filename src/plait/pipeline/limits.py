"""ResultGuard: no result is larger than its budget, and none speaks to a terminal."""

import asyncio
from collections.abc import Callable, Container, Mapping

from msgspec import Raw, Struct
from msgspec.structs import replace

from plait.pipeline.blocks import open_object, repeats_a_key, starts
from plait.pipeline.compose import Stage
from plait.pipeline.cutting import Document, OpenResult
from plait.pipeline.kept import Kept, KeptResults
from plait.pipeline.sanitising import harmless, neutralise
from plait.pipeline.shortening import MARK, cut
from plait.session.exchange import Exchange, Handler, Reply
from plait.wire.address import as_raw, read_text
from plait.wire.envelope import EMPTY

MAX_TOOL_RESULT_BYTES = 65_536
TRUNCATED = "plait/truncated"
INVISIBLE = "plait/invisible"
LARGE = 1024 * 1024
"""Above that a result is worked on in a thread: others must not wait for it."""
LINKS_SINCE = "2025-06-18"
"""The first revision that knows `resource_link` blocks; older clients are told in words."""

SchemaOf = Callable[[Exchange], Raw | None]
"""The `outputSchema` of the tool that is called, if it has one."""


class Terms(Struct, frozen=True):
    """What is asked of one result."""

    limit: int
    sanitise: bool
    strip: bool
    schema: Raw | None


class ResultGuard:
    """A budget for the texts and the structured content of a tool's result, errors included.

    What is cut is kept in the store, and the result carries a link to it. A result that is small and
    plain passes unopened; of every other one only what has to change does.
    """

    stage = Stage.LIMITS

    def __init__(
        self,
        max_bytes: int = MAX_TOOL_RESULT_BYTES,
        *,
        per_tool: Mapping[str, int] | None = None,
        store: KeptResults | None = None,
        sanitise: bool = True,
        untouched: Container[str] = (),
        strip_invisible: bool = False,
        schema_of: SchemaOf | None = None,
        reader: str = "",
    ) -> None:
        """`per_tool` by exposed names; `untouched` are servers whose text is left as it is; `reader` is
        the exposed name of the tool that reads what was kept, where there is one."""
        self._max_bytes = max_bytes
        self._per_tool = dict(per_tool or {})
        if reader:
            # A page of what was cut must not be cut again, however small results have to be.
            self._per_tool[reader] = max(self._per_tool.get(reader, max_bytes), MAX_TOOL_RESULT_BYTES)
        self._store = store
        self._sanitise = sanitise
        self._untouched = untouched
        self._strip = strip_invisible
        self._schema_of = schema_of
        self._reader = reader

    async def __call__(self, exchange: Exchange, call_next: Handler) -> Reply:
        reply = await call_next(exchange)
        payload = reply.error if reply.result is None else reply.result
        if payload is None or exchange.method != "tools/call":
            return reply
        limit = self._per_tool.get(exchange.address, self._max_bytes)
        sanitise = self._sanitise and self._cleans(exchange)
        if len(payload) <= limit and not (sanitise and not harmless(bytes(payload))):
            return reply
        schema = None if self._schema_of is None else self._schema_of(exchange)
        terms = Terms(limit, sanitise, self._strip, schema)
        if reply.result is None:
            return replace(reply, error=fit_error(payload, terms))
        return await self._attend(exchange, reply, payload, terms)

    def _cleans(self, exchange: Exchange) -> bool:
        return exchange.destination is None or exchange.destination.server not in self._untouched

    async def _attend(self, exchange: Exchange, reply: Reply, payload: Raw, terms: Terms) -> Reply:
        if len(payload) > LARGE:
            fitted = await asyncio.to_thread(fit_result, payload, terms)
        else:
            fitted = fit_result(payload, terms)
        if fitted is None or not fitted.result.changed:
            return reply
        if fitted.result.removed:
            await self._link(exchange, fitted)
        return replace(reply, result=fitted.result.raw())

    async def _link(self, exchange: Exchange, fitted: "Fitted") -> None:
        """Keep what was cut, and say where it is."""
        note: dict[str, object] = {"original_bytes": fitted.original, "kept_bytes": fitted.left}
        for document, key in zip(fitted.result.removed, ("uri", "structured_uri"), strict=False):
            kept = await self._keep(exchange, document)
            if kept is not None:
                note[key] = kept.uri
                fitted.result.append(self._link_block(kept, exchange.caller.revision))
        fitted.result.note(TRUNCATED, note)

    async def _keep(self, exchange: Exchange, document: Document) -> Kept | None:
        if self._store is None:
            return None
        return await self._store.keep(exchange.caller.identity, exchange.address, document)

    def _link_block(self, kept: Kept, revision: str) -> dict[str, object]:
        what = "structured content" if kept.media_type == "application/json" else "text"
        how = f", or call {self._reader} with the id {kept.id}" if self._reader else ""
        words = f"the whole {what} has {kept.size} bytes: read this resource page by page{how}"
        if revision < LINKS_SINCE:
            return {"type": "text", "text": f"[{words}: {kept.uri}]"}
        return {
            "type": "resource_link",
            "uri": kept.uri,
            "name": f"the whole {what} of {kept.tool}",
            "description": words,
            "mimeType": kept.media_type,
            "size": kept.size,
        }


class Fitted(Struct, frozen=True):
    """A result within its budget, and its size before and after."""

    result: OpenResult
    original: int
    left: int


def fit_result(payload: Raw, terms: Terms) -> Fitted | None:
    """None for what is no result at all."""
    result = OpenResult.of(payload)
    if result is None:
        return None
    if terms.sanitise and not harmless(bytes(payload)):
        unseen = result.clean(strip=terms.strip)
        if unseen:
            result.note(INVISIBLE, unseen)
    original = left = result.size
    if original > terms.limit:
        left = result.fit(terms.limit, terms.schema)
    return Fitted(result, original, left)


def fit_error(payload: Raw, terms: Terms) -> Raw:
    """A JSON-RPC error under the same budget. Its data is dropped where it does not fit."""
    fields = open_object(payload)
    if fields is None or not starts(fields.get("message", EMPTY), b'"'):
        return payload
    message = given = read_text(fields["message"])
    if terms.sanitise:
        message = neutralise(message)
    if len(message.encode()) > terms.limit:
        message = cut(message, terms.limit) + MARK
    room = terms.limit - len(message.encode())
    data = fields.get("data")
    if data is not None and len(data) > max(room, 0):
        del fields["data"]
    elif message == given and not repeats_a_key(payload, fields):
        return payload
    return as_raw({**fields, "message": as_raw(message)})
