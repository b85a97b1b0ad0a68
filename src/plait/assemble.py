"""From a Config to a running Compositor, as the commands use it."""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from plait.compositor import Compositor
from plait.config.model import Config, Settings
from plait.pipeline.compose import Layer


class Assembly(Struct):
    """What a configuration became."""

    compositor: Compositor
    guards: Sequence[Layer]
    complaints: list[str]
    """What is wrong with the configuration; everything else is served all the same."""


@contextlib.asynccontextmanager
async def assembled(
    config: Config | None, environ: Mapping[str, str], more_guards: Sequence[Layer] = ()
) -> AsyncIterator[Assembly]:
    """Everything the configuration names, running; closed in the reverse order."""
    async with Compositor(for_commands(config), more_guards, environ=environ) as compositor:
        assert compositor.outfit is not None
        yield Assembly(compositor, [*compositor.outfit.guards, *more_guards], compositor.complaints)


def for_commands(config: Config | None) -> Config:
    """Without a file the tools that we ship are there; resources are tools only where a file says so."""
    config = config or Config(settings=Settings(builtin=True))
    resource_tools = bool(config.settings.resource_tools)
    return replace(config, settings=replace(config.settings, resource_tools=resource_tools))
