"""FastMCP's and the official SDK's server objects, mounted from a file and run in our own process."""

from pathlib import Path

import pytest

from gateway import Gateway, text_of, write_config

pytestmark = pytest.mark.e2e

MODULE = '''
import pathlib
from contextlib import asynccontextmanager

from fastmcp import Context, FastMCP
from mcp.server.mcpserver import MCPServer

TRAIL = pathlib.Path(__file__).with_name("trail")


@asynccontextmanager
async def lifespan(server):
    TRAIL.write_text("begun")
    try:
        yield
    finally:
        TRAIL.write_text("ended")


notes = FastMCP("notes", lifespan=lifespan)


@notes.tool
async def add(a: int, b: int, ctx: Context) -> int:
    """Adds."""
    await ctx.report_progress(1, 2)
    return a + b


@notes.resource("notes://all")
def everything() -> str:
    return "all notes"


calc = MCPServer("calc")


@calc.tool()
def double(x: int) -> int:
    """Doubles."""
    return 2 * x


def broken():
    raise RuntimeError("no")
'''


async def test_server_objects_are_served_side_by_side_with_processes(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    servers = {
        "notes": {"type": "python", "module": "mine:notes"},
        "calc": {"type": "python", "module": "mine:calc"},
        "broken": {"type": "python", "module": "mine:broken"},
    }
    async with Gateway(write_config(tmp_path / "c.json", servers)) as gateway:
        await gateway.shake_hands()
        listed = await gateway.request("tools/list")
        assert [tool["name"] for tool in listed["result"]["tools"]] == ["notes__add", "calc__double"]  # type: ignore[index]
        answer = await gateway.call("notes__add", {"a": 2, "b": 3}, meta={"progressToken": "p"})
        assert text_of(answer) == "5"
        progress = await gateway.heard("notifications/progress")
        assert progress["params"]["progressToken"] == "p"  # type: ignore[index]
        assert text_of(await gateway.call("calc__double", {"x": 4})) == "8"
        read = await gateway.request("resources/read", {"uri": "notes://all"})
        assert read["result"]["contents"][0]["text"] == "all notes"  # type: ignore[index]
        assert (tmp_path / "trail").read_text() == "begun"
    assert (tmp_path / "trail").read_text() == "ended", "its lifespan is cleaned up"
    assert "mine:broken" in gateway.stderr
