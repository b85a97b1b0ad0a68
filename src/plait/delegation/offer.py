"""The tools on offer for one task: from the catalog of that moment, as the caller sees it (S1-R5)."""

from collections.abc import Sequence

from msgspec.json import decode

from plait.constants import DELEGATE_MOUNT_PREFIX
from plait.delegation.schema import Toolset, wanted
from plait.routing.catalog import Route
from plait.routing.resolver import Resolver
from plait.session.exchange import Caller
from plait.wire.spec import Kind
from plait.wire.tools import ToolDefinition


def offered(
    resolver: Resolver,
    caller: Caller,
    narrowing: Sequence[Sequence[str]],
    excluded: Sequence[str],
    server: str | None = None,
) -> Toolset:
    """What fits every list of globs that is not empty; `server`: only of the one with this prefix."""
    listing = resolver.listing(Kind.TOOLS, caller)
    pairs = zip(listing.routes.values(), listing.items, strict=True)
    return Toolset.of(
        ToolDefinition.of(decode(item, type=dict[str, object]))
        for route, item in pairs
        if _on_offer(route, narrowing, excluded, server)
    )


def _on_offer(
    route: Route, narrowing: Sequence[Sequence[str]], excluded: Sequence[str], server: str | None
) -> bool:
    """By its exposed name or its own: who excludes `exec_shell` means it wherever it is mounted.

    No model is offered to hand the task on to itself (BC-57).
    """
    if (route.server == DELEGATE_MOUNT_PREFIX and route.upstream.pinned) or server not in (
        None,
        route.server,
    ):
        return False
    names = (route.exposed, route.native_name)
    return all(wanted(names, include, excluded) for include in narrowing or ((),))
