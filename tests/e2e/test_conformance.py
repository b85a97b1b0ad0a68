"""The official conformance suite, against plait with two servers behind it; it fails with what failed."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from conformance import REVISIONS, Outcomes, complaints, judge_server, node, scored
from conformance_shim import without_prefix
from gateway import PATIENCE, write_config
from peers import NODE
from served import Served

pytestmark = pytest.mark.e2e

REFERENCE = Path(__file__).with_name("conformance_server.py")
UNSCORED = {
    "2025-11-25": {"server-session-lifecycle", "json-schema-2020-12", "server-sse-polling"},
    "2026-07-28": {"json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"},
}
"""What the suite runs besides and does not score, and plait passes too. The tasks extension is left out:
the reference server does not have it, nor has the SDK that it is made of."""
SCORED = {"2025-11-25": 30, "2026-07-28": 37}


@asynccontextmanager
async def reference_over_http() -> AsyncIterator[str]:
    """The address of the reference server, once it listens."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(REFERENCE), "http"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            port = int(await process.stdout.readline())
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@asynccontextmanager
async def entry_of(transport: str) -> AsyncIterator[dict[str, object]]:
    """How the reference server is mounted: as a process of plait's, or by its address."""
    if transport == "stdio":
        yield {"command": sys.executable, "args": [str(REFERENCE), "stdio"]}
    else:
        async with reference_over_http() as url:
            yield {"url": url}


@asynccontextmanager
async def plait_with(entry: dict[str, object], style: str, folder: Path) -> AsyncIterator[str]:
    """The address at which the suite finds the reference server's names, with another server beside it."""
    memory = {
        "command": str(NODE / "mcp-server-memory"),
        "env": {"MEMORY_FILE_PATH": str(folder / "memory.jsonl"), "PATH": os.environ["PATH"]},
    }
    if style == "unprefixed":
        entry["plait"] = {"prefix": ""}
    servers = {"ref": entry, "memory": memory}
    config = write_config(folder / "plait.json", servers, {"startWait": PATIENCE})
    async with Served(config) as served:
        if style == "unprefixed":
            yield served.url
        else:
            async with without_prefix(served.url, "ref__") as url:
                yield url


def judge(outcomes: Outcomes, revision: str, unscored: set[str]) -> None:
    expected = scored("server", revision)
    assert len(expected) == SCORED[revision], "docs/conformance.md counts otherwise"
    wrong = complaints(outcomes, expected | unscored)
    assert not wrong, f"{len(wrong)} checks of {revision} failed:\n" + "\n".join(wrong)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_reference_server_itself_passes(revision: str, tmp_path: Path) -> None:
    node()
    async with reference_over_http() as url:
        judge(await judge_server(url, revision, tmp_path), revision, set())


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("style", ["unprefixed", "prefixed"])
async def test_it_passes_behind_plait(revision: str, style: str, transport: str, tmp_path: Path) -> None:
    node()
    async with entry_of(transport) as entry, plait_with(entry, style, tmp_path) as url:
        judge(await judge_server(url, revision, tmp_path / "found"), revision, UNSCORED[revision])
