"""`plait up`: show that plait works, and how to connect a client.

Clients connect over stdio, by starting `plait mcp-server` themselves. So that is what is tried
here, as a client would, before anybody is told to use it.
"""

import argparse
import os
import shlex
import sys
from pathlib import Path

from plait.cli.exits import OK, UNREACHABLE
from plait.cli.loop import run as run_loop
from plait.cli.screen import Screen
from plait.errors import PlaitError
from plait.upstream.handshake import McpSession
from plait.upstream.stdio import StdioTransport
from plait.version import VERSION


def run(options: argparse.Namespace) -> int:
    return run_loop(_up([str(Path(path).resolve()) for path in options.config], Screen()))


def command(files: list[str]) -> list[str]:
    """What a client has to start: absolute, so that it works wherever the client runs."""
    beside = Path(sys.executable).with_name("plait")
    start = [str(beside)] if beside.exists() else [sys.executable, "-m", "plait"]
    return [*start, "mcp-server", *(word for file in files for word in ("-c", file))]


async def _up(files: list[str], screen: Screen) -> int:
    argv = command(files)
    screen.progress("starting")
    transport = StdioTransport(argv[0], argv[1:], os.environ)
    try:
        async with await McpSession.connect(transport, name="plait") as session:
            tools = await session.list_tools()
            answer = await _try(session, [str(tool["name"]) for tool in tools])
    except PlaitError as problem:
        screen.note(f"error: plait does not answer: {problem}")
        return UNREACHABLE
    screen.progress("")
    screen.say(f"plait {VERSION}  {len(tools)} tool{'' if len(tools) == 1 else 's'}: {_names(tools)}", "bold")
    if answer is not None:
        screen.say(f"  tried builtin__echo: {answer}", "good")
    screen.say("connect a client over stdio; it starts plait itself, with:")
    screen.say(f"  {shlex.join(argv)}")
    screen.say("for example, Claude Code:")
    screen.say(f"  claude mcp add plait -- {shlex.join(argv)}")
    return OK


async def _try(session: McpSession, names: list[str]) -> str | None:
    """A call all the way through, where the built-in echo is served."""
    if "builtin__echo" not in names:
        return None
    result = await session.call_tool("builtin__echo", {"text": "it works"})
    return str(result["content"][0]["text"]) if isinstance(result, dict) else None


def _names(tools: list[dict[str, object]]) -> str:
    names = [str(tool["name"]) for tool in tools]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
