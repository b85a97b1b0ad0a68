"""A compositor that follows a file, with servers of this process in it, for tests."""

import asyncio
import contextlib
import json
import os
import sys
import types
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from clients import Client
from plait.assemble import for_commands
from plait.compositor import Compositor
from plait.config.load import load
from plait.config.model import Config
from plait.pipeline.compose import Layer
from plait.providers.function import FunctionProvider
from plait.reload import Reloader
from plait.succession import Step

PATIENCE = 20.0
"""Seconds that any single wait of a test may take."""
MODULE = "reloading_servers"


class Notes:
    """A server's insides: every one that is made counts, and a call may be held."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.began = asyncio.Event()
        self.held = asyncio.Event()

    def which(self) -> str:
        """The how-manieth of its kind it is."""
        return f"number {self.number}"

    async def wait(self) -> str:
        """Answered when the test says so."""
        self.began.set()
        await self.held.wait()
        return f"number {self.number} at last"

    def provider(self) -> FunctionProvider:
        return FunctionProvider("notes", [self.which, self.wait])


class Desk:
    """The file, what is served of it, and a client."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "plait.json"
        self.made: list[Notes] = []
        self.compositor: Compositor
        self.reloader: Reloader
        self.client: Client

    def make(self) -> FunctionProvider:
        self.made.append(Notes(len(self.made) + 1))
        return self.made[-1].provider()

    def write(self, servers: Mapping[str, object], **plait: object) -> None:
        """As editors do: a new file takes the place of the old one."""
        beside = self.file.with_suffix(".new")
        beside.write_text(json.dumps({"mcpServers": servers, "plait": plait}, indent=1))
        beside.rename(self.file)

    def read(self) -> Config:
        return for_commands(load([self.file], os.environ, self.file.parent))

    async def reload(self, servers: Mapping[str, object], **plait: object) -> Step:
        self.write(servers, **plait)
        async with asyncio.timeout(PATIENCE):
            return await self.reloader.reload()

    async def say(self, tool: str) -> str:
        async with asyncio.timeout(PATIENCE):
            result = await self.client.call(tool)
        content = result["content"]
        assert isinstance(content, list)
        return "".join(block["text"] for block in content)

    async def until_listed(self, *names: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while await self.client.names() != list(names):  # noqa: ASYNC110  (asking is the point)
                await asyncio.sleep(0.002)


def server(**settings: object) -> dict[str, object]:
    """What a file says of a server of this process."""
    return {"type": "python", "module": f"{MODULE}:make", "plait": settings}


ONE = server()


@contextlib.asynccontextmanager
async def desk(
    folder: Path,
    servers: Mapping[str, object],
    *,
    layers: Sequence[Layer] = (),
    look: float = 3600.0,
    **plait: object,
) -> AsyncIterator[Desk]:
    """With so long a `look` nothing happens by itself."""
    made = Desk(folder)
    module = types.ModuleType(MODULE)
    module.make = made.make  # type: ignore[attr-defined]
    sys.modules[MODULE] = module
    made.write(servers, **plait)
    try:
        async with Compositor(made.read(), layers) as compositor:
            made.compositor = compositor
            made.reloader = Reloader(compositor, made.read, look=look)
            await compositor.stack.enter_async_context(made.reloader)
            async with Client(compositor) as made.client:
                yield made
    finally:
        del sys.modules[MODULE]
