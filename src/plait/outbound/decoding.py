"""Unpack a compressed body piece by piece: a bomb costs no more memory than one piece."""

import zlib
from collections.abc import Iterator

from plait.outbound.faults import AnswerBroken

PIECE = 64 * 1024
"""The most that is unpacked at once."""
_MOST_MEMBERS = 64
"""Of one gzip stream. Each one copies what follows it: many small ones would cost quadratic time."""
_GZIP, _ZLIB, _RAW = 31, 15, -15


class Identity:
    """A body that is not packed."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield data

    def finish(self) -> None: ...


class Inflater:
    """A body packed with gzip or deflate, once."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._stream: zlib._Decompress | None = None
        self._members = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The pieces that these bytes unpack to. Raises AnswerBroken."""
        while True:
            if self._stream is None or self._stream.eof:
                if not self._begins_with(data):
                    return
                self._stream = self._open(data)
            try:
                piece = self._stream.decompress(data, PIECE)
            except zlib.error:
                raise AnswerBroken("the body is not packed as its Content-Encoding says") from None
            if piece:
                yield piece
            data = self._stream.unused_data or self._stream.unconsumed_tail
            # A full piece may have left more inside zlib, although all input is consumed.
            if not data and len(piece) < PIECE:
                return

    def _begins_with(self, data: bytes) -> bool:
        """Whether another part starts here. Anything else after a part is ignored, as in browsers."""
        return bool(data) and (self._members == 0 or (self._gzip and data[0] == 0x1F))

    def _open(self, data: bytes) -> "zlib._Decompress":
        self._members += 1
        if self._members > _MOST_MEMBERS:
            raise AnswerBroken(f"the body is packed in more than {_MOST_MEMBERS} parts")
        if self._gzip:
            return zlib.decompressobj(_GZIP)
        # "deflate" means zlib's format (RFC 9110 §8.4.1.2), but some servers send it bare.
        return zlib.decompressobj(_ZLIB if data[0] & 0x0F == 8 else _RAW)

    def finish(self) -> None:
        """The bytes are over. Raises AnswerBroken if the stream is not."""
        if self._stream is not None and not self._stream.eof:
            raise AnswerBroken("the packed body ends early")


def decoder(content_encoding: str) -> Identity | Inflater:
    """What opens a body with this Content-Encoding. One layer only: nobody honest packs twice."""
    match content_encoding.strip().lower():
        case "" | "identity":
            return Identity()
        case "gzip" | "x-gzip":
            return Inflater(gzip=True)
        case "deflate":
            return Inflater(gzip=False)
    raise AnswerBroken(
        "the body is packed in a way that we did not ask for; only gzip and deflate are opened"
    )
