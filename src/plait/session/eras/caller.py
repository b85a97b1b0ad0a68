"""Whoever sent one modern request: known for that request, and reached only while it runs."""

from plait.session.eras.stamp import Stamp, severity
from plait.session.exchange import Caller, OnProgress, Reply, refuse
from plait.wire.envelope import Fields
from plait.wire.spec import METHOD_NOT_FOUND


class ModernCaller:
    """A Caller made for one request: what it can do is what that request says, and nothing is remembered."""

    def __init__(self, connection: Caller, id: bytes, stamp: Stamp) -> None:
        self.id = id
        self.revision = stamp.revision
        self.capabilities = stamp.capabilities
        self.client_info = stamp.info
        self.level = stamp.level
        self._connection = connection

    def __repr__(self) -> str:
        return f"<ModernCaller {self.identity}: request {self.id.decode(errors='replace')}>"

    @property
    def identity(self) -> str:
        return self._connection.identity

    @property
    def grant(self) -> object:
        """What the token of its connection is good for; see pipeline/grants.py."""
        return getattr(self._connection, "grant", None)

    def notify(self, method: str, params: Fields | None, within: bytes | None = None) -> bool | None:
        """Progress of this request, and its log messages where it asked for some.

        "If absent, the server MUST NOT send any `notifications/message`" for the request (2026-07-28,
        server/utilities/logging); everything else is for those who listen, and comes there.
        """
        if method == "notifications/progress" or (
            method == "notifications/message" and self._wants(params or {})
        ):
            return self.tell(method, params)
        return None

    def _wants(self, message: Fields) -> bool:
        return self.level is not None and severity(message.get("level")) >= self.level

    def tell(self, method: str, params: Fields | None) -> bool | None:
        """Without asking whether it wants to hear it."""
        return self._connection.notify(method, params, self.id)

    async def ask(
        self,
        method: str,
        params: Fields | None,
        on_progress: OnProgress | None = None,
        within: bytes | None = None,
    ) -> Reply:
        """ "A modern server never sends a JSON-RPC request": nothing can be asked but by a result."""
        return refuse(
            METHOD_NOT_FOUND,
            f"{method}: the client speaks {self.revision}, in which a server asks by answering"
            " 'input_required'; plait cannot put the question of a handshake server that way yet",
        )
