"""How a server is opened: started or reached, and greeted once we know for whom."""

from collections.abc import Awaitable, Mapping
from typing import Protocol, runtime_checkable

from msgspec import Struct

from plait.config.environment import server_environment
from plait.config.model import Settings, StdioServer
from plait.errors import UpstreamUnavailable
from plait.session.eras.verdict import EraMemory
from plait.upstream.base import Link
from plait.upstream.client import Listener, McpClient
from plait.upstream.containers import contain, containers_folder
from plait.upstream.greeting import EndedByProbe, greet
from plait.upstream.process import Guardian
from plait.upstream.recollection import Recollection, instructions_folder
from plait.upstream.stderr import StderrLog
from plait.upstream.stdio import StdioTransport
from plait.upstream.trial import Trial
from plait.wire.envelope import Fields


class Behalf(Struct, frozen=True):
    """On whose behalf a server is greeted: what that client can do, the revision it speaks, who it is."""

    capabilities: Fields
    revision: str
    identity: str = ""


@runtime_checkable
class Opener(Protocol):
    """Whatever can be mounted. Opened anew for every start."""

    @property
    def instructions(self) -> str:
        """What the server said of itself last time, for clients that come before it can say it again."""

    async def open(self, listener: Listener, behalf: Awaitable[Behalf]) -> Link:
        """Raises UpstreamError, and leaves nothing open, if it cannot."""


@runtime_checkable
class Remembering(Protocol):
    """An opener that knows from last time what its server offers: it need not run to be listed."""

    @property
    def recollection(self) -> Recollection: ...


@runtime_checkable
class Declaring(Protocol):
    """A link that can tell all that its server declared."""

    capabilities: Fields


class StdioOpener:
    """Starts the process at once, and greets it when the client is known: `npx` may install first."""

    def __init__(
        self,
        server: StdioServer,
        settings: Settings,
        environ: Mapping[str, str],
        guardian: Guardian,
        log: StderrLog,
    ) -> None:
        self._server = server
        self._environment = server_environment(server, settings, environ)
        self._guardian = guardian
        self._log = log
        identity = (server.name, server.command, *server.args, server.cwd or "")
        self.recollection = Recollection(instructions_folder(environ), identity)
        self._containers = containers_folder(environ)
        self._memory = EraMemory()

    @property
    def instructions(self) -> str:
        return self.recollection.recall()

    async def open(self, listener: Listener, behalf: Awaitable[Behalf]) -> Link:
        known: Behalf | None = None
        while True:
            trial = Trial(listener)
            client, transport = await self._start(trial)
            try:
                known = known or await self._unless_ended(client, behalf)
                session = await self._greet(client, known)
                break
            except EndedByProbe:
                # Servers on some SDKs end at any request before `initialize`. Now this one's era is
                # remembered, and it is not asked again.
                await transport.aclose()
            except BaseException:
                await transport.aclose()
                raise
        trial.passed()
        self.recollection.remember(session.instructions)
        return session

    async def _start(self, listener: Listener) -> tuple[McpClient, StdioTransport]:
        server, limits = self._server, self._server.settings
        container = await contain(server, self._environment, self._containers, self._guardian)
        command, *arguments = container.argv if container is not None else (server.command, *server.args)
        transport = StdioTransport(
            command,
            arguments,
            self._environment,
            cwd=server.cwd,
            limit=limits.max_message_bytes,
            memory=limits.memory,
            processes=limits.processes,
            guardian=self._guardian,
            log=self._log,
            container=container,
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

    async def _unless_ended(self, client: McpClient, behalf: Awaitable[Behalf]) -> Behalf:
        known = await behalf
        if client.end is not None:
            raise UpstreamUnavailable(
                f"server '{self._server.name}' stopped before it was greeted: {client.end}"
            )
        return known
