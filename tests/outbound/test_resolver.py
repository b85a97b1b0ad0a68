import asyncio
import socket
from ipaddress import ip_address

import pytest

from plait.outbound.resolver import SystemResolver
from plait.outbound.urls import Refusal, UrlPolicy


async def test_the_systems_resolver_knows_localhost() -> None:
    addresses = await SystemResolver().resolve("localhost")
    assert addresses
    assert all(address.is_loopback for address in addresses)
    assert len(set(addresses)) == len(addresses)


async def answer_with(
    monkeypatch: pytest.MonkeyPatch, answer: list[tuple[object, ...]] | None
) -> list[tuple[object, ...]]:
    """Let the running loop's look-ups give this answer, or none in the time of the test."""
    asked: list[tuple[object, ...]] = []

    async def getaddrinfo(*words: object, **more: object) -> list[tuple[object, ...]]:
        asked.append(words)
        if answer is None:
            await asyncio.Event().wait()
        assert answer is not None
        return answer

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    return asked


async def test_addresses_of_both_families_come_without_their_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = (socket.SOCK_STREAM, 6, "")
    asked = await answer_with(
        monkeypatch,
        [
            (socket.AF_INET6, *kind, ("fe80::1%eth0", 0, 0, 2)),
            (socket.AF_INET, *kind, ("10.0.0.1", 0)),
            (socket.AF_INET, *kind, ("10.0.0.1", 0)),
        ],
    )
    assert await SystemResolver().resolve("a.test") == (ip_address("fe80::1"), ip_address("10.0.0.1"))
    assert asked == [("a.test", None)]


async def test_a_resolver_that_hangs_refuses_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    await answer_with(monkeypatch, None)
    async with asyncio.timeout(5):
        verdict = await UrlPolicy().judge_resolved("http://a.test/", SystemResolver(timeout=0.01))
    assert verdict == Refusal("unresolved", "failed to resolve a.test: the resolver took too long")
