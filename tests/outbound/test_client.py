import asyncio
import subprocess
import sys
from contextlib import aclosing

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
from plait.errors import LocalProtocolError
from plait.outbound.faults import AnswerBroken, OutboundError, UrlRefused
from plait.outbound.requests import Limits
from plait.outbound.urls import UrlPolicy


def by_target(**answers: bytes) -> Handler:
    """`/a` answers with the bytes of `a`; anything else says hello."""

    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answers.get(received.target.strip("/"), plain()))

    return answer


async def test_a_request_is_answered_with_status_headers_and_body() -> None:
    async with Site(always(plain(b"hello", 418, X_Tea="pot"))) as site, client() as http:
        async with http.open("GET", site.url("/a?b#c"), headers={"X-A": "b"}) as response:
            assert (response.status, response.headers["x-tea"]) == (418, "pot")
            assert response.url == site.url("/a?b")
            assert await response.read() == b"hello"
        (received,) = site.received
        assert (received.method, received.target) == ("GET", "/a?b")
        assert received.headers["host"] == f"site.test:{site.port}"
        assert received.headers["x-a"] == "b"
        assert received.headers["user-agent"].startswith("plait/")


async def test_a_body_is_sent_as_it_is() -> None:
    async with Site(always(plain())) as site, client() as http:
        await fetch(http, site.url(), "POST", body=b"{}", headers={"Content-Type": "application/json"})
        assert (site.received[0].body, site.received[0].headers["content-type"]) == (
            b"{}",
            "application/json",
        )


async def test_a_connection_is_used_again_and_asked_for_its_address_again() -> None:
    judged = []

    class Watching(UrlPolicy, frozen=True, kw_only=True):
        def judge_address(self, host: str, address: object) -> None:
            judged.append(f"{host} at {address}")

    async with Site(always(plain())) as site, client(Watching()) as http:
        for _ in range(3):
            await fetch(http, site.url())
        assert site.connections == 1
    assert judged == ["site.test at 127.0.0.1"] * 4  # when it was resolved, and at each use


