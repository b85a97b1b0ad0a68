"""Every error plait raises, and whose fault each one is.

PlaitError
├── ConfigError               the user's configuration is wrong; the message says where
│   ├── Unmountable           no such object, or none that can be mounted (a ValueError too)
│   └── AlreadyMounted        the prefix is taken (a ValueError too)
├── NotMounted                nothing has that prefix (a ValueError too)
├── LifecycleError            used before or after its life allows it (a RuntimeError too)
├── ProtocolError             somebody broke JSON-RPC or MCP
│   ├── LocalProtocolError    we did: a bug here
│   └── RemoteProtocolError   the peer did; carries the code and, if it was readable, the id to answer
├── UpstreamError             a server behind us failed
│   ├── UpstreamUnavailable   not mounted, never started, or it stopped
│   │   ├── SessionLost       it forgot our session before it looked at the request
│   │   └── NeedsAuth         it wants somebody to sign in
│   ├── UpstreamBusy          it has more calls than it may have at once
│   ├── UpstreamTimeout       no answer within the deadline
│   ├── UpstreamBroken        it answered, but not in JSON-RPC
│   └── UpstreamRefused       it answered with a JSON-RPC error: code, message, data
├── DelegationFailed          a task that was handed on could not be done; nobody else's tool is at fault
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


class AlreadyMounted(ConfigError, ValueError):
    """The prefix is taken."""


class Unmountable(ConfigError, ValueError):
    """What was given cannot be mounted, or the object that a file names cannot be found."""


class NotMounted(PlaitError, ValueError):
    """Nothing is mounted under that prefix."""


class LifecycleError(PlaitError, RuntimeError):
    """Something was used before it was opened, after it was closed, or twice."""


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


class SessionLost(UpstreamUnavailable):
    """The server knows our session no more. It did not look at the request, which may be sent once more."""


class NeedsAuth(UpstreamUnavailable):
    """The server wants a sign-in, or another one than it was given. Asking again changes nothing."""

    kind = "needs auth"

    def __init__(self, message: str, challenge: str = "") -> None:
        super().__init__(message)
        self.challenge = challenge
        """Its `WWW-Authenticate`, which says how to sign in."""


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


class DelegationFailed(PlaitError):
    """A task could not be handed on, or not be done; the words say why, and which setting is concerned."""


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
