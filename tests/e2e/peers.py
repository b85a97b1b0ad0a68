"""Real servers, directly and behind plait, and one conversation held with both."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from gateway import PATIENCE, write_config
from witness import Side, Witness

NODE = Path(__file__).with_name("node_modules") / ".bin"
PYTHON = Path(sys.executable).parent
SERVERS = ("everything", "filesystem", "memory", "time", "git")

Talk = Callable[[Side], Awaitable[object]]
"""A conversation with one server, and what came of it: the same directly and behind plait."""


class Peers:
    """The five servers, set up so that all they leave behind is in one folder."""

    def __init__(self, folder: Path) -> None:
        if not NODE.is_dir():
            pytest.skip("the npm servers are not installed: run `make peers`")
        self.folder = folder
        self.files = folder / "files"
        self.still = self.files / "still"
        """Where nothing is written, so that a listing is the same at any time."""
        self.still.mkdir(parents=True)
        (self.still / "note.txt").write_text("one\ntwo\nthré 😀\n")
        (self.still / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n")

    def entry(self, server: str, run: str) -> dict[str, object]:
        """How it is started, as a user would write it. Each run of the memory server has its own memory."""
        arguments: list[str] = []
        match server:
            case "filesystem":
                arguments = [str(self.files)]
            case "time":
                arguments = ["--local-timezone", "Europe/Berlin"]
            case "git":
                arguments = ["--repository", str(self.repository())]
        program = (PYTHON if server in ("time", "git") else NODE) / f"mcp-server-{server}"
        env = {"MEMORY_FILE_PATH": str(self.folder / f"memory.{run}.jsonl"), "TZ": "UTC"}
        return {"command": str(program), "args": arguments, "env": env, "cwd": str(self.folder)}

    def repository(self) -> Path:
        """A repository with one commit, and a change that is not committed."""
        folder = self.folder / "repository"
        if not folder.exists():
            git = shutil.which("git")
            assert git, "mcp-server-git needs git"
            who = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"]
            environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
            folder.mkdir()
            (folder / "a.txt").write_text("first\n")
            for words in (["init", "-q"], ["add", "a.txt"], [*who, "commit", "-qm", "the first"]):
                subprocess.run([git, *words], cwd=folder, env=environ, check=True, timeout=PATIENCE)
            (folder / "a.txt").write_text("second\n")
        return folder

    # ---- conversations

    async def both(
        self, server: str, talk: Talk, able: Callable[[], Witness] = Witness
    ) -> tuple[object, object]:
        """What came of the same conversation: directly, and with this server behind plait beside another."""
        other = "memory" if server != "memory" else "filesystem"
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            direct = group.create_task(self._directly(server, talk, able()))
            through = group.create_task(self._through((other, server), {server: talk}, able()))
        return direct.result(), through.result()[server]

    async def all(self, talks: Mapping[str, Talk]) -> tuple[dict[str, object], dict[str, object]]:
        """The same with several servers, which are all behind one plait, one after the other."""
        async with asyncio.timeout(2 * PATIENCE), asyncio.TaskGroup() as group:
            direct = {
                name: group.create_task(self._directly(name, talk, Witness())) for name, talk in talks.items()
            }
            through = group.create_task(self._through(tuple(talks), talks, Witness()))
        return {name: task.result() for name, task in direct.items()}, through.result()

    async def _directly(self, server: str, talk: Talk, witness: Witness) -> object:
        parameters = StdioServerParameters.model_validate(self.entry(server, "direct"))
        async with connected(parameters, witness) as client:
            return await talk(Side(client, witness, ""))

    async def _through(
        self, servers: Sequence[str], talks: Mapping[str, Talk], witness: Witness
    ) -> dict[str, object]:
        entries = {name: self.entry(name, "through") for name in servers}
        async with self.plait(entries, witness) as client:
            return {name: await talk(Side(client, witness, name)) for name, talk in talks.items()}

    def plait(self, entries: Mapping[str, object], witness: Witness) -> AbstractAsyncContextManager[Client]:
        """A client of a plait with these servers behind it."""
        # A loaded machine may take longer than a person would wait for a list.
        config = write_config(self.folder / "plait.json", entries, {"startWait": PATIENCE})
        arguments = ["-m", "plait", "mcp-server", "-c", str(config)]
        return connected(StdioServerParameters(command=sys.executable, args=arguments), witness)


@asynccontextmanager
async def connected(parameters: StdioServerParameters, witness: Witness) -> AsyncIterator[Client]:
    """The official client, in the handshake era, with what the witness can do."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with os.fdopen(nowhere, "w") as log:
        client = Client(
            stdio_client(parameters, errlog=log),
            mode="legacy",
            read_timeout_seconds=PATIENCE,
            sampling_callback=witness.sample if witness.samples else None,
            elicitation_callback=witness.elicit if witness.forms else None,
            list_roots_callback=witness.list_roots if witness.roots else None,
            message_handler=witness.hear,
            cache=None,
        )
        async with client:
            yield client
