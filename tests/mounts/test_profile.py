"""Which clients share a session with a server."""

from plait.mounts.profile import Profile, behalf_of, profile_of
from seams import FakeCaller

MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"


def profile(identity: str, able: str, revision: str) -> Profile:
    return profile_of(behalf_of(FakeCaller(identity, {able: {}}, revision)))


def test_handshake_clients_that_can_do_different_things_do_not_share() -> None:
    assert profile("ann", "roots", HANDSHAKE) != profile("ann", "sampling", HANDSHAKE)


def test_modern_clients_share_whatever_they_can_do() -> None:
    assert profile("ann", "roots", MODERN) == profile("ann", "sampling", MODERN)


def test_two_identities_and_two_eras_never_share() -> None:
    assert profile("ann", "roots", MODERN) != profile("ben", "roots", MODERN)
    assert profile("ann", "roots", MODERN) != profile("ann", "roots", HANDSHAKE)
