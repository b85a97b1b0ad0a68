"""What the MCP specification says, as data: revisions, eras, methods, levels, error codes."""

import enum


class Era(enum.Enum):
    """How a conversation is held: after a handshake, or with every request on its own."""

    HANDSHAKE = "handshake"
    MODERN = "modern"


REVISIONS = {
    "2024-11-05": Era.HANDSHAKE,
    "2025-03-26": Era.HANDSHAKE,
    "2025-06-18": Era.HANDSHAKE,
    "2025-11-25": Era.HANDSHAKE,
    "2026-07-28": Era.MODERN,
}
"""Oldest first: the order of the keys is the order of the dates."""

LATEST_HANDSHAKE = "2025-11-25"
WITH_BATCHES = "2025-03-26"
"""The one revision in which a line may hold an array of messages."""

RESERVED = "io.modelcontextprotocol/"
MODERN_MARK = f"{RESERVED}protocolVersion"
"""The `_meta` key that makes a request a modern one."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_INITIALIZED = -32002
RESOURCE_NOT_FOUND = -32002
"""The seeds and the handshake revisions use one number for both; the message tells them apart."""

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The severities of `logging/setLevel` (RFC 5424), lowest first."""

MAX_FROM_CLIENTS = 4 * 1024 * 1024
MAX_FROM_SERVERS = 16 * 1024 * 1024
MAX_BATCH = 100
MAX_COMPLETIONS = 100


class Kind(enum.Enum):
    """The four lists a server has. The value is the field of the list's result that holds the items."""

    TOOLS = "tools"
    PROMPTS = "prompts"
    RESOURCES = "resources"
    TEMPLATES = "resourceTemplates"

    @property
    def method(self) -> str:
        return _LIST_METHOD[self]

    @property
    def capability(self) -> str:
        """What a server must declare to have such a list."""
        return "resources" if self is Kind.TEMPLATES else self.value

    @property
    def key(self) -> str:
        """The field of an item that identifies it."""
        return _ITEM_KEY[self]


_LIST_METHOD = {
    Kind.TOOLS: "tools/list",
    Kind.PROMPTS: "prompts/list",
    Kind.RESOURCES: "resources/list",
    Kind.TEMPLATES: "resources/templates/list",
}
_ITEM_KEY = {Kind.TOOLS: "name", Kind.PROMPTS: "name", Kind.RESOURCES: "uri", Kind.TEMPLATES: "uriTemplate"}

LISTS = {kind.method: kind for kind in Kind}
CHANGED = {
    "notifications/tools/list_changed": (Kind.TOOLS,),
    "notifications/prompts/list_changed": (Kind.PROMPTS,),
    "notifications/resources/list_changed": (Kind.RESOURCES, Kind.TEMPLATES),
}
"""Which lists a notification says are stale."""

ADDRESS_FIELD = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
}
"""The one field of `params` that says whose request it is."""

CLIENT_FEATURE = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}
"""What a client must have declared before a server may ask it that."""
