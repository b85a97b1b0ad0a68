"""Everything we expose, as one immutable snapshot. Mounts replace it; requests only read it."""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Protocol

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import decode

from plait.pipeline.redaction import secret_parameters
from plait.routing.naming import MountPrefix, Naming
from plait.routing.templates import Template
from plait.upstream.base import Upstream
from plait.wire.address import as_raw, read_text
from plait.wire.envelope import Fields, encode, open_fields
from plait.wire.spec import Kind

AUDITED = b'"x-plait-audit":"arguments"'
"""In the input schema of a tool whose arguments are recorded."""


class Item(Struct, frozen=True):
    """One entry of a server's list: what identifies it there, and all of its fields, unread."""

    key: str
    fields: Fields


class Offer(Upstream, Protocol):
    """A server as the catalog sees it: a prefix, and its lists."""

    prefix: MountPrefix
    pinned: bool
    """Is it part of plait itself?"""

    def listed(self, kind: Kind) -> Sequence[Item]: ...
    def exposes(self, tool: str) -> bool: ...


class Route(Struct, frozen=True):
    """Where an exposed name leads: this server, under its own name there."""

    upstream: Offer
    native: Raw
    exposed: str
    server: str
    """The prefix of the mount."""
    schema: Raw | None = None
    """The input schema of a tool, unread."""
    output_schema: Raw | None = None
    recorded: frozenset[str] | None = None
    """Its arguments are recorded, but for those under these names; None: only their shape is."""

    def declared(self) -> dict[str, str]:
        """Parameters whose schema says itself what they are: `"x-plait-policy": "command"`."""
        if self.schema is None or b"x-plait-policy" not in bytes(self.schema):
            return {}
        return dict(_declarations(decode(self.schema)))

    @property
    def native_name(self) -> str:
        return read_text(self.native)


class Withheld(Struct, frozen=True):
    """Something a server offers and we do not, and why."""

    kind: Kind
    prefix: str
    name: str
    reason: str


class Listing(Struct, frozen=True, eq=False, weakref=True):
    """One of the four aggregated lists."""

    items: tuple[Raw, ...] = ()
    routes: dict[str, Route] = {}
    whole: Raw = Raw(b"{}")
    """The ready-made result of listing it in one page."""


class Catalog(Struct, frozen=True):
    tools: Listing = Listing()
    prompts: Listing = Listing()
    resources: Listing = Listing()
    templates: Listing = Listing()
    patterns: tuple[tuple[Template, Route], ...] = ()
    """The templates in the order in which they are tried: the most literal first."""
    withheld: tuple[Withheld, ...] = ()

    def listing(self, kind: Kind) -> Listing:
        match kind:
            case Kind.TOOLS:
                return self.tools
            case Kind.PROMPTS:
                return self.prompts
            case Kind.RESOURCES:
                return self.resources
            case Kind.TEMPLATES:
                return self.templates

    def changes(self, older: "Catalog") -> list[Kind]:
        """The lists that differ, as a client would see them."""
        return [kind for kind in Kind if self.listing(kind).items != older.listing(kind).items]


def read_items(raws: Iterable[Raw], kind: Kind) -> tuple[list[Item], int]:
    """The items of a server's list, copied out of its message, and how many were unusable."""
    items: list[Item] = []
    unusable = 0
    for raw in raws:
        try:
            fields = open_fields(bytes(raw))
            items.append(Item(read_text(fields[kind.key]), fields))
        except (MsgspecError, UnicodeDecodeError, KeyError):
            unusable += 1
    return items, unusable


def build(offers: Sequence[Offer], naming: Naming) -> Catalog:
    """Put all lists together, in the order of the mounts, then of each server.

    What collides is withheld from the later one and everything else goes on: one bad name must
    never take a whole server away, let alone all of them.
    """
    withheld: list[Withheld] = []
    listings = {kind: _aggregate(kind, offers, naming, withheld) for kind in Kind}
    templates = listings[Kind.TEMPLATES]
    patterns = [(Template(text), route) for text, route in templates.routes.items()]
    patterns.sort(key=lambda pair: -pair[0].literal)
    return Catalog(
        listings[Kind.TOOLS],
        listings[Kind.PROMPTS],
        listings[Kind.RESOURCES],
        templates,
        tuple(patterns),
        tuple(withheld),
    )


def _aggregate(kind: Kind, offers: Sequence[Offer], naming: Naming, withheld: list[Withheld]) -> Listing:
    items: list[Raw] = []
    routes: dict[str, Route] = {}
    for offer in offers:
        for item in offer.listed(kind):
            if kind is Kind.TOOLS and not offer.exposes(item.key):
                withheld.append(
                    Withheld(kind, offer.prefix, item.key, "left out by the server's own settings")
                )
                continue
            exposed = naming.expose(offer.prefix, item.key) if kind.key == "name" else item.key
            taken = routes.get(exposed)
            if taken is not None:
                reason = f"{exposed} is taken by {taken.upstream.prefix or 'a server without a prefix'}"
                withheld.append(Withheld(kind, offer.prefix, item.key, reason))
                continue
            routes[exposed] = Route(
                offer,
                as_raw(item.key),
                exposed,
                str(offer.prefix),
                item.fields.get("inputSchema"),
                item.fields.get("outputSchema"),
                _recorded(item) if offer.pinned else None,
            )
            items.append(Raw(encode({**item.fields, kind.key: as_raw(exposed)})))
    return Listing(tuple(items), routes, page(kind, items))


def page(kind: Kind, items: Sequence[Raw], cursor: str | None = None) -> Raw:
    """The result of listing these items."""
    fields: dict[str, object] = {kind.value: items}
    return as_raw(fields if cursor is None else {**fields, "nextCursor": cursor})


def _recorded(item: Item) -> frozenset[str] | None:
    """A tool that is part of plait may say `"x-plait-audit": "arguments"`. No other server can have what
    it is given written down."""
    schema = item.fields.get("inputSchema")
    if schema is None or AUDITED not in bytes(schema):
        return None
    return secret_parameters(decode(schema))


def _declarations(schema: object) -> Iterator[tuple[str, str]]:
    if not isinstance(schema, dict):
        return
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        if isinstance(inner, dict):
            if isinstance(inner.get("x-plait-policy"), str):
                yield name.lower(), inner["x-plait-policy"]
            yield from _declarations(inner)


def matches(patterns: Sequence[str], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
