"""The stand-in for docker from the test's side: on a PATH of its own, with containers that can be counted."""

import json
import os
import sys
from pathlib import Path

from plait.config.model import ServerSettings, StdioServer

SCRIPT = Path(__file__).with_name("stand_in_engine.py")
SERVER = Path(__file__).with_name("misbehaving.py")


class StandIn:
    """`docker` and `podman` in `bin`; plait's state in `state`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "engine"
        self._containers = self.folder / "containers"
        self._containers.mkdir(parents=True)
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in ("docker", "podman", "sudo"):
            self.install(name)
        self.state = folder / "state"
        self.environ = {
            **{name: os.environ[name] for name in ("HOME", "XDG_CACHE_HOME") if name in os.environ},
            "PATH": f"{self.bin}:{os.environ.get('PATH', os.defpath)}",
            "XDG_STATE_HOME": str(self.state),
        }

    def install(self, name: str) -> None:
        """A program of that name: `sudo` runs what it is given, the others are the engine."""
        script = (
            'shift; exec "$@"'
            if name == "sudo"
            else f'exec {sys.executable} -I -S {SCRIPT} {self.folder} "$@"'
        )
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    # ---- what it shall run

    def argv(
        self, *options: str, engine: tuple[str, ...] = ("docker",), flags: tuple[str, ...] = ()
    ) -> list[str]:
        server = (sys.executable, "-E", "-s", "-S", str(SERVER), *flags)
        return [*engine, "run", "-i", *options, "image", *server]

    def server(self, *options: str, engine: tuple[str, ...] = ("docker",)) -> StdioServer:
        command, *arguments = self.argv(*options, engine=engine)
        env = {"DOCKER_HOST": "tcp://127.0.0.1:1", "SECRET": "hunter2"}
        settings = ServerSettings(start_timeout=30)
        return StdioServer(name="boxed", command=command, args=arguments, env=env, settings=settings)

    def entry(self, *options: str, flags: tuple[str, ...] = ()) -> dict[str, object]:
        """The same in a configuration file."""
        command, *arguments = self.argv(*options, flags=flags)
        return {"command": command, "args": arguments}

    # ---- how it behaves

    def begin(self, behaviour: str) -> None:
        (self.folder / behaviour).touch()

    def end(self, behaviour: str) -> None:
        (self.folder / behaviour).unlink()

    def make(self, id: str, label: str = "") -> None:
        """A container, made by somebody else."""
        (self._containers / id).write_text(json.dumps({"--label": label, "--name": ""}))

    # ---- what came of it

    @property
    def containers(self) -> list[str]:
        return sorted(path.name for path in self._containers.iterdir())

    @property
    def claims(self) -> list[Path]:
        """All that plait has written down about containers."""
        return sorted((self.state / "plait" / "containers").glob("*"))

    @property
    def left(self) -> list[str]:
        """Every container, and every file of ours."""
        return [*self.containers, *map(str, self.claims)]

    def calls(self, verb: str) -> list[dict[str, object]]:
        path = self.folder / "calls"
        calls = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [call for call in calls if verb in call["words"]]
