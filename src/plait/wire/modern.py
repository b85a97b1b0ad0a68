"""What the modern revision (2026-07-28) says, as data: its `_meta` keys, methods, error codes, filters."""

from plait.wire.spec import MODERN_MARK, RESERVED, REVISIONS, Era

SPOKEN = tuple(revision for revision, era in REVISIONS.items() if era is Era.MODERN)
"""The modern revisions that we speak, oldest first."""
LATEST_MODERN = SPOKEN[-1]

VERSION_KEY = MODERN_MARK
CAPABILITIES_KEY = f"{RESERVED}clientCapabilities"
CLIENT_KEY = f"{RESERVED}clientInfo"
LEVEL_KEY = f"{RESERVED}logLevel"
SERVER_KEY = f"{RESERVED}serverInfo"
SUBSCRIPTION_KEY = f"{RESERVED}subscriptionId"
TASK_KEY = f"{RESERVED}related-task"
"""The one reserved key that is no part of a stamp: it belongs to the message, and goes with it."""

DISCOVER = "server/discover"
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"

BORN = frozenset((DISCOVER, LISTEN))
"""Requests that only the modern era has."""
GONE = frozenset(
    ("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list")
)
"""Requests that only the handshake era has."""
INTERACTIVE = frozenset(("tools/call", "prompts/get", "resources/read"))
"""Requests that a server may answer with `input_required`."""
CACHEABLE = frozenset(
    (DISCOVER, "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")
)
"""Requests whose result says how long it may be kept, and for whom."""
FLAGS = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}
"""The filters of `subscriptions/listen` that are a yes or no, and what each lets through."""

HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
URL_ELICITATION_REQUIRED = -32042
"""Of 2025-11-25 only: a modern server never says it, a modern client never hears it."""


def is_modern(revision: str) -> bool:
    return REVISIONS.get(revision) is Era.MODERN
