"""Where a request may come from: Host and Origin, on every route."""

import pytest

from asgi import Browser
from clock import jumping
from fronts import front
from plait.downstream.asgi import Message, Request
from plait.downstream.sources import Sources, is_loopback


async def _unused(*_: object) -> Message:
    raise AssertionError("a guard reads no body and sends nothing")


def judged(sources: Sources, *headers: tuple[str, str]) -> int:
    """The status of the refusal; 200 if there is none."""
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    scope: Message = {"method": "GET", "path": "/", "headers": pairs}
    answer = sources.refusal(Request(scope, _unused, _unused))  # type: ignore[arg-type]
    return 200 if answer is None else answer.status


LOCAL = Sources("127.0.0.1")
NAMED = Sources("127.0.0.1", ["gateway.example", "other.example:8443"], ["https://app.example"])
EVERYWHERE = Sources("0.0.0.0")
LAN = Sources("192.168.1.5")
SIX = Sources("::1")


@pytest.mark.parametrize(
    ("sources", "host", "status"),
    [
        (LOCAL, "localhost", 200),
        (LOCAL, "LOCALHOST:7524", 200),
        (LOCAL, "127.0.0.1:1", 200),
        (LOCAL, "[::1]:7524", 200),
        (LOCAL, "", 421),
        (LOCAL, "localhost.", 421),
        (LOCAL, "localhost.evil.example", 421),
        (LOCAL, "evil.example", 421),
        (LOCAL, "evil.example:7524", 421),
        (LOCAL, "user@localhost", 421),
        (LOCAL, "localhost:x", 421),
        (LOCAL, "localhost:7524:1", 421),
        (LOCAL, "localhost/?x=", 421),
        (LOCAL, "localhost#", 421),
        (LOCAL, "127.0.0.1.nip.example", 421),
        (LOCAL, "127.1", 421),
        (LOCAL, "2130706433", 421),
        (LOCAL, "0.0.0.0", 421),
        (LOCAL, "192.168.1.5", 421),
        (LOCAL, "::1", 421),
        (LOCAL, "lоcalhost", 421),
        (LOCAL, "localhost\t", 200),
        (NAMED, "gateway.example", 200),
        (NAMED, "Gateway.Example:99", 200),
        (NAMED, "other.example", 421),
        (NAMED, "other.example:8443", 200),
        (NAMED, "a.gateway.example", 421),
        (EVERYWHERE, "10.1.2.3:7524", 200),
        (EVERYWHERE, "[fe80::1]", 200),
        (EVERYWHERE, "evil.example", 421),
        (Sources("0.0.0.0", ["gw.example"]), "10.1.2.3", 421),
        (LAN, "192.168.1.5:7524", 200),
        (LAN, "192.168.1.6", 421),
        (SIX, "[::1]", 200),
    ],
)
def test_only_names_that_mean_us_are_served(sources: Sources, host: str, status: int) -> None:
    assert judged(sources, ("host", host.encode().decode("latin-1"))) == status


@pytest.mark.parametrize(
    ("sources", "host", "origin", "status"),
    [
        (LOCAL, "localhost:7524", "http://localhost:7524", 200),
        (LOCAL, "localhost:7524", "http://127.0.0.1:3000", 200),
        (LOCAL, "localhost:7524", "https://[::1]", 200),
        (LOCAL, "localhost:7524", "null", 403),
        (LOCAL, "localhost:7524", "", 403),
        (LOCAL, "localhost:7524", "https://evil.example", 403),
        (LOCAL, "localhost:7524", "http://localhost.evil.example", 403),
        (LOCAL, "localhost:7524", "http://evil.example@localhost", 403),
        (LOCAL, "localhost:7524", "file://localhost", 403),
        (LOCAL, "localhost:7524", "chrome-extension://localhost", 403),
        (LOCAL, "localhost:7524", "localhost:7524", 403),
        (NAMED, "gateway.example", "https://gateway.example", 200),
        (NAMED, "gateway.example", "https://app.example", 200),
        (NAMED, "gateway.example", "https://APP.example", 200),
        (NAMED, "gateway.example", "http://app.example", 403),
        (NAMED, "gateway.example", "https://app.example:444", 403),
        (LAN, "192.168.1.5:7524", "http://192.168.1.5:7524", 200),
        (LAN, "192.168.1.5:7524", "http://localhost:3000", 403),
        (EVERYWHERE, "10.1.2.3", "http://localhost", 403),
    ],
)
def test_only_pages_that_are_ours_or_allowed_may_send(
    sources: Sources, host: str, origin: str, status: int
) -> None:
    assert judged(sources, ("host", host), ("origin", origin)) == status


@pytest.mark.parametrize(
    "name",
    ["host", "origin", "authorization", "content-length", "content-type", "mcp-session-id", "last-event-id"],
)
def test_a_header_that_counts_must_not_be_there_twice(name: str) -> None:
    twice = [(name, "localhost"), (name.upper(), "localhost")]
    assert judged(LOCAL, ("host", "localhost"), *twice) == 400


@jumping
async def test_every_route_is_behind_this_guard() -> None:
    async with front() as at:
        for path in [*at.app.routes, "/nothing"]:
            for method in ("GET", "POST", "DELETE", "OPTIONS", "PUT"):
                visit, _ = await Browser(at.app, {"host": "evil.example"}).ask(method, path)
                assert visit.status == 421
                visit, _ = await Browser(at.app, {"origin": "https://evil.example"}).ask(method, path)
                assert visit.status == 403


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("192.168.0.1", False),
        ("localhost.example", False),
    ],
)
def test_which_addresses_only_this_machine_can_reach(host: str, local: bool) -> None:
    assert is_loopback(host) is local
