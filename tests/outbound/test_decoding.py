import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as some

from plait.outbound.decoding import PIECE, Inflater, decoder
from plait.outbound.faults import AnswerBroken


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    " GZIP ": gzip.compress,
}


def unpack(coding: str, chunks: list[bytes]) -> bytes:
    unpacking = decoder(coding)
    body = b"".join(piece for chunk in chunks for piece in unpacking.feed(chunk))
    unpacking.finish()
    return body


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@given(some.sampled_from(sorted(PACKERS)), some.binary(max_size=2000), some.integers(1, 50))
def test_what_was_packed_comes_back_however_it_is_cut(coding: str, data: bytes, size: int) -> None:
    assert unpack(coding, cut(PACKERS[coding](data), size)) == data


def test_deflate_is_opened_with_and_without_its_header() -> None:
    assert unpack("deflate", [raw_deflate(b"hello")]) == b"hello"


@pytest.mark.parametrize("size", [PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 258])
def test_nothing_stays_inside_when_a_piece_is_exactly_full(size: int) -> None:
    unpacking = decoder("gzip")
    assert b"".join(unpacking.feed(gzip.compress(bytes(size)))) == bytes(size)
    unpacking.finish()


def test_a_body_that_is_not_packed_passes() -> None:
    for coding in ("", "identity"):
        assert unpack(coding, [b"a", b"b"]) == b"ab"


def test_parts_of_gzip_follow_each_other_also_at_the_border_of_chunks() -> None:
    one, two = gzip.compress(b"one"), gzip.compress(b"two")
    assert unpack("gzip", [one + two]) == b"onetwo"
    assert unpack("gzip", [one, two]) == b"onetwo"


def test_garbage_after_the_end_is_ignored() -> None:
    assert unpack("gzip", [gzip.compress(b"a") + b"\x00\x00", b"\x00" * 100]) == b"a"
    assert unpack("deflate", [zlib.compress(b"a") + b"\x1f\x8b", b"more"]) == b"a"


def test_thousands_of_tiny_parts_are_refused() -> None:
    with pytest.raises(AnswerBroken, match="more than 64 parts"):
        unpack("gzip", [gzip.compress(b"") * 3000])


@pytest.mark.parametrize(
    ("coding", "data"),
    [("gzip", b"plain text"), ("gzip", gzip.compress(b"hello")[:-3]), ("deflate", b"\x78\x9c\xff\xff\xff")],
    ids=["not packed", "cut", "garbage"],
)
def test_a_body_that_is_not_what_it_says_is_broken(coding: str, data: bytes) -> None:
    with pytest.raises(AnswerBroken):
        unpack(coding, [data])


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, gzip", "gzip, deflate", "rot13"])
def test_a_packing_that_we_did_not_ask_for_is_refused(coding: str) -> None:
    with pytest.raises(AnswerBroken, match="only gzip and deflate"):
        decoder(coding)


def test_an_empty_body_needs_no_unpacking() -> None:
    assert unpack("gzip", []) == b""


def test_a_bomb_costs_no_more_memory_than_a_piece() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    bomb = start + again * 200
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        size = sum(len(piece) for piece in Inflater(gzip=True).feed(bomb))
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert size == 201 << 20
    assert peak < 4 * PIECE + 2 * len(bomb)
