"""What a server said of itself last time.

A client's `initialize` is answered at once, and its servers are greeted only then: what they say in
their own greeting comes too late for it. And a server that starts when it is first used must be listed
before it has ever run. So a server's instructions, capabilities and lists are kept from one run to the
next. Nothing else is kept, and nothing secret: the file's name is a hash.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import MsgspecError, Raw, Struct, field
from msgspec.json import decode, encode

from plait.config.folders import cache_folder
from plait.session.negotiation import declares
from plait.wire.envelope import Fields, encode_sorted
from plait.wire.spec import Kind

LONGEST = 64 * 1024
LARGEST = 8 * 1024 * 1024


class Recalled(Struct):
    """A server as it was."""

    capabilities: Fields = field(default_factory=dict)
    lists: dict[str, list[Raw]] = field(default_factory=dict)
    """By the field of the list's result that holds the items."""

    def supports(self, capability: str, detail: str | None = None) -> bool:
        return declares(self.capabilities, capability, detail)

    def listed(self, kind: Kind) -> list[Raw]:
        return self.lists.get(kind.value, [])


def instructions_folder(environ: Mapping[str, str]) -> Path:
    return cache_folder(environ) / "instructions"


class Recollection:
    """One server. A cache that cannot be read or written is an empty one."""

    def __init__(self, folder: Path, identity: Sequence[str]) -> None:
        digest = hashlib.sha256("\0".join(identity).encode(errors="surrogatepass")).hexdigest()
        self._path = folder / digest[:32]

    def recall(self) -> str:
        """Its instructions."""
        try:
            with self._path.open(encoding="utf-8") as file:
                return file.read(LONGEST)
        except (OSError, ValueError):
            return ""

    def remember(self, instructions: str) -> None:
        if instructions != self.recall():
            _write(self._path, instructions[:LONGEST].encode(errors="replace"))

    def recall_lists(self, capabilities: Fields) -> Recalled | None:
        """What it offered to clients that can do this: its lists depend on that."""
        try:
            with self._lists_of(capabilities).open("rb") as file:
                return decode(file.read(LARGEST), type=Recalled)
        except (OSError, MsgspecError, UnicodeDecodeError, RecursionError):
            return None

    def remember_lists(self, capabilities: Fields, recalled: Recalled) -> None:
        if encode(recalled) != encode(self.recall_lists(capabilities)):
            _write(self._lists_of(capabilities), encode(recalled))

    def _lists_of(self, capabilities: Fields) -> Path:
        able = hashlib.sha256(encode_sorted(capabilities)).hexdigest()
        return self._path.with_name(f"{self._path.name}-{able[:16]}")


def _write(path: Path, content: bytes) -> None:
    """Written whole or not at all: two plaits may run at once."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(name, path)
