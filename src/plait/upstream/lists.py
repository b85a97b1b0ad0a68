"""Fetch a whole list from a server, page after page, whatever the server does with its cursors."""

from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType
from msgspec.json import Decoder

from plait.errors import UpstreamBroken, UpstreamRefused
from plait.session.eras.results import STALE, Freshness, freshness_of
from plait.upstream.base import Server
from plait.wire.envelope import EMPTY, ErrorBody, Fields, open_fields
from plait.wire.spec import METHOD_NOT_FOUND, Kind

MAX_PAGES = 100
MAX_ITEMS = 10_000

_read_error = Decoder(ErrorBody).decode
_read_items = Decoder(list[Raw]).decode


class Page(Struct, gc=False):
    items: list[Raw]
    cursor: Raw | UnsetType
    freshness: Freshness


async def fetch(server: Server, kind: Kind) -> list[Raw]:
    """Every item of one of the server's lists, unread."""
    return (await fetch_dated(server, kind))[0]


async def fetch_dated(server: Server, kind: Kind) -> tuple[list[Raw], Freshness]:
    """The same, and how long the server says that it holds: as long as the first page of it to go stale.

    A server that does not know the method has no such list: claude-flow advertises resources and
    answers -32601. "An empty string is a valid cursor"; only its absence, or null, is the end.
    """
    items: list[Raw] = []
    freshness: Freshness | None = None
    seen: set[bytes] = set()
    params: Fields | None = None
    for _ in range(MAX_PAGES):
        reply = await server.request(kind.method, params)
        if reply.error is not None:
            error = _read_error(reply.error)
            if error.code == METHOD_NOT_FOUND:
                return items, STALE
            raise UpstreamRefused(error.code, f"{kind.method}: {error.message}")
        page = _read_page(kind, reply.result or EMPTY)
        items += page.items
        freshness = page.freshness if freshness is None else freshness & page.freshness
        if isinstance(page.cursor, UnsetType):
            return items, freshness
        cursor = bytes(page.cursor)
        if cursor in seen or len(items) > MAX_ITEMS:
            raise UpstreamBroken(f"{kind.method} goes round in circles after {len(items)} items")
        seen.add(cursor)
        params = {"cursor": Raw(cursor)}
    raise UpstreamBroken(f"{kind.method} has more than {MAX_PAGES} pages")


def _read_page(kind: Kind, result: Raw) -> Page:
    try:
        fields = open_fields(bytes(result))
        cursor: Raw | UnsetType = fields.get("nextCursor", UNSET)
        if isinstance(cursor, Raw) and bytes(cursor) == b"null":
            cursor = UNSET
        return Page(_read_items(fields.get(kind.value, b"[]")), cursor, freshness_of(fields))
    except (MsgspecError, UnicodeDecodeError):
        raise UpstreamBroken(f"{kind.method} answered with something that is no list") from None
