"""A compositor that hands tasks on, and servers whose tools say what they did, for tests."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from clients import PATIENCE
from fakes import FakeServer, text
from messages_api import KEY, MessagesApi
from plait.compositor import Compositor
from plait.config.delegation import DelegationConfig
from plait.config.model import Settings
from plait.pipeline.compose import Layer
from plait.pipeline.middleware import Middleware
from plait.routing.naming import MountPrefix

TOOL = "delegate__delegate_task"


def alone(config: DelegationConfig) -> Settings:
    """Nothing is mounted but what hands tasks on."""
    return Settings(resource_tools=False, meta_resources=False, delegation=config)


def server(name: str, *tools: str) -> FakeServer:
    made = FakeServer(name, tools=tools)
    made.answers["tools/call"] = lambda params: text(f"{params['name']} did {params['arguments']}")
    return made


@asynccontextmanager
async def delegating(
    config: DelegationConfig,
    *servers: FakeServer,
    api: MessagesApi | None = None,
    guards: tuple[Layer | Middleware, ...] = (),
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[Compositor]:
    """A compositor that hands tasks on; with an api there is a key as well."""
    key = {} if api is None else {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": api.url}
    settings = alone(config)
    async with (
        asyncio.timeout(PATIENCE),
        Compositor(settings, guards, environ={**key, **(environ or {})}) as compositor,
    ):
        for each in servers:
            await compositor.mount(MountPrefix(each.name), each)
        yield compositor
