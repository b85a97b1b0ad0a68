"""Every error plait raises, and whose fault each one is.

PlaitError
├── ConfigError               the user's configuration is wrong; the message says where
├── ProtocolError             somebody broke JSON-RPC or MCP
│   ├── LocalProtocolError    we did: a bug here
│   └── RemoteProtocolError   the peer did; carries the code and, if it was readable, the id to answer
├── UpstreamError             a server behind us failed
│   ├── UpstreamUnavailable   not mounted, never started, or it stopped
│   ├── UpstreamBusy          it has more calls than it may have at once
│   ├── UpstreamTimeout       no answer within the deadline
│   ├── UpstreamBroken        it answered, but not in JSON-RPC
│   └── UpstreamRefused       it answered with a JSON-RPC error: code, message, data
├── OutboundError             a request of our own over HTTP failed; its tree is in outbound/faults.py
└── ToolError                 a tool could not do what it was asked
    ├── NotFound              there is no such tool, namespace or resource
    ├── ExecutionFailed       it ran and failed
    └── PermissionDenied      it may not be called

A refused call is not an error: whoever refuses it answers with a Reply.
"""

from msgspec import Raw


class PlaitError(Exception):
    """The root of the tree above."""


class ConfigError(PlaitError):
    """The configuration is wrong; the message starts with the place."""


class ProtocolError(PlaitError):
    """Somebody broke JSON-RPC or MCP."""


class LocalProtocolError(ProtocolError):
    """We tried to do something the protocol, or a table of ours, forbids."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something the protocol forbids."""

    def __init__(
        self, message: str, code: int = -32600, id: Raw | None = None, *, unanswerable: bool = False
    ) -> None:
        super().__init__(message)
        self.code = code
        self.id = id
        self.unanswerable = unanswerable
        """A notification is never answered, however wrong it is."""


class UpstreamError(PlaitError):
    """A server behind us failed."""

    kind = "failed"
    """One word for programs; the message is for people."""


class UpstreamUnavailable(UpstreamError):
    """The server is not there: it never started, stopped, or is being started again."""

    kind = "unavailable"


class UpstreamBusy(UpstreamError):
    """The server has as many calls as it may have, and as many more wait."""

    kind = "busy"


class UpstreamTimeout(UpstreamError):
    """The server did not answer in time."""

    kind = "timeout"


class UpstreamBroken(UpstreamError):
    """The server answered with something that is no answer."""

    kind = "broken"


class UpstreamRefused(UpstreamError):
    """The server answered with a JSON-RPC error."""

    kind = "refused"

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class ToolError(PlaitError):
    """A tool could not do what it was asked."""


class NotFound(ToolError):
    """Nothing here has that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"not found: {name}")


class ExecutionFailed(ToolError):
    """The tool ran and failed."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"execution failed: {reason}")
        self.reason = reason


class PermissionDenied(ToolError):
    """The tool may not be called."""

    def __init__(self, tool: str, reason: str) -> None:
        super().__init__(f"permission denied for tool '{tool}': {reason}")
        self.tool = tool
        self.reason = reason
