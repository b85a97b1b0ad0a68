"""The folder of a raw server, from the test's side: what it shall send, and what it got."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Raw

from gateway import write_config

SCRIPT = Path(__file__).with_name("raw_server.py")
TOOL = b'{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}'

_open_object = msgspec.json.Decoder(dict[str, Raw]).decode
_open_array = msgspec.json.Decoder(list[Raw]).decode


class Gate:
    """Holds back the answers of a raw server."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def open(self) -> None:
        """Let one answer pass."""
        os.write(self._pipe, b".")


class RawPeer:
    """`peer.says("tools/call", "result", b"{}")`, `peer.config()`, `peer.heard("tools/call")`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "raw"
        self.folder.mkdir(parents=True)
        self.says("tools/list", "result", TOOL)

    def says(self, method: str, what: str, data: bytes) -> None:
        self._file(method, what).write_bytes(data)

    @contextmanager
    def gate(self, method: str) -> Iterator[Gate]:
        """Inside, it answers such requests only as the gate is opened; outside, at once."""
        path = self._file(method, "gate")
        os.mkfifo(path)
        # Open both ways, so that neither side ever waits for the other to open its end.
        pipe = os.open(path, os.O_RDWR)
        try:
            yield Gate(pipe)
        finally:
            path.unlink()
            os.close(pipe)

    def entry(self) -> dict[str, object]:
        """What a configuration file says of it."""
        return {"command": sys.executable, "args": ["-I", "-S", str(SCRIPT), str(self.folder)]}

    def config(self) -> Path:
        return write_config(self.folder / "plait.json", {"raw": self.entry()})

    def received(self) -> list[bytes]:
        """Every line it got so far."""
        return (self.folder / "received").read_bytes().splitlines()

    def heard(self, method: str) -> list[bytes]:
        """The lines it got of this method."""
        return [line for line in self.received() if method_of(line) == method]

    def _file(self, method: str, what: str) -> Path:
        return self.folder / f"{method.replace('/', '_')}.{what}"


def raw_at(text: bytes, *path: str | int) -> bytes:
    """The bytes of one value inside a JSON text, as they stand there."""
    for step in path:
        text = bytes(_open_array(text)[step] if isinstance(step, int) else _open_object(text)[step])
    return text


def keys_at(text: bytes, *path: str | int) -> Sequence[str]:
    """The names of the fields of one object inside a JSON text, in order."""
    return list(_open_object(raw_at(text, *path)))


def method_of(message: bytes) -> str | None:
    """What a message asks or tells; None if it is an answer."""
    method = _open_object(message).get("method")
    return None if method is None else msgspec.json.decode(method, type=str)
