"""A conversation with a server whose handshake is done: what it is, what it can do."""

from typing import Self

from msgspec.json import decode

from plait.session.exchange import Exchange
from plait.session.negotiation import Greeting, declares, hello, read_greeting
from plait.upstream.base import Transport
from plait.upstream.client import Listener, McpClient
from plait.upstream.decoded import unwrap
from plait.version import VERSION
from plait.wire.envelope import EMPTY, Fields, open_fields
from plait.wire.spec import LATEST_HANDSHAKE, REVISIONS, Era

NAME = "plait"


class McpSession:
    """Made by `connect`; closed by leaving it or by `aclose`."""

    def __init__(self, client: McpClient, greeting: Greeting, warning: str | None) -> None:
        self.client = client
        self.protocol_version = greeting.revision or LATEST_HANDSHAKE
        self.capabilities = greeting.capabilities
        self.instructions = greeting.instructions
        self.warning = warning
        """What was odd about the handshake, if anything."""
        self._info = greeting.info
        self.request = client.request
        """Not a method around it: every call goes through here."""

    @classmethod
    async def connect(
        cls,
        transport: Transport,
        *,
        capabilities: Fields | None = None,
        revision: str = LATEST_HANDSHAKE,
        name: str = "server",
        timeout: float = 60.0,
        start_timeout: float = 60.0,
        listener: Listener | None = None,
    ) -> Self:
        """Open the transport and shake hands. Whatever was opened before a failure is closed again."""
        client = McpClient(transport, name=name, timeout=timeout, listener=listener)
        await client.__aenter__()
        try:
            return await cls.greet(client, capabilities or {}, revision, start_timeout)
        except BaseException:
            await transport.aclose()
            raise

    @classmethod
    async def greet(cls, client: McpClient, capabilities: Fields, revision: str, timeout: float) -> Self:
        """The handshake itself, on a client that is open: `initialize`, its answer, `initialized`.

        The answer is awaited first: real servers break when `initialized` overtakes it.
        """
        params = hello(capabilities, revision, NAME, VERSION)
        reply = await client.request("initialize", params, timeout=timeout)
        if reply.error is not None:
            unwrap(reply)
        greeting = read_greeting(open_fields(bytes(reply.result or EMPTY)))
        session = cls(client, greeting, _odd(greeting))
        client.agreed(session.protocol_version)
        client.notify("notifications/initialized")
        return session

    async def aclose(self) -> None:
        await self.client.__aexit__()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        offers = ", ".join(self.capabilities) or "nothing"
        return f"<McpSession {self.client.name}: {self.protocol_version}, offers {offers}>"

    @property
    def server_info(self) -> dict[str, object]:
        """Name, version and whatever else the server says of itself. Display only."""
        return {key: decode(value) for key, value in self._info.items()}

    def supports(self, capability: str, detail: str | None = None) -> bool:
        return declares(self.capabilities, capability, detail)

    def supports_tools(self) -> bool:
        return self.supports("tools")

    def supports_resources(self) -> bool:
        return self.supports("resources")

    def notify(self, method: str, params: Fields | None = None) -> None:
        self.client.notify(method, params)

    def working_for(self) -> list[Exchange]:
        return self.client.working_for()

    async def list_tools(self) -> list[dict[str, object]]:
        return await self.client.list_tools()

    async def call_tool(self, name: str, arguments: dict[str, object] | None = None) -> object:
        return await self.client.call_tool(name, arguments)


def _odd(greeting: Greeting) -> str | None:
    """A server that answers an unknown revision is warned about and taken as it is (S1-E4)."""
    if REVISIONS.get(greeting.revision) is Era.HANDSHAKE:
        return None
    if not greeting.revision:
        return f"it names no protocol version; taken as {LATEST_HANDSHAKE}"
    return f"it answered with protocol version {greeting.revision!r}, which plait does not know"
