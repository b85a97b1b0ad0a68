"""Which era does a server speak? What its answer to `server/discover` says, and how long that is believed.

The two mistakes differ: a server that is wrongly taken for modern fails loudly at the next request, one
that is wrongly taken for a handshake server is silently less than it could be, for ever. So the first
verdict is kept until it is contradicted, the second only for a while, and an answer that says nothing
(silence above all: the server may just be slow) is no verdict.
"""

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder

from plait.session.eras.errors import code_of
from plait.session.exchange import Reply
from plait.session.negotiation import Greeting, fields_of
from plait.wire.address import read_text
from plait.wire.envelope import EMPTY, Fields, open_fields
from plait.wire.modern import (
    HEADER_MISMATCH,
    MISSING_CAPABILITY,
    SERVER_KEY,
    SPOKEN,
    UNSUPPORTED_VERSION,
)
from plait.wire.spec import REVISIONS, Era

BELIEVED = 3600.0
"""Seconds that a server is taken for one of the handshake era without asking again."""

_read_texts = Decoder(list[str]).decode


class Incompatible(Struct, frozen=True):
    """It speaks a modern revision that we do not, and no handshake."""

    versions: tuple[str, ...]


class Reluctant(Struct, frozen=True):
    """It is modern, and refused this request all the same: falling back would hide why."""

    error: Raw


def judge(reply: Reply) -> Greeting | Era | Incompatible | Reluctant:
    """What an answer to `server/discover` says: a modern server's greeting, or Era.HANDSHAKE, or trouble."""
    if reply.error is not None:
        return _judge_error(reply.error)
    fields = fields_of(reply.result)
    mutual = [version for version in _texts(fields.get("supportedVersions")) if version in SPOKEN]
    # Some servers answer anything they do not know with a result; only a list of versions means it.
    return _greeting(fields, mutual[-1]) if mutual else Era.HANDSHAKE


def invites(reply: Reply) -> bool:
    """Is our revision refused by a server that names it among those it speaks? Then it is worth asking once
    more: the client is to select a version of `supported` that it speaks too, and retry (2026-07-28)."""
    if reply.error is None or code_of(reply.error) != UNSUPPORTED_VERSION:
        return False
    return any(version in SPOKEN for version in _supported(reply.error))


def _supported(error: Raw) -> list[str]:
    return _texts(fields_of(open_fields(error).get("data")).get("supported"))


def _judge_error(error: Raw) -> Era | Incompatible | Reluctant:
    code = code_of(error)
    if code in (HEADER_MISMATCH, MISSING_CAPABILITY):
        return Reluctant(error)
    if code != UNSUPPORTED_VERSION:
        return Era.HANDSHAKE
    supported = _supported(error)
    if any(REVISIONS.get(version) is Era.HANDSHAKE for version in supported):
        return Era.HANDSHAKE
    if any(version in SPOKEN for version in supported):
        return Reluctant(error)
    return Incompatible(tuple(supported))


def _greeting(fields: Fields, revision: str) -> Greeting:
    # Old drafts had `serverInfo` at the top.
    info = fields_of(fields.get("_meta")).get(SERVER_KEY) or fields.get("serverInfo")
    try:
        instructions = read_text(fields.get("instructions", EMPTY))
    except (MsgspecError, UnicodeDecodeError):
        instructions = ""
    return Greeting(revision, fields_of(fields.get("capabilities")), fields_of(info), instructions)


def _texts(raw: Raw | None) -> list[str]:
    try:
        return [] if raw is None else _read_texts(raw)
    except (MsgspecError, UnicodeDecodeError):
        return []


class EraMemory:
    """What is known of one server's era, from one start of it to the next."""

    def __init__(self) -> None:
        self._era: Era | None = None
        self._since = 0.0

    def __repr__(self) -> str:
        return f"<EraMemory {self._era.value if self._era is not None else 'nothing'}>"

    def recall(self, now: float) -> Era | None:
        if self._era is Era.HANDSHAKE and now - self._since > BELIEVED:
            return None
        return self._era

    def learn(self, era: Era, now: float) -> None:
        self._era, self._since = era, now

    def forget(self) -> None:
        """It was contradicted."""
        self._era = None
