"""From what a client calls something to the server that has it, or to words that help."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from msgspec import Struct

from plait.routing.catalog import Catalog, Listing, Offer, Route
from plait.routing.naming import SEPARATORS, Naming

LONGEST_ECHO = 200
"""Characters of an unknown name that are repeated to whoever called it."""


class Ambiguous(Struct, frozen=True):
    """Several routes fit; the caller has to say which."""

    candidates: tuple[str, ...]


class Aliases:
    """Other spellings of the exposed names of one snapshot; made when first needed."""

    def __init__(self, listing: Listing, naming: Naming) -> None:
        self._routes: dict[str, list[Route]] = {}
        for route in listing.routes.values():
            for spelling in naming.spellings(route.upstream.prefix, route.native_name):
                self._routes.setdefault(spelling, []).append(route)

    def find(self, name: str, visible: Callable[[Route], bool] = lambda _: True) -> Route | Ambiguous | None:
        """The route that this other spelling fits, if it fits just one that is visible (decision 2).

        Within one mount the order is its developer's own: there the first one counts.
        """
        fitting = [route for route in self._routes.get(name, ()) if visible(route)]
        # What is part of plait makes no name of a server's ambiguous.
        fitting = [route for route in fitting if not route.upstream.pinned] or fitting
        if len({route.upstream.prefix for route in fitting}) > 1:
            return Ambiguous(tuple(sorted(route.exposed for route in fitting)))
        return fitting[0] if fitting else None


def owner_of(catalog: Catalog, uri: str, capable: list[Offer]) -> Offer | None:
    """Whose resource is it: by the table, then by the templates, then of the one server that has any."""
    listed = catalog.resources.routes.get(uri)
    if listed is not None:
        return listed.upstream
    for template, route in catalog.patterns:
        if template.matches(uri):
            return route.upstream
    return capable[0] if len(capable) == 1 else None


def unknown_tool(name: str, known: Mapping[str, Route], prefixes: set[str]) -> str:
    """Words from which a model can correct itself."""
    if len(name) > LONGEST_ECHO:
        name = f"{name[:LONGEST_ECHO]}…"
    text = f"unknown tool {name!r}"
    namespace = _namespace(name)
    if namespace is not None and namespace not in prefixes:
        text += f": unknown namespace {namespace!r}"
    close = get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        return f"{text}. Did you mean {' or '.join(close)}?"
    return f"{text}. {len(known)} tools are listed by tools/list."


def _namespace(name: str) -> str | None:
    for separator in SEPARATORS[::2]:  # a single '_' is too common in names to mean a namespace
        left, found, _ = name.partition(separator)
        if found:
            return left
    return None
