"""Spellings of URLs that try to reach this machine: a listener waits for them, a spy watches connect()."""

import asyncio
import socket
import subprocess
import sys
import urllib.request
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http.client import HTTPException
from pathlib import Path

import pytest

from loopback import ConnectSpy, Names, Received, Site, always, moved, plain
from plait.errors import ToolError
from plait.outbound.addresses import Address
from plait.outbound.client import HttpClient
from plait.outbound.resolver import SystemResolver
from plait.outbound.urls import Refusal, UrlPolicy
from plait.providers.tools.web import WebTools

pytestmark = pytest.mark.e2e

PATIENCE = 20.0

NUMERIC = """
http://127.0.0.1:{port}/
http://127.1:{port}/
http://127.0.1:{port}/
http://2130706433:{port}/
http://0x7f000001:{port}/
http://0x7F.1:{port}/
http://0x7f.0x0.0x0.0x1:{port}/
http://0177.0.0.1:{port}/
http://017700000001:{port}/
http://00000177.1:{port}/
http://127.0.0.1.:{port}/
http://0x7f.1.:{port}/
http://0:{port}/
http://0.0.0.0:{port}/
http://00:{port}/
http://0x0:{port}/
http://127.000.000.001:{port}/
http://127.0x0.00.1:{port}/
http://0b1111111.0.0.1:{port}/
http://+127.0.0.1:{port}/
http://127.0.0.1%00.example.org:{port}/
"""

IPV6 = """
http://[::1]:{port}/
http://[0:0:0:0:0:0:0:1]:{port}/
http://[0000::0001]:{port}/
http://[::]:{port}/
http://[::ffff:127.0.0.1]:{port}/
http://[::ffff:7f00:1]:{port}/
http://[0:0:0:0:0:FFFF:7F00:0001]:{port}/
http://[::ffff:0.0.0.0]:{port}/
http://[::127.0.0.1]:{port}/
http://[::7f00:1]:{port}/
http://[64:ff9b::127.0.0.1]:{port}/
http://[64:ff9b:1::7f00:1]:{port}/
http://[2002:7f00:1::]:{port}/
http://[2001:0:7f00:1::]:{port}/
http://[2001:0:808:808:0:0:80ff:fffe]:{port}/
http://[::ffff:0:127.0.0.1]:{port}/
http://[::1%25lo]:{port}/
http://[::1%lo]:{port}/
http://[fe80::1%25lo]:{port}/
http://[fec0::1]:{port}/
http://[ff02::1]:{port}/
http://[::1]@[::1]:{port}/
http://[::ffff:127.0.0.1%5D]:{port}/
http://::1:{port}/
"""

NAMES = """
http://localhost:{port}/
http://LOCALHOST:{port}/
http://localhost.:{port}/
http://localhost..:{port}/
http://a.localhost:{port}/
http://lOcAlHoSt%2e:{port}/
http://loc%61lhost:{port}/
http://%6c%6f%63%61%6c%68%6f%73%74:{port}/
http://private.test:{port}/
http://several.test:{port}/
http://sixth.test:{port}/
http://alias.test.:{port}/
http://127.0.0.1.private.test:{port}/
http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:{port}/
http://ｌｏｃａｌｈｏｓｔ:{port}/
http://loc\u00adalhost:{port}/
http://local\u200bhost:{port}/
http://loca\u017fhost:{port}/
http://１２７.０.０.１:{port}/
http://①②⑦.0.0.1:{port}/
http://127。0。0。1:{port}/
http://127．0．0．1:{port}/
http://127｡0｡0｡1:{port}/
http://١٢٧.0.0.1:{port}/
http://𝟙𝟚𝟟.𝟘.𝟘.𝟙:{port}/
http://xn--localhost-:{port}/
"""

