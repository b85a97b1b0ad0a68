"""`plait mcp-server`: one client on our stdin and stdout."""

import argparse
import asyncio
import gc
import logging
import os
from collections.abc import Sequence

from plait.assemble import assembled
from plait.cli.exits import OK
from plait.cli.files import find
from plait.cli.following import follow_files
from plait.cli.loop import run as run_loop
from plait.cli.signals import on_signals
from plait.config.model import Config
from plait.downstream.connection import Connection
from plait.downstream.stdio import StdioClient

LAST_ANSWERS = 60.0
"""Seconds for requests that were read before the end of input; their own deadlines are not longer."""
DRAIN = 5.0
"""Seconds for requests that are running when we are told to stop."""

_log = logging.getLogger("plait")


def run(options: argparse.Namespace) -> int:
    config = find(options.config)
    input_fd, output_fd = _keep_for_the_protocol()
    run_loop(_serve(config, options.config, input_fd, output_fd))
    return OK


def _keep_for_the_protocol() -> tuple[int, int]:
    """stdin and stdout belong to the client: nobody else's `print` or `input` may touch them."""
    kept = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return kept


async def _serve(config: Config | None, files: Sequence[str], input_fd: int, output_fd: int) -> None:
    async with assembled(config, os.environ) as assembly:
        compositor = assembly.compositor
        await follow_files(compositor, files)
        client = StdioClient(input_fd, output_fd)
        await client.open_output()
        connection = compositor.connect(client)
        _calm_the_collector()
        stop = on_signals()
        reading = asyncio.get_running_loop().create_task(client.serve(connection))
        try:
            await asyncio.wait((reading, stop), return_when=asyncio.FIRST_COMPLETED)
            if not client.gone.done():
                await _last_answers(connection, client, stop)
        finally:
            reading.cancel()
        await compositor.disconnect(connection)
        await client.aclose()


def _calm_the_collector() -> None:
    """What is there now stays; what calls leave behind is almost never a cycle. Look rarely."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


async def _last_answers(connection: Connection, client: StdioClient, stop: "asyncio.Future[None]") -> None:
    """Every request that was read is answered, unless nobody listens or somebody insists.

    `printf … | plait mcp-server` closes our input long before the answers are there.
    """
    seconds = DRAIN if stop.done() else LAST_ANSWERS
    insist = on_signals() if stop.done() else stop
    if stop.done():
        _log.info("told to stop: calls that run have %g s to finish", seconds)
    finishing = asyncio.get_running_loop().create_task(connection.finish(seconds))
    await asyncio.wait((finishing, client.gone, insist), return_when=asyncio.FIRST_COMPLETED)
    finishing.cancel()
    if not client.gone.done():
        connection.give_up("plait was told to stop" if stop.done() else f"no answer within {seconds:g} s")
