"""The official conformance suite as a process: which scenarios a revision scores, and how each one went."""

import asyncio
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).with_name("node_modules") / "@modelcontextprotocol" / "conformance"
OWN_NODE = Path(__file__).with_name("node_modules") / ".bin" / "node"
RELAY = Path(__file__).with_name("conformance_relay.py")
OLDEST_NODE = 22
REVISIONS = ("2025-11-25", "2026-07-28")
HURRIED = "server-stateless"
"""It gives a server half a second for some answers. A busy machine may need longer: it is asked twice."""
PATIENCE = 100.0
_FOLDER = re.compile(r"(?:server-)?(.+)-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z")
"""Where the suite leaves what it found: `server-ping-2026-11-16T02-29-51-265Z`."""


class Outcome(NamedTuple):
    """How one scenario went, and why, where it did not go well."""

    checks: int
    complaints: tuple[str, ...]
    """Its failures, and its warnings: a server SHOULD do what those are about."""


Outcomes = dict[str, Outcome]


def node() -> str:
    """A Node that is new enough for the suite: the one that came with the peers, or the machine's."""
    if not PACKAGE.is_dir():
        pytest.skip("the conformance suite is not installed: run `make peers`")
    if OWN_NODE.exists():
        return str(OWN_NODE)
    found = shutil.which("node")
    if found is not None:
        said = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=30, check=True)
        if int(said.stdout.strip().lstrip("v").partition(".")[0]) >= OLDEST_NODE:
            return found
    pytest.skip(f"the conformance suite needs Node {OLDEST_NODE} or newer")


def scored(side: str, revision: str) -> set[str]:
    """The scenarios that conformance to a revision asks of a server, or of a client."""
    lines = (PACKAGE / "requirements" / f"{revision}.yaml").read_text().splitlines()
    names: set[str] = set()
    for line in lines[lines.index(f"{side}:") + 1 :]:
        if line and not line.startswith((" ", "#")):
            break
        if found := re.match(r"\s+- (\S+)", line):
            names.add(found[1])
    return names


async def judge_server(url: str, revision: str, folder: Path) -> Outcomes:
    """Every scenario of a revision, against the server at this address."""
    said = await _run("server", "--url", url, "--requirements", revision, "-o", str(folder / "first"))
    found = _outcomes(folder / "first") or pytest.fail(f"the suite found nothing out:\n{said}")
    if HURRIED in found and found[HURRIED].complaints:
        again = ("--scenario", HURRIED, "--spec-version", revision, "-o", str(folder / "again"))
        await _run("server", "--url", url, *again)
        found |= _outcomes(folder / "again")
    return found


Act = Callable[[str, str], Awaitable[None]]
"""What a client does with the server at an address; the second is the scenario's own JSON, or empty."""


async def judge_client(scenario: str, revision: str, folder: Path, act: Act) -> Outcome:
    """One scenario: the suite starts a server of its own and a client, and the client does this."""
    problems: list[Exception] = []

    async def hired(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = json.loads(await reader.readline())
            await act(asked["url"], asked["context"])
            writer.write(b"done\n")
        except Exception as problem:  # told by the test, once the suite has said what it saw of it
            problems.append(problem)
        finally:
            writer.close()

    async with await asyncio.start_server(hired, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        command = shlex.join([sys.executable, "-I", "-S", str(RELAY), str(port)])
        arguments = ["--command", command, "--scenario", scenario, "--spec-version", revision]
        said = await _run("client", *arguments, "--timeout", "75000", "-o", str(folder))
    found = _outcomes(folder).get(scenario) or pytest.fail(f"the suite found nothing out:\n{said}")
    return found._replace(complaints=(*found.complaints, *(f"the client: {each!r}" for each in problems)))


async def _run(*arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(node(), str(PACKAGE / "dist" / "index.js"), *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return said.decode(errors="replace")


def _outcomes(folder: Path) -> Outcomes:
    found: Outcomes = {}
    for path in sorted(folder.glob("**/checks.json")):
        named = _FOLDER.fullmatch(str(path.parent.relative_to(folder)))
        assert named is not None, path
        found[named[1]] = _outcome(json.loads(path.read_text()))
    return found


def _outcome(checks: Sequence[Mapping[str, object]]) -> Outcome:
    wrong = (
        f"{check['id']}: {check.get('errorMessage') or check.get('description')}"
        for check in checks
        if check["status"] in ("FAILURE", "WARNING")
    )
    return Outcome(len(checks), tuple(wrong))


def complaints(outcomes: Outcomes, expected: Iterable[str]) -> list[str]:
    """What went wrong in the expected scenarios, as a person reads it; one that did not run went wrong."""
    said: list[str] = []
    for name in sorted(expected):
        outcome = outcomes.get(name)
        if outcome is None or not outcome.checks:
            said.append(f"{name}: it did not run")
        else:
            said += [f"{name}: {complaint}" for complaint in outcome.complaints]
    return said
