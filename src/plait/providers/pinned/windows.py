"""Windows over the contents of a resource: which bytes of which block are in one, and what comes next.

Sizes and offsets are bytes: of a text in UTF-8, of anything else in the base64 that it comes in. What is
cut in the middle of a character is read with U+FFFD in its place.
"""

from collections.abc import Iterator, Sequence

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder

from plait.wire.address import read_text
from plait.wire.envelope import Fields

DEFAULT_BYTES = 25_000


class _ReadResult(Struct):
    contents: list[Raw]


_read_result = Decoder(_ReadResult).decode
_read_fields = Decoder(Fields).decode


class Block(Struct, frozen=True):
    """One entry of a resource's contents."""

    whole: Raw
    """As the server sent it."""
    kind: str
    """`text` or `base64`."""
    mime: str | None
    data: bytes


class Piece(Struct, frozen=True):
    """The part of a block that lies in a window."""

    index: int
    start: int
    end: int


def blocks_of(result: Raw) -> list[Block]:
    """Raises MsgspecError if this is no result of reading a resource."""
    return [_block(each) for each in _read_result(result).contents]


def _block(whole: Raw) -> Block:
    fields = _read_fields(whole)
    mime = _text(fields, "mimeType")
    if "blob" in fields:
        return Block(whole, "base64", mime, (_text(fields, "blob") or "").encode())
    return Block(whole, "text", mime, (_text(fields, "text") or "").encode())


def _text(fields: Fields, name: str) -> str | None:
    try:
        return read_text(fields[name])
    except (KeyError, MsgspecError):
        return None


def pieces(sizes: Sequence[int], start: int, limit: int) -> Iterator[Piece]:
    """What lies in the window of `limit` bytes from `start` on. An empty block lies where it stands."""
    end, position = start + limit, 0
    for index, size in enumerate(sizes):
        first, last = max(start, position), min(end, position + size)
        if first < last or (size == 0 and start <= position < end):
            yield Piece(index, first - position, last - position)
        position += size


def following(sizes: Sequence[int], end: int) -> int | None:
    """Where to read on after `end`; None if that is all."""
    position = 0
    for size in sizes:
        position += size
        if position > end or (size == 0 and position == end):
            return end
    return None


def read_window(blocks: Sequence[Block], start_offset: int, max_bytes: int) -> dict[str, object]:
    """The bytes from an offset on, over all parts as if they were one (BD-23)."""
    sizes = [len(block.data) for block in blocks]
    cut = list(pieces(sizes, start_offset, max_bytes))
    return {
        "window": {"start_offset": start_offset, "max_bytes": max_bytes},
        "parts": [_part(blocks[piece.index], piece) for piece in cut],
        "total_parts": len(blocks),
        "next_offset": following(sizes, start_offset + max_bytes),
    }


def _part(block: Block, piece: Piece) -> dict[str, object]:
    return {
        "kind": block.kind,
        "mime": block.mime,
        block.kind: _slice(block, piece),
        "total_bytes": len(block.data),
        "bytes_returned": piece.end - piece.start,
    }


def read_blocks(
    blocks: Sequence[Block], start_block: int, start_offset: int, max_bytes: int
) -> dict[str, object]:
    """Blocks from one on, whole ones as they are, until the budget is spent (BD-24)."""
    rest = blocks[start_block:]
    sizes = [len(block.data) for block in rest]
    cut = list(pieces(sizes, start_offset, max_bytes))
    return {
        "window": {"start_block": start_block, "start_offset": start_offset, "max_bytes": max_bytes},
        "blocks": [_whole_or_truncated(rest[piece.index], piece, start_block) for piece in cut],
        "total_blocks": len(blocks),
        "next": _next(sizes, start_block, following(sizes, start_offset + max_bytes)),
    }


def _whole_or_truncated(block: Block, piece: Piece, start_block: int) -> object:
    if piece.end - piece.start == len(block.data):
        return block.whole
    return {
        "kind": "truncated",
        "block_index": start_block + piece.index,
        "started_at": piece.start,
        "ended_at": piece.end,
        "full_size": len(block.data),
        "content": _slice(block, piece),
    }


def _slice(block: Block, piece: Piece) -> str:
    return block.data[piece.start : piece.end].decode(errors="replace")


def _next(sizes: Sequence[int], start_block: int, offset: int | None) -> dict[str, int] | None:
    """The block and the offset in it that this many bytes lead to."""
    if offset is None:
        return None
    index = 0
    while sizes[index] and offset >= sizes[index]:
        offset -= sizes[index]
        index += 1
    return {"start_block": start_block + index, "start_offset": offset}
