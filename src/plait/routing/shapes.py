"""The lists as each era's clients can take them, made once for each list and kept until it changes."""

from collections.abc import Callable
from weakref import WeakKeyDictionary

from msgspec import Raw

from plait.routing.catalog import Listing, page
from plait.session.eras.results import Freshness
from plait.session.eras.schemas import fitted, without_execution
from plait.wire.envelope import encode, open_fields
from plait.wire.modern import is_modern
from plait.wire.spec import Era, Kind

_SHAPE: dict[Era, Callable[[Raw], Raw]] = {Era.MODERN: without_execution, Era.HANDSHAKE: fitted}


class Shapes:
    """Only tools differ between the eras, and few of them; a list without such is passed on as it is."""

    def __init__(self) -> None:
        self._made: dict[Era, WeakKeyDictionary[Listing, Listing | None]] = {
            era: WeakKeyDictionary() for era in Era
        }
        """None for a list that is passed on as it is."""

    def shaped(self, kind: Kind, listing: Listing, revision: str) -> Listing:
        if kind is not Kind.TOOLS:
            return listing
        era = Era.MODERN if is_modern(revision) else Era.HANDSHAKE
        made = self._made[era]
        if listing not in made:
            made[listing] = _shaped(listing, _SHAPE[era])
        return made[listing] or listing


def _shaped(listing: Listing, shape: Callable[[Raw], Raw]) -> Listing | None:
    items = tuple(shape(item) for item in listing.items)
    if all(new is old for new, old in zip(items, listing.items, strict=True)):
        return None
    return Listing(items, listing.routes, page(Kind.TOOLS, items))


def withheld(result: Raw) -> Raw:
    """A result that only its own reader may keep."""
    fields = open_fields(result)
    return Raw(encode({**fields, "cacheScope": Raw(b'"private"')}))


def dated(result: Raw, freshness: Freshness) -> Raw:
    """A result of ours, with how long it holds."""
    return Raw(encode(freshness.put(open_fields(result))))