async def test_events_arrive_while_the_answer_is_still_coming() -> None:
    told = asyncio.Event()

    async def two_events(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        await told.wait()
        writer.write(b"data: 2\n\n")
        await writer.drain()
        writer.close()

    async with (
        Site(two_events) as site,
        client(limits=Limits(total=None)) as http,
        http.open("POST", site.url(), body=b"{}") as response,
        aclosing(response.pieces()) as pieces,
    ):
        assert await anext(pieces) == b"data: 1\n\n"
        told.set()
        assert await anext(pieces) == b"data: 2\n\n"


async def test_leaving_an_endless_answer_closes_its_connection() -> None:
    gone = asyncio.Event()

    async def endless(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nfirst")
        try:
            await writer.drain()
            while not writer.is_closing():
                writer.write(b"more")
                await writer.drain()
                await asyncio.sleep(0)
        finally:
            gone.set()

    async with Site(endless) as site, client() as http:
        async with http.open("GET", site.url()) as response:
            async for piece in response.pieces():
                assert piece.startswith(b"first")
                break
        await gone.wait()


async def test_cookies_are_not_kept() -> None:
    async with Site(always(plain(Set_Cookie="a=b; Path=/"))) as site, client() as http:
        await fetch(http, site.url())
        await fetch(http, site.url())
        assert all("cookie" not in received.headers for received in site.received)


async def test_the_environment_names_no_proxy_and_no_password(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    async with Site(always(plain(b"proxy"))) as proxy, Site(always(plain(b"site"))) as site, client() as http:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        netrc = f"{tmp_path}/netrc"
        with open(netrc, "w", encoding="utf-8") as file:  # noqa: ASYNC230
            file.write("machine site.test login a password b")
        monkeypatch.setenv("NETRC", netrc)
        assert await fetch(http, site.url()) == (200, b"site")
        assert proxy.connections == 0
        assert "authorization" not in site.received[0].headers


async def test_a_closed_client_sends_nothing() -> None:
    async with client() as http:
        await http.aclose()
        with pytest.raises(LocalProtocolError):
            await fetch(http, "http://site.test/")


async def test_closing_the_client_ends_what_is_under_way() -> None:
    asked = asyncio.Event()

    async def never_answer(received: Received, writer: asyncio.StreamWriter) -> None:
        asked.set()

    async with Site(never_answer) as site, client() as http, asyncio.TaskGroup() as group:

        async def wait_for_an_answer() -> None:
            with pytest.raises(OutboundError):
                await fetch(http, site.url())

        group.create_task(wait_for_an_answer())
        await asked.wait()
        await http.aclose()


def test_aiohttp_is_not_loaded_before_the_first_request() -> None:
    code = (
        "import sys, plait.outbound.client, plait.providers.tools.web as web, plait.outbound.urls as urls;"
        "web.WebTools(plait.outbound.client.HttpClient(urls.UrlPolicy()));"
        "urls.UrlPolicy().judge('http://example.org/');"
        "print({'aiohttp', 'yarl', 'idna'} & set(sys.modules))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert output.stdout.strip() == "set()"


# ---- redirects


@pytest.mark.requirement("K-06")
@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://other.test:{port}/",
        "//127.1:{port}/",
        "http://[::1]:{port}/",
        "http://169.254.169.254/latest/meta-data/",
        "http://metadata.google.internal/",
        "http://2130706433:{port}/",
        "http://site.test@127.0.0.1:{port}/",
        "http://127.0.0.1:{port}\\@site.test/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:{port}/",
        "http:127.0.0.1:{port}/",
        "http://１２７.0.0.1:{port}/",
    ],
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_a_forbidden_place_is_not_followed(location: str, status: int) -> None:
    async def redirect(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(moved(location.format(port=site.port), status))

    async with Site(redirect) as site, client() as http:
        with pytest.raises(UrlRefused):
            await fetch(http, site.url())
        assert len(site.received) == 1


async def test_a_redirect_is_followed_to_its_end_and_the_answer_says_where_that_was() -> None:
    answers = by_target(a=moved("/b", 301), b=moved("c", 308))
    async with Site(answers) as site, client() as http, http.open("GET", site.url("/a")) as response:
        assert (response.status, response.url) == (200, site.url("/c"))


async def test_redirects_in_a_circle_end() -> None:
    async with Site(always(moved("/again"))) as site, client(limits=Limits(hops=3)) as http:
        with pytest.raises(AnswerBroken, match="more than 3 redirects"):
            await fetch(http, site.url())
        assert len(site.received) == 4


async def test_without_hops_a_redirect_is_an_answer_like_any_other() -> None:
    async with Site(always(moved("http://127.0.0.1/"))) as site, client(limits=Limits(hops=0)) as http:
        assert await fetch(http, site.url()) == (302, b"")


async def test_a_redirect_without_a_location_is_an_answer_too() -> None:
    async with Site(always(plain(b"where?", 302))) as site, client() as http:
        assert await fetch(http, site.url()) == (302, b"where?")


@pytest.mark.requirement("K-06")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_credentials_do_not_follow_to_another_origin(status: int) -> None:
    secrets = {"Authorization": "Bearer s3cret", "X-Api-Key": "s3cret", "Cookie": "s3cret"}
    async with (
        Site(always(plain())) as other,
        Site(always(moved(other.url(host="site.test"), status))) as site,
        client() as http,
    ):
        await fetch(http, site.url(), headers={**secrets, "Accept": "text/html"})
        assert "s3cret" in str(site.received[0].headers)
        assert "s3cret" not in str(other.received[0].headers)
        assert other.received[0].headers["accept"] == "text/html"


@pytest.mark.requirement("K-06")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_body_does_not_follow_to_another_origin(status: int) -> None:
    async with (
        Site(always(plain())) as other,
        Site(always(moved(other.url(host="site.test"), status))) as site,
        client() as http,
    ):
        try:
            await fetch(http, site.url(), "POST", body=b"s3cret")
        except AnswerBroken:
            assert other.connections == 0
        assert all((received.method, received.body) == ("GET", b"") for received in other.received)
