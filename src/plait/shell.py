"""McpServerShell: serve any provider to one client on any pair of streams (seed 000).

It is the compositor with one mount and one client: the same code as the command's server.
"""

from collections.abc import Sequence

from plait.compositor import Compositor
from plait.config.model import Settings
from plait.downstream.streams import Reader, StreamClient, Writer
from plait.pipeline.compose import Layer
from plait.pipeline.middleware import Middleware
from plait.providers.calling import Provider
from plait.routing.naming import MountPrefix

LAST_ANSWERS = 60.0
"""Seconds for requests that were read before the end of input."""


class McpServerShell:
    def __init__(self, provider: Provider, middleware: Sequence[Layer | Middleware] = ()) -> None:
        self._provider = provider
        self._middleware = middleware

    async def run(self, reader: Reader, writer: Writer) -> None:
        """Until the end of input, which is no error; every request that was read is answered."""
        alone = Settings(resource_tools=False, meta_resources=False)
        async with Compositor(alone, self._middleware) as compositor:
            prefix = MountPrefix(self._provider.namespace) if self._provider.namespace else None
            await compositor.mount(prefix, self._provider, wait=False)
            client = StreamClient(reader, writer)
            connection = compositor.connect(client)
            try:
                await client.serve(connection)
                await connection.finish(LAST_ANSWERS)
                await writer.drain()
            finally:
                await compositor.disconnect(connection)
