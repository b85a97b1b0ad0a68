import asyncio

from plait.providers.tools.captured import Captured


def captured(*chunks: bytes, keep: int = 10, flood: int = 1000) -> tuple[Captured, list[str]]:
    told: list[str] = []
    stream = Captured(keep, flood, lambda: told.append("flood"))
    for chunk in chunks:
        stream.data_received(chunk)
    return stream, told


async def test_little_output_is_kept_whole() -> None:
    stream, told = captured(b"abc", b"defg", b"hij")
    assert (stream.text, stream.cut, told) == ("abcdefghij", 0, [])


async def test_of_much_the_start_and_the_end_are_kept_and_the_rest_is_counted() -> None:
    stream, _ = captured(b"12345", *[b"x"] * 90, b"67890")
    assert stream.text == "12345\n[… 90 bytes cut …]\n67890"
    assert stream.cut == 90


async def test_one_chunk_is_cut_as_many_are() -> None:
    stream, _ = captured(b"12345" + b"x" * 90 + b"67890")
    assert stream.text == "12345\n[… 90 bytes cut …]\n67890"


async def test_a_character_that_the_cut_goes_through_is_left_out() -> None:
    stream, _ = captured("ééé".encode() + b"x" * 20 + "ééé".encode())
    assert stream.text == "éé\n[… 22 bytes cut …]\néé"


async def test_output_that_is_not_text_is_shown_as_far_as_it_is() -> None:
    stream, _ = captured(b"a\xffb")
    assert stream.text == "a\ufffdb"


async def test_a_flood_is_told() -> None:
    _, told = captured(b"x" * 999, flood=1000)
    assert told == []
    _, told = captured(b"x" * 999, b"xx", flood=1000)
    assert told == ["flood"]


async def test_the_end_is_told_once() -> None:
    stream, _ = captured(b"x")
    assert not stream.ended.done()
    stream.connection_lost(None)
    stream.connection_lost(OSError())
    await asyncio.wait_for(stream.ended, 1)


async def test_memory_stays_bounded() -> None:
    stream, _ = captured(keep=1000, flood=10**9)
    for _ in range(10_000):
        stream.data_received(b"y" * 997)
    assert len(stream._head) + len(stream._tail) <= 3000
    assert stream.cut == 10_000 * 997 - 1000
