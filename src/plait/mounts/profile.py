"""What clients have in common who may share a session with a server."""

from msgspec import Struct

from plait.session.exchange import Caller
from plait.session.negotiation import relayable
from plait.upstream.opening import Behalf
from plait.wire.envelope import encode_sorted
from plait.wire.modern import is_modern
from plait.wire.spec import LATEST_HANDSHAKE

ANONYMOUS = "anonymous"


class Profile(Struct, frozen=True):
    """Who they are, and what they can do: a server's lists and its questions depend on both."""

    identity: str
    capabilities: bytes
    modern: bool = False
    """In which era they speak: a server of both is spoken to in theirs."""


EVERYBODY = Profile("", b"{}")
"""Of a session that all share: nothing is declared, since nobody in particular could be asked."""


def profile_of(behalf: Behalf) -> Profile:
    return Profile(behalf.identity, encode_sorted(behalf.capabilities), is_modern(behalf.revision))


def behalf_of(caller: Caller) -> Behalf:
    """A modern client's abilities go with each of its requests, so all of them may share one session:
    a server that is started anew for what one request declares would make that request wait."""
    capabilities = {} if is_modern(caller.revision) else relayable(caller.capabilities)
    return Behalf(capabilities, caller.revision, caller.identity)


def nobody(identity: str = ANONYMOUS) -> Behalf:
    """A client that declares nothing: what a server is greeted for when no client is there yet."""
    return Behalf({}, LATEST_HANDSHAKE, identity)
