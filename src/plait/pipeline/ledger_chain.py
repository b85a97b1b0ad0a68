"""The chain of an audit file: how a record is sealed into a line, and how a line is checked.

A line is `{"v":1,"seq":N,"prev":"P", … ,"hash":"H"}`. H is the first half of an HMAC-SHA256 over the
line up to it, P is the H of the line before. So a line that is changed, moved, added or taken out
shows, and nobody without the key can repair it.

What a chain alone cannot show is a missing end. The second half of the last line's HMAC, its `check`,
is therefore written into the register, and nowhere else: nobody can wind the register back with what
can be read in the files.
"""

import hashlib
import hmac
import re

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder

VERSION = 1
START = b"0" * 32
"""What the first line of a stream has for the hash before it."""
SLOT = 128
"""Bytes of one entry of the register. A divisor of every page size, so that a write is never torn."""

_TAIL = b',"hash":"%b"}\n'
_TAIL_LENGTH = len(_TAIL % START)


class Key:
    """What seals the chain. One secret, and for each purpose a key of its own made from it."""

    def __init__(self, secret: bytes) -> None:
        self.id = hmac.digest(secret, b"plait audit: id", "sha256")[:8].hex()
        """Tells keys apart, and nothing else about them."""
        self._chain = _Mac(hmac.digest(secret, b"plait audit: chain", "sha256"))
        self._arguments = _Mac(hmac.digest(secret, b"plait audit: arguments", "sha256"))

    def __repr__(self) -> str:
        return f"<Key {self.id}>"

    def seal(self, body: bytes) -> tuple[bytes, bytes]:
        """The hash of a line, and its check."""
        digest = self._chain(body).encode()
        return digest[:32], digest[32:]

    def line(self, seq: int, prev: bytes, record: bytes) -> tuple[bytes, bytes, bytes]:
        """The whole line for a record (a JSON object), its hash and its check.

        Written out rather than composed: this is done twice for every call.
        """
        body = b'{"v":1,"seq":%d,"prev":"%b",%b' % (seq, prev, record[1:-1])
        inner, outer = self._chain.inner.copy(), self._chain.outer.copy()
        inner.update(body)
        outer.update(inner.digest())
        digest = outer.hexdigest().encode()
        return b'%b,"hash":"%b"}\n' % (body, digest[:32]), digest[:32], digest[32:]

    def digest(self, arguments: bytes) -> str:
        """A name for a call's arguments: the same for the same, and no way back."""
        return self._arguments(arguments)[:32]


class _Mac:
    """HMAC-SHA256 with one key (RFC 2104). Its two halves begun once, it takes half of hmac's own time."""

    def __init__(self, key: bytes) -> None:
        block = key.ljust(64, b"\0")
        self.inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self.outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def __call__(self, message: bytes) -> str:
        inner = self.inner.copy()
        inner.update(message)
        outer = self.outer.copy()
        outer.update(inner.digest())
        return outer.hexdigest()


class Link(Struct, gc=False):
    """Where in a chain a line stands."""

    seq: int
    prev: str
    hash: bytes = b""
    check: bytes = b""


_read_link = Decoder(Link).decode


def unseal(key: Key, line: bytes) -> Link | None:
    """Where this line stands, if it is one that we sealed."""
    body = line[:-_TAIL_LENGTH]
    hash, check = key.seal(body)
    # Byte for byte: `"hash"` in another spelling, or in capitals, is not what we wrote.
    if line[-_TAIL_LENGTH:] != _TAIL % hash:
        return None
    try:
        link = _read_link(body + b"}")
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    link.hash, link.check = hash, check
    return link


def slot(stream: str, seq: int, check: bytes) -> bytes:
    """An entry of the register: how far a stream has come."""
    entry = b'{"stream":"%b","seq":%d,"check":"%b"}' % (stream.encode(), seq, check)
    return entry.ljust(SLOT - 1) + b"\n"


def first_check(key: Key, stream: str) -> bytes:
    """The check of a stream that has no line yet."""
    return key.seal(b"plait audit: stream %b" % stream.encode())[1]


class Slot(Struct):
    """An entry of the register, as it was read."""

    stream: str
    seq: int
    check: str


_read_slot = Decoder(Slot).decode
_STREAM = re.compile(r"[0-9A-Za-z-]{1,50}")


def read_slot(entry: bytes) -> Slot | None:
    """None for anything that we did not write like this."""
    try:
        found = _read_slot(entry)
        ours = _STREAM.fullmatch(found.stream) is not None
        return found if ours and slot(found.stream, found.seq, found.check.encode()) == entry else None
    except (MsgspecError, UnicodeError, RecursionError):
        return None
