import asyncio
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from msgspec import json

from loopback import OURS, Handler, Received, Site, always, client, moved, plain
from plait.errors import ExecutionFailed, PermissionDenied
from plait.outbound.requests import Limits
from plait.outbound.urls import UrlPolicy
from plait.providers.function import FunctionProvider
from plait.providers.tools.web import Fetched, WebTools


@asynccontextmanager
async def tools(
    policy: UrlPolicy = OURS, limit_bytes: int = 1000, limits: Limits | None = None
) -> AsyncIterator[WebTools]:
    async with client(policy) as http:
        yield WebTools(http, limit_bytes=limit_bytes, limits=limits)


async def fetch_from(handler: Handler, method: str = "GET", **headers: str) -> Fetched:
    async with Site(handler) as site, tools() as web:
        return await web.web_fetch(site.url("/a"), method, headers or None)  # type: ignore[arg-type]


@pytest.mark.requirement("BC-46")
async def test_a_page_comes_back_as_text_with_its_status() -> None:
    page = await fetch_from(
        always(plain("grün".encode("latin-1"), 404, Content_Type="text/plain; charset=latin1"))
    )
    assert (page.status, page.body, page.content_type) == (404, "grün", "text/plain; charset=latin1")
    assert page.url.endswith("/a")
    assert (page.truncated, page.limit_bytes, page.warning) == (False, None, None)


@pytest.mark.requirement("BC-49")
async def test_a_long_body_is_cut_and_the_result_says_so() -> None:
    page = await fetch_from(always(plain("ü".encode() * 1000)))
    assert page.body == "ü" * 500
    assert (page.truncated, page.limit_bytes) == (True, 1000)
    assert page.warning is not None
    assert "1000 bytes" in page.warning
    odd = await fetch_from(always(plain(b"x" + "ü".encode() * 1000)))
    assert odd.body == "x" + "ü" * 499


async def test_a_bomb_is_cut_like_any_long_body() -> None:
    page = await fetch_from(always(plain(zlib.compress(bytes(10_000_000)), Content_Encoding="deflate")))
    assert (len(page.body), page.truncated) == (1000, True)


async def test_the_default_limit_is_ten_mebibytes() -> None:
    async def much(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    async with Site(much) as site, client() as http:
        page = await WebTools(http).web_fetch(site.url())
        assert (len(page.body), page.limit_bytes) == (10 * 1024 * 1024, 10 * 1024 * 1024)


@pytest.mark.parametrize(
    ("content_type", "body"), [("image/png", b"\x89PNG"), ("application/octet-stream", b"\x00\x01\x02\x03")]
)
async def test_binary_content_is_described_and_not_shown(content_type: str, body: bytes) -> None:
    page = await fetch_from(always(plain(body, Content_Type=content_type)))
    assert page.body == ""
    assert page.warning == f"binary content ({content_type}, 4 bytes) is not shown"


async def test_headers_and_method_are_sent_and_useful_headers_come_back() -> None:
    answer = plain(b"", Retry_After="3", Set_Cookie="a=b", X_Noise="z")
    async with Site(always(answer)) as site, tools() as web:
        page = await web.web_fetch(site.url(), "POST", {"X-A": "b"})
        assert (site.received[0].method, site.received[0].headers["x-a"]) == ("POST", "b")
        assert page.headers == {"retry-after": "3"}
        head = await web.web_fetch(site.url(), "HEAD")
        assert head.headers["x-noise"] == "z"
        assert "set-cookie" not in head.headers


async def test_headers_that_are_no_text_fit_into_json() -> None:
    answer = plain(b"hello", ETag="?").replace(b"text/plain", b"text/plain; x=\xff").replace(b"?", b"\xff")
    page = await fetch_from(always(answer))
    assert json.decode(json.encode(page), type=Fetched) == page
    assert page.headers == {"etag": "\ufffd"}


async def test_a_redirect_is_followed_and_its_end_is_told() -> None:
    async def once(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(moved("/b") if received.target == "/a" else plain(b"there"))

    page = await fetch_from(once)
    assert page.url.endswith("/b")
    assert page.body == "there"


@pytest.mark.requirement("K-06", "S1-020")
@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1/", "blocked private IP 127.0.0.1"),
        ("http://169.254.169.254/latest", "blocked cloud metadata endpoint"),
        ("file://a:1/etc/passwd", "only http and https"),
    ],
)
async def test_a_forbidden_url_is_denied(url: str, words: str) -> None:
    async with tools() as web:
        with pytest.raises(PermissionDenied) as caught:
            await web.web_fetch(url)
        assert words in caught.value.reason
        assert caught.value.tool == "web_fetch"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("file:///etc/passwd", "invalid URL"),
        ("example.org", "scheme://host/path"),
        ("http://nowhere.test/", "failed to resolve nowhere.test"),
        ("http://site.test:1/", "cannot be reached"),
        ("http://u:s3cret@site.test/", "put credentials into a header"),
    ],
)
async def test_a_url_that_leads_nowhere_is_a_failure_in_words(url: str, words: str) -> None:
    async with tools() as web:
        with pytest.raises(ExecutionFailed, match=words) as caught:
            await web.web_fetch(url)
        assert "s3cret" not in str(caught.value)


async def test_a_slow_site_is_a_failure_in_words() -> None:
    async with Site(always(b"")) as site, tools(limits=Limits(total=0.1)) as web:
        with pytest.raises(ExecutionFailed, match=r"longer than the 0\.1 seconds"):
            await web.web_fetch(site.url())


async def test_a_header_that_cannot_be_sent_is_a_failure_in_words() -> None:
    async with tools() as web:
        with pytest.raises(ExecutionFailed, match="Host is set by the client itself"):
            await web.web_fetch("http://site.test/", "GET", {"Host": "a"})


async def test_it_is_a_tool_with_a_schema_and_a_structured_result() -> None:
    async with Site(always(plain(b"hello"))) as site, tools() as web:
        provider = FunctionProvider("builtin", [web.web_fetch])
        (definition,) = await provider.list_tools()
        schema = definition.input_schema
        assert schema["required"] == ["url"]
        assert isinstance(schema["properties"], Mapping)
        assert set(schema["properties"]) == {"url", "method", "headers"}
        result = await provider.call_tool("web_fetch", {"url": site.url()})
        assert not result.is_error
        assert json.decode(json.encode(result.structured))["body"] == "hello"
        refused = await provider.call_tool("web_fetch", {"url": "http://[::1]/"})
        assert refused.is_error
