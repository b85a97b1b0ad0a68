"""A fault of a server, told to the client that waits: never silence, never a stack trace."""

from plait.errors import UpstreamError
from plait.session.exchange import Reply, refuse
from plait.wire.content import error_result
from plait.wire.spec import INTERNAL_ERROR


def told(method: str, server: str, error: UpstreamError) -> Reply:
    """For a tool call a result that a model can read and act on; for the rest a JSON-RPC error."""
    detail = {"kind": error.kind, "server": str(server)}  # a MountPrefix is no str to msgspec
    if method == "tools/call":
        return Reply(result=error_result(str(error), detail))
    return refuse(INTERNAL_ERROR, str(error), detail)
