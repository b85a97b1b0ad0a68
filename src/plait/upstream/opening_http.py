"""How a server over HTTP is opened: reached, and greeted, once we know for whom."""

from collections.abc import Awaitable, Mapping

from plait.config.model import HttpServer
from plait.outbound.urls import UrlPolicy
from plait.session.eras.verdict import EraMemory
from plait.upstream.base import Link
from plait.upstream.client import Listener, McpClient
from plait.upstream.greeting import EndedByProbe, greet
from plait.upstream.http import HttpTransport
from plait.upstream.opening import Behalf
from plait.upstream.recollection import Recollection, instructions_folder
from plait.upstream.trial import Trial


class HttpOpener:
    """Nothing is sent to the server before there is a client to greet it for."""

    def __init__(
        self, server: HttpServer, environ: Mapping[str, str], policy: UrlPolicy | None = None
    ) -> None:
        """`policy`: what judges its address; None: it was chosen by the user, and may be on this machine."""
        self._server = server
        self._policy = policy
        self._memory = EraMemory()
        self.recollection = Recollection(instructions_folder(environ), (server.name, server.url))

    @property
    def instructions(self) -> str:
        return self.recollection.recall()

    async def open(self, listener: Listener, behalf: Awaitable[Behalf]) -> Link:
        known = await behalf
        while True:
            trial = Trial(listener)
            client, transport = await self._reach(trial)
            try:
                session = await self._greet(client, known)
                break
            except EndedByProbe:
                # As the stream of a server of 2024 may, at a request that it does not know. Now its era
                # is remembered, and it is not asked again.
                await transport.aclose()
            except BaseException:
                await transport.aclose()
                raise
        trial.passed()
        self.recollection.remember(session.instructions)
        return session

    async def _reach(self, listener: Listener) -> tuple[McpClient, HttpTransport]:
        server, limits = self._server, self._server.settings
        transport = HttpTransport(
            server.url,
            credentials(server),
            kind=server.transport or "http",
            limit=limits.max_message_bytes,
            policy=self._policy,
        )
        client = McpClient(transport, name=server.name, timeout=limits.timeout, listener=listener)
        await transport.open(client)
        return client, transport

    async def _greet(self, client: McpClient, known: Behalf) -> Link:
        limits = self._server.settings
        return await greet(
            client,
            known.capabilities,
            known.revision,
            era=limits.era,
            timeout=limits.start_timeout,
            memory=self._memory,
        )


def credentials(server: HttpServer) -> dict[str, str]:
    """The headers of the configuration; a token is one more, unless they have an Authorization."""
    headers = dict(server.headers)
    if server.auth and not any(name.lower() == "authorization" for name in headers):
        headers["Authorization"] = f"Bearer {server.auth}"
    return headers
