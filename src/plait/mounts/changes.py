"""What servers say has changed, told to whoever listens, and remembered while nobody does."""

import logging
from collections.abc import Callable
from typing import Protocol

from plait.notices import MAX_SERVERS, NotificationsBuffer

_log = logging.getLogger("plait")


class ChangeListener(Protocol):
    """Is told at once, in the loop: it must not block."""

    def updated(self, prefix: str, uri: str) -> None:
        """A resource was updated; the URI is the server's own."""

    def list_changed(self, prefix: str) -> None:
        """A list of this server is another one now."""


class Changes:
    """The changes of all servers of one compositor."""

    def __init__(self) -> None:
        self._listeners: dict[object, ChangeListener] = {}
        self._missed = NotificationsBuffer()
        """What happened while nobody listened."""
        self._recent: set[str] = set()

    @property
    def dropped(self) -> int:
        """How many changes were not remembered, since there were too many."""
        return self._missed.dropped

    # ---- what happens (the registry calls these)

    def updated(self, prefix: str, uri: str) -> None:
        for listener in self._audience():
            _tell(listener.updated, prefix, uri)

    def list_changed(self, prefix: str) -> None:
        if len(self._recent) < MAX_SERVERS:
            self._recent.add(prefix)
        for listener in self._audience():
            _tell(listener.list_changed, prefix)

    def _audience(self) -> list[ChangeListener]:
        return list(self._listeners.values()) or [self._missed]

    # ---- who wants to know

    def listen(self, listener: ChangeListener) -> Callable[[], None]:
        """Tell it from now on, and at once what nobody has heard yet. Call what this returns to stop."""
        key = object()
        self._listeners[key] = listener
        for prefix, notices in self._missed.poll().items():
            for uri in sorted(notices.updated):
                _tell(listener.updated, prefix, uri)
            if notices.list_changed:
                _tell(listener.list_changed, prefix)
        return lambda: self._leave(key)

    def _leave(self, key: object) -> None:
        self._listeners.pop(key, None)

    def pop_recent_list_changes(self) -> list[str]:
        """The servers whose lists have changed since this was last asked, sorted (BD-13)."""
        recent, self._recent = sorted(self._recent), set()
        return recent


def _tell(tell: Callable[..., None], *what: str) -> None:
    """One listener's mistake is not the others', nor the server's."""
    try:
        tell(*what)
    except Exception:
        _log.exception("a listener to changes failed: %r", tell)
