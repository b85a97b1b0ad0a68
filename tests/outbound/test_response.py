import asyncio
import gzip
import tracemalloc
import zlib

import pytest

from loopback import (
    Handler,
    Received,
    Site,
    always,
    client,
    fetch,
    moved,
    plain,
)
from plait.outbound.faults import (
    AnswerBroken,
    OutboundError,
    TooLarge,
    TooSlow,
)
from plait.outbound.requests import Limits
from plait.outbound.response import Response


async def size_until_too_large(response: Response) -> tuple[int, str]:
    """How much of a body comes before it is cut, and what is said then."""
    size = 0
    try:
        async for piece in response.pieces():
            size += len(piece)
    except TooLarge as problem:
        return size, str(problem)
    return size, "all of it"


def bomb(coding: str, megabytes: int = 1024) -> bytes:
    """A stream that unpacks to that many megabytes of zeros, made by saying one of them again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, {"gzip": 31, "deflate": 15}[coding])
    start = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + again * (megabytes - 1)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_bomb_is_cut_and_costs_little_memory(coding: str) -> None:
    data = plain(bomb(coding), Content_Encoding=coding)
    async with Site(always(data)) as site, client(limits=Limits(body_bytes=8 << 20)) as http:
        tracemalloc.start()
        try:
            async with http.open("GET", site.url()) as response:
                size, words = await size_until_too_large(response)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert (size, words) == (8 << 20, "the body from site.test is longer than 8388608 bytes")
        assert peak < 16 << 20


async def test_the_loop_runs_on_while_a_bomb_is_unpacked() -> None:
    async with (
        Site(always(plain(bomb("gzip", 64), Content_Encoding="gzip"))) as site,
        client(limits=Limits(body_bytes=None)) as http,
    ):
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        counting = asyncio.get_running_loop().create_task(count())
        async with http.open("GET", site.url()) as response:
            with pytest.raises(AnswerBroken, match="ends early"):
                async for _ in response.pieces():
                    pass
        counting.cancel()
        assert turns > 500


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip"])
async def test_a_packing_that_was_not_asked_for_is_refused(coding: str) -> None:
    async with Site(always(plain(b"x", Content_Encoding=coding))) as site, client() as http:
        with pytest.raises(AnswerBroken, match="only gzip and deflate"):
            await fetch(http, site.url())
        assert site.received[0].headers["accept-encoding"] == "gzip, deflate"


async def test_a_packed_body_is_unpacked() -> None:
    async with (
        Site(always(plain(gzip.compress(b"hello"), Content_Encoding="gzip"))) as site,
        client() as http,
    ):
        assert await fetch(http, site.url()) == (200, b"hello")


async def test_an_endless_body_is_cut() -> None:
    async def endless(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    async with (
        Site(endless) as site,
        client(limits=Limits(wire_bytes=1_000_000)) as http,
        http.open("GET", site.url()) as response,
    ):
        assert await size_until_too_large(response) == (1_000_000, "site.test sent more than 1000000 bytes")


async def test_a_body_that_fits_exactly_is_not_cut() -> None:
    async with (
        Site(always(plain(b"x" * 1000))) as site,
        client(limits=Limits(wire_bytes=1000, body_bytes=1000)) as http,
    ):
        assert await fetch(http, site.url()) == (200, b"x" * 1000)


def trickle(head: bytes, drop: bytes) -> Handler:
    """The head, and then one drop every 20 ms."""

    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            await asyncio.sleep(0.02)
            writer.write(drop)
            await writer.drain()

    return answer


@pytest.mark.parametrize(
    ("handler", "limits", "words"),
    [
        (trickle(b"HTTP/1.1 200 OK\r\n\r\n", b"x"), Limits(total=0.3), "longer than the 0.3 seconds"),
        (trickle(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"), Limits(total=0.3), "longer than the 0.3 seconds"),
        (
            trickle(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 C\r\n\r\n"),
            Limits(total=0.3),
            "longer than",
        ),
        (always(b""), Limits(idle=0.1, total=None), "nothing came for a while"),
        (
            always(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"),
            Limits(idle=0.1),
            "nothing came for a while",
        ),
    ],
    ids=["slow body", "slow head", "endless interim answers", "no answer", "half a body"],
)
async def test_a_slow_answer_ends_in_time(handler: Handler, limits: Limits, words: str) -> None:
    async with Site(handler) as site, client(limits=limits) as http:
        with pytest.raises(TooSlow, match=words):
            await fetch(http, site.url())


async def test_the_time_of_all_redirects_counts_together() -> None:
    async def redirect(received: Received, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        writer.write(moved("/again"))

    async with Site(redirect) as site, client(limits=Limits(total=0.3, hops=1000)) as http:
        with pytest.raises(TooSlow):
            await fetch(http, site.url())


async def test_a_deadline_of_the_callers_own_stays_the_callers_own() -> None:
    async with Site(always(plain())) as site, client() as http:
        with pytest.raises(TimeoutError):
            async with http.open("GET", site.url()):
                raise TimeoutError


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"garbage\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n",
        b"\x16\x03\x01",
    ],
    ids=["short", "half a chunk", "bad chunk", "garbage", "nothing", "long header", "NUL", "TLS"],
)
async def test_what_is_no_answer_is_told_in_our_words(answer: bytes) -> None:
    async def once(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with Site(once) as site, client() as http:
        with pytest.raises(AnswerBroken) as caught:
            await fetch(http, site.url("/?token=s3cret"))
        assert "s3cret" not in str(caught.value)
        assert caught.value.__cause__ is None


async def test_a_head_that_is_too_long_is_refused() -> None:
    head = "".join(f"X-{number}: {'y' * 1000}\r\n" for number in range(100))
    async with Site(always(f"HTTP/1.1 200 OK\r\n{head}\r\n".encode())) as site, client() as http:
        with pytest.raises(TooLarge, match="the headers of"):
            await fetch(http, site.url())


async def test_no_error_repeats_a_secret_of_the_request() -> None:
    async with Site(always(b"")) as site, client(limits=Limits(idle=0.1)) as http:
        for url in (
            site.url("/?s3cret"),
            "http://nowhere.test/?s3cret",
            "http://127.0.0.1/s3cret",
            "http://s3cret@a/",
        ):
            with pytest.raises(OutboundError) as caught:
                await fetch(http, url, headers={"Authorization": "s3cret"})
            assert "s3cret" not in f"{caught.value!r}"
