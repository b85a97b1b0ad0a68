"""What has changed behind a client since it last looked: per server, which resources, and whether its lists.

An agent looks once per turn (`render`). In between any number of notifications may come; here they
take the room of a set, and no more than a fixed number of entries, whatever a server sends.
"""

import json

from msgspec import Struct, field

MAX_URIS = 1000
"""Of one server; one more is only counted."""
MAX_SERVERS = 1000
LONGEST_URI = 2048
TAG = "notifications"
NO_PREFIX = "(no prefix)"
"""How the message calls servers that have none, or that are not known apart."""


class Notices(Struct, frozen=True):
    """What one server has told."""

    updated: frozenset[str] = frozenset()
    """The URIs of resources that were updated."""
    list_changed: bool = False
    dropped: int = 0
    """How many updates are not in `updated`, since there were too many or their URI was too long."""


class _Kept(Struct):
    updated: set[str] = field(default_factory=set)
    list_changed: bool = False
    dropped: int = 0


class NotificationsBuffer:
    """Give it to `Changes.listen`, or call `updated` and `list_changed` yourself. No prefix: not known."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self.dropped = 0
        """How many notifications were not kept, since the beginning."""

    def __repr__(self) -> str:
        return f"<NotificationsBuffer: {sum(len(kept.updated) for kept in self._kept.values())} updates>"

    # ---- what servers tell

    def updated(self, prefix: str, uri: str) -> None:
        kept = self._of(prefix)
        if kept is None or uri in kept.updated:
            return
        if len(kept.updated) >= MAX_URIS or len(uri) > LONGEST_URI:
            kept.dropped += 1
            self.dropped += 1
            return
        kept.updated.add(uri)

    def list_changed(self, prefix: str) -> None:
        kept = self._of(prefix)
        if kept is not None:
            kept.list_changed = True

    def _of(self, prefix: str) -> _Kept | None:
        if prefix not in self._kept and len(self._kept) >= MAX_SERVERS:
            self.dropped += 1
            return None
        return self._kept.setdefault(prefix, _Kept())

    # ---- what the agent asks

    def peek(self) -> dict[str, Notices]:
        """By prefix, in order; what is looked at stays."""
        return {
            prefix: Notices(frozenset(kept.updated), kept.list_changed, kept.dropped)
            for prefix, kept in sorted(self._kept.items())
        }

    def poll(self) -> dict[str, Notices]:
        """The same, once: from now on only what is new."""
        notices = self.peek()
        self._kept.clear()
        return notices

    def render(self) -> str:
        """`poll` as one message for the model; empty if there is nothing to tell."""
        return render(self.poll())


def render(notices: dict[str, Notices]) -> str:
    """One tagged message. URIs are servers' words: none of them can end the tag or begin a line."""
    if not notices:
        return ""
    body = json.dumps({prefix or NO_PREFIX: _told(notice) for prefix, notice in notices.items()})
    safe = body.replace("<", "\\u003c").replace(">", "\\u003e")
    return f"<{TAG}>\n{safe}\n</{TAG}>"


def _told(notice: Notices) -> dict[str, object]:
    told: dict[str, object] = {}
    if notice.updated:
        told["updated"] = sorted(notice.updated)
    if notice.dropped:
        told["more_updates"] = notice.dropped
    if notice.list_changed:
        told["list_changed"] = True
    return told
