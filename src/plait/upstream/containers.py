"""A server in a container, which lives in a daemon and not below us: remove it, however its server ended.

An engine that is told `run --cidfile FILE --label plait.container=TOKEN` writes down the id of what it has
made. When its process has ended, the container is removed by that id. An engine that was killed before it
wrote the id may have made one all the same: that one is found by its label. Should we be killed ourselves,
the claim beside the id is no longer locked, and the next start of such a server clears up behind us.
"""

import asyncio
import logging
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from plait.config.folders import state_folder
from plait.config.model import StdioServer
from plait.errors import UpstreamUnavailable
from plait.tasks import seen_through
from plait.upstream.child import LAST_WAIT
from plait.upstream.container_claims import Claim, Engine, read_id, relevant
from plait.upstream.engines import ContainerCommand, engine_in, recognise
from plait.upstream.errands import run_errand
from plait.upstream.process import Child, Guardian
from plait.wire.text import printable

LABEL = "plait.container"
REMOVAL = 20.0
"""Seconds for an engine to remove a container, or to say that it cannot."""
# `--rm` was given too, and the engine was faster.
_GONE = re.compile("no such container|no container with|removal .* in progress", re.IGNORECASE)

_log = logging.getLogger("plait")


def containers_folder(environ: Mapping[str, str]) -> Path:
    return state_folder(environ) / "containers"


async def contain(
    server: StdioServer, environment: Mapping[str, str], folder: Path, guardian: Guardian
) -> "Container | None":
    """What a server's command has to become if it runs a container; None if it runs none.

    Containers that others left behind are removed first: they may have the name that this one wants.
    """
    command = recognise((server.command, *server.args))
    if command is None:
        return None
    await sweep(folder, guardian)
    engine = Engine(server.name, command.engine, relevant(environment), server.cwd)
    try:
        return Container(command, Claim.create(folder, engine), guardian)
    except OSError as problem:
        raise UpstreamUnavailable(
            f"cannot start {server.command}: the ids of containers cannot be written to {folder}: "
            f"{problem.strerror}; make it writable, or set XDG_STATE_HOME"
        ) from problem


class Container:
    """One run of one server: whoever starts `argv` calls `remove` when the process has ended."""

    def __init__(self, command: ContainerCommand, claim: Claim, guardian: Guardian) -> None:
        self._claim = claim
        self._guardian = guardian
        self._cidfile: Path | None = claim.cidfile
        self._removal: asyncio.Task[None] | None = None
        options = ["--label", f"{LABEL}={claim.token}"]
        if command.cidfile is not None:
            # An engine refuses to run when the file is there already: that names somebody else's container.
            theirs = Path(claim.engine.cwd or "", command.cidfile)
            self._cidfile = None if theirs.exists() else theirs
        elif _is_snap(claim.engine):
            self._cidfile = None  # a snap may not write to hidden folders
        else:
            options = ["--cidfile", str(claim.cidfile.absolute()), *options]
        self.argv = command.with_options(*options)

    def __repr__(self) -> str:
        return f"<Container of server '{self._claim.engine.server}'>"

    async def remove(self, child: Child | None, *, unasked: bool) -> None:
        """Once the process has ended; to the end, even when cancelled.

        `unasked`: it exited of its own accord, before anybody told it to, or was never started.
        """
        if self._removal is None:
            self._removal = asyncio.get_running_loop().create_task(self._remove(child, unasked))
        await seen_through(self._removal)

    async def _remove(self, child: Child | None, unasked: bool) -> None:
        if child is not None:
            await asyncio.wait((child.gone,), timeout=LAST_WAIT)
        killed = child is not None and (child.returncode is None or child.returncode < 0)
        if killed:
            self._claim.touch()
        await _dispose(self._claim, self._known(unasked), self._guardian, late=killed, unlikely=unasked)

    def _known(self, unasked: bool) -> list[str] | None:
        """The ids of its containers, of which there is one or none; None if we have to look."""
        if self._cidfile is None:
            return None
        if unasked and not self._cidfile.exists():
            return []  # an engine that makes none says why on its stderr, and takes its file away
        return _written(self._cidfile)


async def sweep(folder: Path, guardian: Guardian) -> None:
    """Remove the containers of every plait that is no longer there to do it."""
    async with asyncio.TaskGroup() as group:
        for path in _claims(folder):
            group.create_task(_sweep_one(path, guardian))


async def _sweep_one(path: Path, guardian: Guardian) -> None:
    claim = Claim.adopt(path)
    if claim is not None:
        await _dispose(claim, _written(claim.cidfile), guardian, late=claim.young)


async def _dispose(
    claim: Claim, ids: list[str] | None, guardian: Guardian, *, late: bool, unlikely: bool = False
) -> None:
    """Remove the containers, which we have to look for if their ids are None, and then the claim to them.

    `late`: one may come into being yet, since a daemon finishes what a client that is dead asked it for.
    `unlikely`: if nobody can tell whether there is one, there is none.
    """
    try:
        async with asyncio.timeout(REMOVAL):
            found = ids if ids is not None else await _find(claim, guardian)
            for each in found:
                await _call(claim.engine, guardian, "rm", "-f", each)
                _log.info("removed container %s of server '%s'", each, printable(claim.engine.server))
        if found or not late:
            claim.forget()
    except (OSError, RuntimeError) as problem:
        if unlikely and ids is None:
            claim.forget()
        else:
            _complain(claim, ids, str(problem) or f"no answer within {REMOVAL:g} s")
    finally:
        claim.release()


async def _find(claim: Claim, guardian: Guardian) -> list[str]:
    mark = f"label={LABEL}={claim.token}"
    words = ("ps", "--all", "--quiet", "--no-trunc", "--filter", mark)
    return (await _call(claim.engine, guardian, *words)).split()


async def _call(engine: Engine, guardian: Guardian, *words: str) -> str:
    """What the engine says; RuntimeError, with its reason, if it fails."""
    outcome = await run_errand(guardian, (*engine.words, *words), engine.environment, _folder_of(engine))
    if outcome.code != 0 and not _GONE.search(outcome.complaint):
        lines = outcome.complaint.strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"it exited with code {outcome.code}")
    return outcome.output


def _complain(claim: Claim, ids: list[str] | None, reason: str) -> None:
    what = " ".join(ids or ()) or f"labelled {LABEL}={claim.token}, if there is one"
    _log.warning(
        "server '%s': %s could not remove its container (%s): %s. The next start of a server in a container "
        "tries again; to end that, remove it yourself and delete %s",
        *(printable(claim.engine.server), engine_in(claim.engine.words), what),
        *(printable(reason[:300]), claim.path),
    )


def _written(cidfile: Path) -> list[str] | None:
    id = read_id(cidfile)
    return None if id is None else [id]


def _claims(folder: Path) -> list[Path]:
    return list(folder.glob("*.json"))


def _folder_of(engine: Engine) -> str | None:
    """Where the server ran, if that is still there: paths in the engine's own options may begin there."""
    return engine.cwd if engine.cwd is not None and os.path.isdir(engine.cwd) else None


def _is_snap(engine: Engine) -> bool:
    program = next((word for word in engine.words if engine_in((word,))), "")
    found = shutil.which(program, path=engine.environment.get("PATH", os.defpath))
    return found is not None and os.path.basename(os.path.realpath(found)) == "snap"
