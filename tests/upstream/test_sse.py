"""Servers of the revision 2024-11-05: found out by how they refuse, and spoken to over two ways."""

import asyncio

import pytest

from loopback import PATIENCE, Received, Site, plain
from mcp_site import STREAM
from old_site import OldSite
from plait.errors import UpstreamBroken, UpstreamError, UpstreamUnavailable
from plait.upstream.client import Listener
from plait.upstream.handshake import McpSession
from plait.upstream.http import HttpTransport


class Ear(Listener):
    def __init__(self) -> None:
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def ended(self, reason: str) -> None:
        self.over.set_result(reason)


async def test_an_older_server_is_found_out_by_its_refusal() -> None:
    async with asyncio.timeout(PATIENCE), OldSite() as site:
        async with await McpSession.connect(HttpTransport(site.sse, {"X-Key": "k"})) as session:
            assert session.protocol_version == "2024-11-05"
            assert await session.call_tool("x") == {}
        there = "/messages?session=7"
        assert site.messages() == [
            ("/sse", "initialize"),
            (there, "initialize"),
            (there, "notifications/initialized"),
            (there, "tools/call"),
        ]
        assert all(received.headers["x-key"] == "k" for received in site.received)
        assert [received.method for received in site.received].count("GET") == 1


async def test_a_server_that_is_called_sse_is_not_tried_otherwise() -> None:
    async with asyncio.timeout(PATIENCE), OldSite() as site:
        async with await McpSession.connect(HttpTransport(site.sse, kind="sse")) as session:
            assert await session.call_tool("x") == {}
        assert [received.method for received in site.received][:2] == ["GET", "POST"]
        assert ("/sse", "initialize") not in site.messages()


async def test_the_end_of_the_stream_is_the_end_of_the_conversation() -> None:
    async with asyncio.timeout(PATIENCE), OldSite() as site:
        ear = Ear()
        async with await McpSession.connect(HttpTransport(site.sse, kind="sse"), listener=ear) as session:
            assert site.stream is not None
            site.stream.transport.abort()
            assert "its event stream is over" in await ear.over
            with pytest.raises(UpstreamUnavailable, match="event stream is over"):
                await session.call_tool("x")


async def test_a_message_that_is_refused_fails_and_the_conversation_goes_on() -> None:
    async with (
        asyncio.timeout(PATIENCE),
        OldSite(refusals={"tools/call": 500}) as site,
        await McpSession.connect(HttpTransport(site.sse, kind="sse"), name="old") as session,
    ):
        with pytest.raises(UpstreamBroken, match="server 'old', tools/call: it answered with HTTP 500"):
            await session.call_tool("x")
        assert await session.client.send_raw("ping") == {}


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (b"event: endpoint\ndata: http://other.example/messages\n\n", "another origin, other.example"),
        (b"event: endpoint\ndata: //other.example/messages\n\n", "another origin, other.example"),
        (b"event: endpoint\ndata: http://a:b@c/\n\n", "is no URL"),
    ],
)
async def test_a_server_cannot_send_us_and_our_credentials_elsewhere(first: bytes, message: str) -> None:
    async with asyncio.timeout(PATIENCE), OldSite(first) as site:
        with pytest.raises(UpstreamBroken, match=message):
            await McpSession.connect(HttpTransport(site.sse, {"X-Key": "hush"}, kind="sse"))
        assert [received.method for received in site.received] == ["GET"]


async def test_a_stream_that_ends_before_it_names_a_place_is_an_error() -> None:
    async def end(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + b"0\r\n\r\n")

    async with asyncio.timeout(PATIENCE), Site(end) as site:
        url = site.url("/sse", host="127.0.0.1")
        with pytest.raises(UpstreamBroken, match="without saying where messages go"):
            await McpSession.connect(HttpTransport(url, kind="sse"))


@pytest.mark.parametrize("status", [400, 404, 405])
@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_what_is_no_server_of_either_kind_says_what_it_answered(status: int, kind: str) -> None:
    async def refuse(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(plain(b"", status))

    async with asyncio.timeout(PATIENCE), Site(refuse) as site:
        url = site.url("/x", host="127.0.0.1")
        transport = HttpTransport(url, kind="sse" if kind == "sse" else "http")
        with pytest.raises(UpstreamError, match=f"HTTP {status}"):
            await McpSession.connect(transport)
        assert len(site.received) == (2 if kind == "http" else 1)
