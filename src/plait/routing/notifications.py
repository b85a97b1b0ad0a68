"""From one server's notification to every client that asked to hear it."""

from collections.abc import Iterator, Sequence

from msgspec import MsgspecError, Raw, Struct, field

from plait.routing.streams import Streams
from plait.session.eras.caller import ModernCaller
from plait.session.eras.stamp import severity
from plait.session.exchange import Caller, Exchange, Leveled, level_of
from plait.wire.address import as_raw, read_text
from plait.wire.envelope import Fields
from plait.wire.spec import CHANGED, LATEST_HANDSHAKE, LEVELS, Kind


class Wishes(Struct):
    """What one client has asked for so far."""

    listed: set[Kind] = field(default_factory=set)
    """The lists it has fetched, and so holds a copy of."""


class Audience:
    """Every client that has shaken hands, and every stream of those that have not."""

    def __init__(self) -> None:
        self.streams = Streams()
        self._wishes: dict[Caller, Wishes] = {}

    def join(self, caller: Caller) -> None:
        self._wishes[caller] = Wishes()

    def leave(self, caller: Caller) -> None:
        self._wishes.pop(caller, None)

    def __iter__(self) -> Iterator[Caller]:
        return iter(tuple(self._wishes))

    def __len__(self) -> int:
        return len(self._wishes)

    # ---- lists

    def has_listed(self, caller: Caller, kind: Kind) -> None:
        if caller in self._wishes:
            self._wishes[caller].listed.add(kind)

    def lists_changed(self, kinds: list[Kind], *, starting: bool) -> None:
        """Tell everybody whose copy is old now.

        While servers are still starting, a client that has not listed yet has no copy to be old.
        """
        self.streams.lists_changed(kinds)
        for method, stale in CHANGED.items():
            concerned = set(stale).intersection(kinds)
            if not concerned:
                continue
            for caller, wishes in self._wishes.items():
                if not starting or concerned & wishes.listed:
                    caller.notify(method, None)

    # ---- logging

    def set_level(self, caller: Caller, level: str) -> str:
        """The least severe level that anybody wants: what the servers are asked for."""
        if isinstance(caller, Leveled):
            caller.level = LEVELS.index(level)
        return self.level or level

    @property
    def level(self) -> str | None:
        """The least severe level that anybody wants; None if nobody has said."""
        wanted = [level for caller in self._wishes if (level := level_of(caller)) is not None]
        return LEVELS[min(wanted)] if wanted else None

    def message(self, prefix: str, params: Fields, working_for: Sequence[Exchange] = ()) -> bool:
        """A log message, to those who want that level, under the name of the server it comes from.

        One of a server that works for a single modern request belongs to that request, and to nobody
        else: is it such a one?
        """
        named = {**params, "logger": as_raw(_logger(prefix, params.get("logger")))}
        callers = {exchange.caller for exchange in working_for}
        owner = callers.pop() if len(callers) == 1 else None
        if isinstance(owner, ModernCaller):
            owner.notify("notifications/message", named)
            return True
        level = severity(params.get("level"))
        for caller in self._wishes:
            wanted = level_of(caller)
            if wanted is None or level >= wanted:  # a client that has not said gets what servers send
                caller.notify("notifications/message", named)
        return False

    # ---- the rest

    def elicitation_completed(self, params: Fields) -> None:
        """Only clients of the newest handshake revision know this notification."""
        for caller in self:
            if caller.revision == LATEST_HANDSHAKE:
                caller.notify("notifications/elicitation/complete", params)


def _logger(prefix: str, raw: Raw | None) -> str:
    return "/".join(part for part in (prefix, _text(raw)) if part)


def _text(raw: Raw | None) -> str:
    try:
        return "" if raw is None else read_text(raw)
    except (MsgspecError, UnicodeDecodeError):
        return ""
