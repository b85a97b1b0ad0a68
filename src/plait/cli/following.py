"""Keep what a command serves in step with the files it was made from."""

import os
from collections.abc import Sequence

from plait.assemble import for_commands
from plait.cli.files import find
from plait.compositor import Compositor
from plait.config.model import Config
from plait.reload import Reloader


async def follow_files(compositor: Compositor, given: Sequence[str]) -> None:
    """Until the compositor is closed."""

    def read() -> Config | None:
        found = find(given)
        return None if found is None else for_commands(found)

    if compositor.config is not None and _can_be_read_again(compositor.config.files):
        await compositor.stack.enter_async_context(Reloader(compositor, read))


def _can_be_read_again(files: Sequence[str]) -> bool:
    """A pipe, as in `-c <(…)`, is empty the second time."""
    return bool(files) and all(os.path.isfile(file) for file in files)
