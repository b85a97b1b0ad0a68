"""What was cut from results, kept for a while for whoever made the call."""

import asyncio
import logging
import os
import re
import secrets
import tempfile
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from plait.errors import NotFound
from plait.pipeline.cutting import Document

_log = logging.getLogger("plait")

HOME = "plait://results/"
TEMPLATE = "plait://results/{id}{?offset}"
PAGE_BYTES = 32_768
"""Half of what a result may have, so that a page and the words around it are never cut again."""
_ADDRESS = re.compile(r"(?:plait://results/)?([A-Za-z0-9_-]{1,64})(?:\?offset=([0-9]{1,15}))?")


class Page(Struct, frozen=True):
    """A part of a document, whole characters only. Offsets are bytes."""

    uri: str
    media_type: str
    text: str
    offset: int
    end: int
    total: int

    @property
    def next_uri(self) -> str | None:
        return f"{self.uri}?offset={self.end}" if self.end < self.total else None


class Kept(Struct):
    """One document in the store: in memory, or in a file without a name."""

    id: str
    identity: str
    tool: str
    media_type: str
    size: int
    expires: float
    """On the clock of the loop."""
    data: bytes | None = None
    descriptor: int = -1

    @property
    def uri(self) -> str:
        return HOME + self.id

    def piece(self, offset: int, length: int) -> bytes:
        # A page was written lately and is small: reading it does not wait for a disk.
        if self.data is None:
            return os.pread(self.descriptor, length, offset)
        return self.data[offset : offset + length]

    def close(self) -> None:
        self.data = None
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class KeptResults:
    """Documents by unguessable ids, each readable only by the identity it was kept for.

    Memory first, up to `memory_bytes`; then files in the folder that have no name there: nobody else
    can open them, and the system frees them however we end. Without a folder there is only memory.
    Past a quota the oldest go, of whoever keeps most.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        memory_bytes: int = 8 * 1024 * 1024,
        disk_bytes: int = 256 * 1024 * 1024,
        most: int = 200,
        seconds: float = 3600.0,
        page_bytes: int = PAGE_BYTES,
    ) -> None:
        self._folder = folder
        self._memory_bytes = memory_bytes
        self._disk_bytes = 0 if folder is None else disk_bytes
        self._most = most
        self._seconds = seconds
        self._page_bytes = page_bytes
        self._kept: dict[str, Kept] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<KeptResults: {len(self._kept)} documents, {_size(self._kept.values())} bytes>"

    # ---- keeping

    async def keep(self, identity: str, tool: str, document: Document) -> Kept | None:
        """None where it cannot be kept: there is no room for it, or no disk."""
        self.sweep()
        size = len(document.data)
        in_memory = size + _size(self._in_memory()) <= self._memory_bytes
        if not in_memory and size > self._disk_bytes:
            return None
        expires = asyncio.get_running_loop().time() + self._seconds
        kept = Kept(secrets.token_urlsafe(24), identity, tool, document.media_type, size, expires)
        if in_memory:
            kept.data = document.data
        else:
            kept.descriptor = await self._spill(document.data)
        if self._closed or (kept.data is None and kept.descriptor < 0):
            kept.close()
            return None
        self._kept[kept.id] = kept
        self._make_room()
        self._wake_later()
        return kept

    async def _spill(self, data: bytes) -> int:
        """Write it in a thread; a caller who gives up leaves no open file behind."""
        writing = asyncio.get_running_loop().run_in_executor(None, self._write, data)
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            writing.add_done_callback(_discard)
            raise

    def _write(self, data: bytes) -> int:
        """The descriptor of a file that has no name any more, or -1."""
        try:
            assert self._folder is not None
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._folder) as file:
                file.write(data)
                file.flush()
                return os.dup(file.fileno())
        except OSError as problem:
            _log.warning("the rest of a large result is not kept: %s", problem)
            return -1

    def _in_memory(self) -> list[Kept]:
        return [kept for kept in self._kept.values() if kept.data is not None]

    def _on_disk(self) -> list[Kept]:
        return [kept for kept in self._kept.values() if kept.data is None]

    def _make_room(self) -> None:
        while _size(on_disk := self._on_disk()) > self._disk_bytes:
            self._drop(_oldest_of_most(on_disk))
        while len(self._kept) > self._most:
            self._drop(_oldest_of_most(list(self._kept.values())))

    # ---- reading

    def read(self, identity: str, uri: str, offset: int = 0, limit: int | None = None) -> Page:
        """One page, by a URI (its own `?offset=` counts) or by a bare id.

        Raises NotFound; what belongs to somebody else is not found either.
        """
        self.sweep()
        address = _ADDRESS.fullmatch(uri)
        kept = self._kept.get(address[1]) if address is not None else None
        if address is None or kept is None or kept.identity != identity:
            raise NotFound(f"{uri} (the rest of a large result is kept for {self._seconds / 60:.0f} minutes)")
        start = min(max(0, int(address[2]) if address[2] is not None else offset), kept.size)
        length = max(4, min(limit or self._page_bytes, self._page_bytes))
        piece = kept.piece(start, length)
        whole = piece.lstrip(_CONTINUATIONS)
        text = whole.decode(errors="ignore")
        begin = start + len(piece) - len(whole)
        return Page(kept.uri, kept.media_type, text, begin, begin + len(text.encode()), kept.size)

    def list(self, identity: str) -> "list[Kept]":
        """What this identity may read, oldest first."""
        self.sweep()
        return [kept for kept in self._kept.values() if kept.identity == identity]

    # ---- forgetting

    def sweep(self) -> None:
        """Forget what has expired."""
        now = asyncio.get_running_loop().time()
        for kept in [kept for kept in self._kept.values() if kept.expires <= now]:
            self._drop(kept)

    def _wake_later(self) -> None:
        """Documents expire also while nothing happens."""
        if self._timer is None and self._kept:
            first = min(kept.expires for kept in self._kept.values())
            self._timer = asyncio.get_running_loop().call_at(first, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self.sweep()
        self._wake_later()

    def _drop(self, kept: Kept) -> None:
        del self._kept[kept.id]
        kept.close()

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for kept in tuple(self._kept.values()):
            self._drop(kept)


_CONTINUATIONS = bytes(range(0x80, 0xC0))
"""What a character cut in two goes on with."""


def _size(documents: Iterable[Kept]) -> int:
    return sum(kept.size for kept in documents)


def _oldest_of_most(documents: list[Kept]) -> Kept:
    """The oldest document of the identity that keeps most: nobody pushes out anybody else's."""
    shares: dict[str, int] = {}
    for kept in documents:
        shares[kept.identity] = shares.get(kept.identity, 0) + kept.size
    greedy = max(shares, key=lambda identity: shares[identity])
    return next(kept for kept in documents if kept.identity == greedy)


def _discard(writing: asyncio.Future[int]) -> None:
    if not writing.cancelled() and writing.exception() is None and writing.result() >= 0:
        os.close(writing.result())