CONFUSING = """
http://example.org@127.0.0.1:{port}/
http://example.org:80@127.0.0.1:{port}/
http://127.0.0.1:{port}@example.org/
http://example.org%40127.0.0.1:{port}/
http://127.0.0.1:{port}\\@example.org/
http://example.org\\@127.0.0.1:{port}/
http:\\\\127.0.0.1:{port}\\
http:/\\127.0.0.1:{port}/
http:///127.0.0.1:{port}/
http:127.0.0.1:{port}/
http:/127.0.0.1:{port}/
//127.0.0.1:{port}/
http://127.0.0.1:{port}#@example.org/
http://127.0.0.1:{port}?@example.org/
http://127.0.0.1:{port};example.org/
http://127.0.0.1:{port}:80/
http://127.0.0.1:+{port}/
http://127.0.0.1:0{port}/
http://127.0.0.1:\uff11{port}/
HTTP://127.0.0.1:{port}/
hTtP://127.0.0.1:{port}/
ht\ttp://127.0.0.1:{port}/
http://127.0.\t0.1:{port}/
http://127.0.0.1␤:{port}/
http://127.0.0.1:{port}/␤Host:example.org
\x01http://127.0.0.1:{port}/
http://127.0.0.1\u3000:{port}/
http://{{127.0.0.1}}:{port}/
http://<127.0.0.1>:{port}/
http://"127.0.0.1":{port}/
http://127.0.0.1,example.org:{port}/
http://127.0.0.1&@example.org:{port}/
"""

OTHER_SCHEMES = """
file:///etc/passwd
file://127.0.0.1:{port}/
ftp://127.0.0.1:{port}/
gopher://127.0.0.1:{port}/_GET
dict://127.0.0.1:{port}/
ldap://127.0.0.1:{port}/
ws://127.0.0.1:{port}/
tcp://127.0.0.1:{port}/
unix://127.0.0.1:{port}/
jar:http://127.0.0.1:{port}/!/
view-source:http://127.0.0.1:{port}/
url:http://127.0.0.1:{port}/
data:text/plain,hello
javascript:fetch('http://127.0.0.1:{port}/')
"""

METADATA = """
http://169.254.169.254/latest/meta-data/
http://0xa9fea9fe/
http://2852039166/
http://169.254.43518/
http://[::ffff:a9fe:a9fe]/
http://[fd00:ec2::254]/
http://[64:ff9b::a9fe:a9fe]/
http://169.254.170.2/v2/credentials
http://100.100.100.200/
http://192.0.0.192/
http://168.63.129.16/
http://metadata.google.internal/
http://METADATA.google.internal./
http://cloud.test/
"""

GROUPS = (NUMERIC, IPV6, NAMES, CONFUSING, OTHER_SCHEMES, METADATA)


def spellings(groups: Sequence[str] = GROUPS) -> list[str]:
    """One per line; a line break inside of one is written as ␤ and put back here."""
    return [line.replace("␤", "\n") for group in groups for line in group.split("\n") if line]


class Names127(Names):
    """The test's names; the system is asked for localhost only, so that no question leaves this machine."""

    def __init__(self, **more: Sequence[Sequence[str]]) -> None:
        super().__init__(
            private_test=[["127.0.0.1"]],
            several_test=[["93.184.216.34", "127.0.0.1"]],
            sixth_test=[["::ffff:127.0.0.1"]],
            alias_test=[["10.0.0.1"]],
            cloud_test=[["169.254.169.254"]],
            **more,
        )

    async def resolve(self, host: str) -> Sequence[Address]:
        return await (SystemResolver().resolve(host) if host == "localhost" else super().resolve(host))


@asynccontextmanager
async def listeners() -> AsyncIterator[list[Site]]:
    """One port, on both loopback addresses if there are two."""
    async with Site(always(plain(b"reached"))) as first:
        if not socket.has_ipv6:
            yield [first]
            return
        async with Site(always(plain(b"reached")), "::1", first.port) as second:
            yield [first, second]


@pytest.mark.requirement("K-06", "BC-34", "BC-36")
def test_there_are_more_than_sixty_spellings() -> None:
    assert len(set(spellings())) > 120


