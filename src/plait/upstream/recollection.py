"""What a server said of itself last time.

A client's `initialize` is answered at once, and its servers are greeted only then: what they say in
their own greeting comes too late for it. So a server's instructions are kept from one run to the
next, and told to the next client. Nothing else is kept, and nothing secret: the file's name is a hash.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from plait.config.folders import cache_folder

LONGEST = 64 * 1024


def instructions_folder(environ: Mapping[str, str]) -> Path:
    return cache_folder(environ) / "instructions"


class Recollection:
    """The instructions of one server. A cache that cannot be read or written is an empty one."""

    def __init__(self, folder: Path, identity: Sequence[str]) -> None:
        digest = hashlib.sha256("\0".join(identity).encode(errors="surrogatepass")).hexdigest()
        self._path = folder / digest[:32]

    def recall(self) -> str:
        try:
            with self._path.open(encoding="utf-8") as file:
                return file.read(LONGEST)
        except (OSError, ValueError):
            return ""

    def remember(self, instructions: str) -> None:
        """Written whole or not at all: two plaits may run at once."""
        if instructions == self.recall():
            return
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self._path.parent)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
                file.write(instructions[:LONGEST])
            os.replace(name, self._path)
