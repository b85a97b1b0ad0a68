"""From where may a request come? What its Host and its Origin say.

A page in a browser can send requests to this machine, and under a name of its own that it makes point
here. Such a request has the page's Origin, or the wrong Host: neither is served, on any route.
"""

import re
from collections.abc import Sequence
from ipaddress import ip_address

from plait.downstream.asgi import Answer, Headers, Request, refusal

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_ONCE = frozenset(
    {
        b"host",
        b"origin",
        b"authorization",
        b"content-type",
        b"content-length",
        b"mcp-session-id",
        b"last-event-id",
    }
)
"""Headers of which a second one would leave open which counts."""
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")
_ORIGIN = re.compile(r"https?://(.+)")
_TAKEN = (
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
)
_PARAMETER = re.compile(r"mcp-param-[!#$%&'*+.^_`|~0-9a-z-]{1,100}")


def is_loopback(host: str) -> bool:
    """Can only programs of this machine reach it?"""
    try:
        return host.lower() == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Sources:
    def __init__(
        self, host: str = "127.0.0.1", allowed_hosts: Sequence[str] = (), allowed_origins: Sequence[str] = ()
    ) -> None:
        """`host`: the address that we listen on."""
        self._local = is_loopback(host)
        self._hosts = {each.lower() for each in allowed_hosts}
        self._origins = {each.lower().rstrip("/") for each in allowed_origins}
        self._names = {*LOOPBACK_NAMES, f"[{host.strip('[]')}]" if ":" in host else host.lower()}
        self._anywhere = host in ("0.0.0.0", "::", "") and not allowed_hosts

    def refusal(self, request: Request) -> Answer | None:
        """Why a request from there is not served; None if it is."""
        if request.repeats(_ONCE):
            return refusal(400, "a header that may be there once is there twice")
        host = (request.header(b"host") or "").lower()
        if not self._knows(host):
            return refusal(421, "this Host is not served here; see allowedHosts in plait's configuration")
        origin = request.header(b"origin")
        if origin is not None and not self._trusts(origin.lower(), host):
            return refusal(403, "this Origin is not let in; see allowedOrigins in plait's configuration")
        return None

    def leave(self, request: Request) -> Headers:
        """What a browser must be told so that a page of an allowed origin may read the answer."""
        origin = request.header(b"origin")
        if origin is None or origin.lower() not in self._origins:
            return ()
        shown = (b"access-control-expose-headers", b"mcp-session-id, www-authenticate")
        return ((b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"origin"), shown)

    def preflight(self, request: Request) -> Answer | None:
        """The answer to a browser that asks before it asks; None: a page of that origin gets none."""
        if not self.leave(request):
            return None
        # Which arguments are repeated in headers is each tool's affair: those are let through as asked for.
        wanted = (request.header(b"access-control-request-headers") or "").lower().split(",")
        taken = {*_TAKEN, *(name.strip() for name in wanted if _PARAMETER.fullmatch(name.strip()))}
        headers: Headers = (
            (b"access-control-allow-methods", b"GET, POST, DELETE"),
            (b"access-control-allow-headers", ", ".join(sorted(taken)).encode()),
            (b"access-control-max-age", b"600"),
        )
        return Answer(204, headers=headers)

    def _knows(self, host: str) -> bool:
        read = _HOST.fullmatch(host)
        if read is None:
            return False
        name = read[1]
        return (
            host in self._hosts
            or name in self._hosts
            or name in self._names
            or (self._anywhere and _is_address(name))
        )

    def _trusts(self, origin: str, host: str) -> bool:
        if origin in self._origins:
            return True
        read = _ORIGIN.fullmatch(origin)
        name = _HOST.fullmatch(read[1]) if read is not None else None
        if read is None or name is None:
            return False
        return read[1] == host or (self._local and name[1] in LOOPBACK_NAMES)


def _is_address(name: str) -> bool:
    """An address is no name: nobody else can make it point here."""
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