@pytest.mark.requirement("K-06", "BC-33", "BC-34", "S1-020")
@pytest.mark.parametrize("spelling", spellings())
async def test_no_spelling_reaches_this_machine(spelling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with asyncio.timeout(PATIENCE), listeners() as sites:
        url = spelling.format(port=sites[0].port)
        http = HttpClient(UrlPolicy(), resolver=Names127())
        spy = ConnectSpy(monkeypatch)
        try:
            with pytest.raises(ToolError):
                await WebTools(http).web_fetch(url)
        finally:
            await http.aclose()
        assert spy.addresses == []
        assert all(site.connections == 0 for site in sites)
        assert isinstance(await UrlPolicy().judge_resolved(url, Names127()), Refusal)


@pytest.mark.requirement("K-06")
@pytest.mark.parametrize("spelling", [each for each in spellings() if min(each) >= " "])
async def test_no_redirect_in_any_spelling_reaches_this_machine(
    spelling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one exception, start.test on loopback, opens nothing but itself. Controls fit in no header."""
    names = Names127(start_test=[["127.0.0.1"]])
    async with asyncio.timeout(PATIENCE), listeners() as sites:

        async def redirect(received: Received, writer: asyncio.StreamWriter) -> None:
            writer.write(moved(spelling.format(port=sites[0].port)))

        async with Site(redirect) as start:
            http = HttpClient(UrlPolicy(allowed_domains=("start.test",)), resolver=names)
            spy = ConnectSpy(monkeypatch)
            try:
                with pytest.raises(ToolError):
                    await WebTools(http).web_fetch(start.url(host="start.test"))
            finally:
                await http.aclose()
            # What looks like a path is one, of the site itself; it is asked until the hops are used up.
            assert set(spy.addresses) == {"127.0.0.1"}
            assert all(received.headers["host"].startswith("start.test") for received in start.received)
            assert all(site.connections == 0 for site in sites)


async def test_an_ordinary_client_is_taken_in_by_many_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests above would show nothing."""
    real = socket.getaddrinfo

    def numbers_only(host: str, port: int, family: int = 0, type: int = 0) -> object:
        """As the real one, but for a question that would leave this machine."""
        return real(host, port, family, type, 0, 0 if host == "localhost" else socket.AI_NUMERICHOST)

    monkeypatch.setattr(socket, "getaddrinfo", numbers_only)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def fetch(url: str) -> bool:
        try:
            with opener.open(url, timeout=2) as answer:
                return bool(answer.read() == b"reached")
        except (OSError, ValueError, HTTPException):
            return False

    async with asyncio.timeout(PATIENCE), listeners() as sites:
        ConnectSpy(monkeypatch)
        urls = [
            spelling.format(port=sites[0].port) for spelling in spellings((NUMERIC, IPV6, NAMES, CONFUSING))
        ]
        reached = [url for url in urls if await asyncio.to_thread(fetch, url)]
    assert len(reached) >= 30


# ---- a bomb, in a process of its own, on the loop that plait runs on

FETCH = """
import asyncio, resource, sys
import uvloop
from ipaddress import ip_address
from plait.outbound.client import HttpClient
from plait.outbound.urls import UrlPolicy
from plait.providers.tools.web import WebTools

async def main():
    http = HttpClient(UrlPolicy(private_ranges=("127.0.0.1/32",)))
    web = WebTools(http, limit_bytes=1 << 20)
    base = f"http://127.0.0.1:{sys.argv[1]}"
    await web.web_fetch(base + "/small")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(5):
        page = await web.web_fetch(base + "/bomb")
        assert (page.truncated, len(page.body)) == (True, 1 << 20), page
    await http.aclose()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)

uvloop.run(main())
"""


@pytest.mark.requirement("BC-49")
async def test_a_bomb_of_a_gigabyte_costs_less_than_sixteen_megabytes(tmp_path: Path) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    bomb = plain(start + again * 1023, Content_Encoding="gzip")

    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(bomb if received.target == "/bomb" else plain())

    (tmp_path / "fetch.py").write_text(FETCH, encoding="utf-8")
    async with asyncio.timeout(60), Site(answer) as site:
        command = [sys.executable, "-W", "error", str(tmp_path / "fetch.py"), str(site.port)]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert int(done.stdout) * 1024 < 16 << 20
