import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from loopback import LOCAL, OURS, ConnectSpy, Names, Site, always, client, fetch, plain
from plait.outbound.client import HttpClient
from plait.outbound.faults import (
    RequestInvalid,
    Unreachable,
    UrlRefused,
)
from plait.outbound.urls import UrlPolicy


async def test_a_refused_url_opens_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Site(always(plain())) as site, client(UrlPolicy()) as http:
        spy = ConnectSpy(monkeypatch)
        for host in ("127.0.0.1", "localhost", "[::1]", "site.test", "0x7f.1"):
            with pytest.raises(UrlRefused, match="blocked private IP"):
                await fetch(http, site.url(host=host))
        assert (spy.addresses, site.connections) == ([], 0)


@pytest.mark.requirement("K-06")
async def test_a_name_that_changes_its_address_is_judged_by_the_one_that_is_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DNS rebinding: 127.0.0.2 stands for a public address, 127.0.0.1 for a private one."""
    policy = UrlPolicy(private_ranges=("127.0.0.2/32",))
    names = Names(site_test=[["127.0.0.2"], ["127.0.0.1"]])
    async with Site(always(plain())) as site, client(policy, names) as http:
        spy = ConnectSpy(monkeypatch)
        await policy.judge_resolved(site.url(), names)  # a guard asks first, and is shown the good address
        with pytest.raises(UrlRefused, match=r"blocked private IP 127\.0\.0\.1"):
            await fetch(http, site.url())
        assert (spy.addresses, site.connections) == ([], 0)


@pytest.mark.requirement("K-06")
async def test_a_connection_goes_to_the_answer_that_was_judged_and_no_second_question_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = UrlPolicy(private_ranges=("127.0.0.2/32",))
    names = Names(site_test=[["127.0.0.2"], ["127.0.0.1"]])
    async with (
        Site(always(plain(b"good")), "127.0.0.2") as good,
        Site(always(plain(b"bad")), "127.0.0.1", good.port) as bad,
        client(policy, names) as http,
    ):
        spy = ConnectSpy(monkeypatch)
        assert await fetch(http, good.url()) == (200, b"good")
        assert (spy.addresses, names.asked, bad.connections) == (["127.0.0.2"], ["site.test"], 0)


async def test_one_private_address_among_several_stops_the_connection_to_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = UrlPolicy(private_ranges=("127.0.0.2/32",))
    async with client(policy, Names(site_test=[["127.0.0.2", "127.0.0.1"]])) as http:
        spy = ConnectSpy(monkeypatch)
        with pytest.raises(UrlRefused):
            await fetch(http, "http://site.test:1/")
        assert spy.addresses == []


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_a_socket_that_is_connected_elsewhere_gets_no_byte(kind: str) -> None:
    """Should anything between our resolver and connect() go wrong: the socket itself is asked."""

    class Fooled(UrlPolicy, frozen=True, kw_only=True):
        async def resolve(self, host: str, resolver: object) -> tuple[object, ...]:  # type: ignore[override]
            return (ip_address("127.0.0.1"),)

    async def talk() -> None:
        async with Site(always(plain())) as site, client(Fooled()) as http:
            with pytest.raises(UrlRefused, match=r"blocked private IP 127\.0\.0\.1"):
                await fetch(http, site.url())
            assert site.received == []

    make_loop = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}[kind]
    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(talk())


async def test_a_host_without_an_address_and_a_port_without_a_server_are_told_apart() -> None:
    async with Site(always(plain())) as site:
        port = site.port
    async with client(names=Names(site_test=LOCAL)) as http:
        with pytest.raises(UrlRefused, match=r"failed to resolve nowhere\.test"):
            await fetch(http, "http://nowhere.test/")
        with pytest.raises(Unreachable, match=r"site\.test cannot be reached: Connect"):
            await fetch(http, f"http://site.test:{port}/?token=secret")


async def test_only_http_is_spoken() -> None:
    async with client(UrlPolicy(enabled=False, schemes=("ftp", "ws"))) as http:
        for url in ("ftp://site.test/", "ws://site.test/", "file:///etc/passwd"):
            with pytest.raises(UrlRefused, match="invalid URL"):
                await fetch(http, url)


async def test_what_cannot_be_sent_is_refused_before_anything_else() -> None:
    async with client() as http:
        with pytest.raises(RequestInvalid):
            await fetch(http, "http://site.test/", headers={"Host": "other.test"})


# ---- TLS: the address is pinned, the name is what a certificate must be for


def certificate(*names: str, days: int = 1) -> tuple[bytes, bytes]:
    """A certificate that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "plait test")])
    end = datetime.now(UTC) + timedelta(days=days)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(end - timedelta(days=5))
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return built.public_bytes(serialization.Encoding.PEM), private


@asynccontextmanager
async def secure_site(
    folder: Path, *names: str, days: int = 1
) -> AsyncIterator[tuple[int, ssl.SSLContext, list[str]]]:
    """A port that speaks TLS, a context that trusts it, and the names that clients asked it for."""
    public, private = certificate(*names, days=days)
    (folder / "both.pem").write_bytes(public + private)
    asked: list[str] = []
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(folder / "both.pem")
    serving.sni_callback = lambda _, name, __: asked.append(name)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(plain(b"secure", Connection="close"))
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=serving)
    async with server:
        yield server.sockets[0].getsockname()[1], ssl.create_default_context(cadata=public.decode()), asked


async def fetch_securely(port: int, trust: ssl.SSLContext | None) -> tuple[int, bytes]:
    http = HttpClient(OURS, resolver=Names(site_test=LOCAL), tls=trust)
    try:
        async with asyncio.timeout(10):
            return await fetch(http, f"https://site.test:{port}/")
    finally:
        await http.aclose()


async def test_a_certificate_is_checked_for_the_name_although_the_address_is_pinned(tmp_path: Path) -> None:
    async with secure_site(tmp_path, "site.test") as (port, trust, asked):
        assert await fetch_securely(port, trust) == (200, b"secure")
        assert asked == ["site.test"]


@pytest.mark.parametrize(
    ("names", "days", "trusted", "words"),
    [
        (("other.test",), 1, True, "Hostname mismatch"),
        (("site.test",), -1, True, "certificate has expired"),
        (("site.test",), 1, False, "self-signed certificate"),
    ],
)
async def test_a_certificate_that_does_not_fit_ends_the_connection(
    tmp_path: Path, names: tuple[str, ...], days: int, trusted: bool, words: str
) -> None:
    async with secure_site(tmp_path, *names, days=days) as (port, trust, _):
        with pytest.raises(Unreachable, match=words):
            await fetch_securely(port, trust if trusted else None)


async def test_a_site_that_does_not_speak_tls_is_told_as_unreachable() -> None:
    async def answer_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(plain())
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer_at_once, "127.0.0.1", 0) as server:
        with pytest.raises(Unreachable, match=r"site\.test cannot be reached"):
            await fetch_securely(server.sockets[0].getsockname()[1], None)
