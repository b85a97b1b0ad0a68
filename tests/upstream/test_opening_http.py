"""A server over HTTP, from its entry in a configuration to a session."""

import asyncio
from pathlib import Path

from loopback import PATIENCE
from mcp_site import McpSite
from plait.config.model import HttpServer
from plait.upstream.client import Listener
from plait.upstream.opening import Behalf
from plait.upstream.opening_http import HttpOpener, credentials

URL = "https://mcp.example/"


async def behalf() -> Behalf:
    return Behalf({}, "2025-06-18")


def test_a_token_becomes_a_bearer_unless_there_is_an_authorization() -> None:
    assert credentials(HttpServer(url=URL, auth="t")) == {"Authorization": "Bearer t"}
    assert credentials(HttpServer(url=URL, auth="t", headers={"X": "y"})) == {
        "X": "y",
        "Authorization": "Bearer t",
    }
    given = {"authorization": "Basic z"}
    assert credentials(HttpServer(url=URL, auth="t", headers=given)) == given
    assert credentials(HttpServer(url=URL)) == {}


async def test_a_server_is_greeted_for_its_client_and_its_instructions_are_kept(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    async with asyncio.timeout(PATIENCE), McpSite() as site:
        server = HttpServer(name="far", url=site.mcp, auth="t")
        opener = HttpOpener(server, environ)
        assert opener.instructions == ""
        link = await opener.open(Listener(), behalf())
        await link.aclose()
        (hello,) = site.sent("initialize")
        assert isinstance(hello["params"], dict)
        assert hello["params"]["protocolVersion"] == "2025-06-18"
        assert site.received[0].headers["authorization"] == "Bearer t"
    assert HttpOpener(server, environ).instructions == "be kind"


async def test_nothing_is_sent_before_there_is_a_client(tmp_path: Path) -> None:
    known: asyncio.Future[Behalf] = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(PATIENCE), McpSite() as site:
        opener = HttpOpener(HttpServer(name="far", url=site.mcp), {"XDG_CACHE_HOME": str(tmp_path)})
        opening = asyncio.get_running_loop().create_task(opener.open(Listener(), known))
        await asyncio.sleep(0)
        assert site.connections == 0
        known.set_result(await behalf())
        await (await opening).aclose()
