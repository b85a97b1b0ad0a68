"""Follows the files of a configuration while it is served: what changes there is done here.

`await compositor.stack.enter_async_context(Reloader(compositor, read))` is all there is to it. The files
are looked at about once a second, and read when they have changed and then stayed the same for one look:
an editor may still be writing. At SIGHUP they are read at once.
"""

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable
from typing import Self, TypeAlias

from plait.compositor import Compositor
from plait.config.model import Config
from plait.errors import ConfigError, PlaitError
from plait.mounts.mount import Mount
from plait.succession import Step, follow, prepare
from plait.tasks import TaskSet, to_the_end

LOOK = 1.0
"""Seconds between two looks at the files."""

Stamp: TypeAlias = tuple[int, int, int] | None
"""What a file looks like from outside; None if it is not there."""

_log = logging.getLogger("plait.configuration")


class Reloader:
    """One change after the other; the newest counts. It ends before the compositor's mounts do."""

    def __init__(
        self, compositor: Compositor, read: Callable[[], Config | None], *, look: float = LOOK
    ) -> None:
        self._compositor = compositor
        self._read = read
        self._look = look
        self._files = compositor.config.files if compositor.config is not None else ()
        self._asked = asyncio.Event()
        self._turn = asyncio.Lock()
        self._tasks = TaskSet()
        self._leaving = TaskSet()
        """Mounts that nobody sees any more, while their last calls finish."""

    def __repr__(self) -> str:
        return f"<Reloader of {', '.join(self._files)}: {len(self._leaving)} mounts are leaving>"

    # ---- its life

    async def __aenter__(self) -> Self:
        self._tasks.start(self._watch())
        if _gets_signals():
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._asked.set)
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Who is leaving has no more time: the connections whose calls it answers are closed already."""
        if _gets_signals():
            asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
        await self._tasks.aclose()
        await self._leaving.aclose()

    # ---- looking

    async def _watch(self) -> None:
        looked: list[Stamp] = []
        # Nobody knows what the files looked like when they were read for the start: read them once more.
        taken: list[Stamp] = []
        while True:
            asked = await self._was_asked()
            stamps = [_stamp(file) for file in self._files]
            if asked or (stamps == looked and stamps != taken):
                step = await self._reloaded()
                if step is not None and not str(step) and (asked or taken):
                    _log.info("configuration read anew: nothing has changed")
                taken = stamps
            looked = stamps

    async def _was_asked(self) -> bool:
        """Wait for the next look; has somebody asked for it?"""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._look):
                await self._asked.wait()
        asked = self._asked.is_set()
        self._asked.clear()
        return asked

    async def _reloaded(self) -> Step | None:
        try:
            return await self.reload()
        except ConfigError as problem:
            _log.error("the configuration is not followed, and what ran goes on: %s", problem)
        except PlaitError as problem:
            _log.error("the configuration could not be followed: %s", problem)
        except Exception:
            _log.exception("a bug in plait: the configuration could not be followed")
        return None

    # ---- following

    async def reload(self) -> Step:
        """Read the configuration and follow it; what that came to. Raises ConfigError, and nothing has
        changed, if it cannot be followed."""
        async with self._turn:
            # In a thread: a file may be large, and calls go on meanwhile.
            config = await asyncio.to_thread(self._read)
            if config is None:
                raise ConfigError("there is no configuration file any more")
            known = self._compositor.complaints
            step = prepare(self._compositor, config)
            await follow(self._compositor, step, self._see_off)
        for each in step.complaints:
            if each not in known:
                _log.warning("%s", each)
        if str(step):
            _log.info("configuration read anew: %s", step)
        if step.postponed:
            _log.warning("takes effect at the next start: %s", ", ".join(step.postponed))
        return step

    def _see_off(self, mount: Mount) -> None:
        self._leaving.start(_seen_off(mount))


async def _seen_off(mount: Mount) -> None:
    """Whoever waits for a place waits as long as a call may take, and then its call may take as long."""
    try:
        await mount.finished(2 * mount.settings.timeout)
    finally:
        with contextlib.suppress(Exception):  # what goes wrong is in the log
            await to_the_end(mount.aclose())


def _stamp(file: str) -> Stamp:
    """Not in a thread: this takes microseconds."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _gets_signals() -> bool:
    """Python hands signals to its main thread only, and not every system has this one."""
    return hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread()
