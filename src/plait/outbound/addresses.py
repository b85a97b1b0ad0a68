"""Which addresses are out on the open internet, and which ones hide behind other addresses.

Python's `ipaddress` is asked for bits only, never for an opinion: on 3.11 `is_global` is True for
192.0.0.192, ::127.0.0.1, 64:ff9b::7f00:1, 2002:7f00:1::, fec0::1, 224.0.0.1 and 168.63.129.16, and
`is_private` is False for 100.64.0.0/10. The tables follow IANA's registries of special-purpose addresses.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Spans = Mapping[int, Sequence[tuple[int, int, str]]]
"""For each IP version: the first and the last address of a network, as numbers, and what it is."""

METADATA: tuple[Network, ...] = (
    IPv4Network("169.254.169.0/24"),  # AWS, Google, Azure, Oracle, DigitalOcean, OpenStack
    IPv4Network("169.254.170.0/24"),  # AWS: credentials of containers and pods
    IPv4Network("169.254.0.23/32"),  # Tencent
    IPv4Network("169.254.42.42/32"),  # Scaleway
    IPv4Network("100.100.100.200/32"),  # Alibaba
    IPv4Network("192.0.0.192/32"),  # Oracle
    IPv4Network("168.63.129.16/32"),  # Azure: the host behind the machine
    IPv6Network("fd00:ec2::/32"),  # AWS
    IPv6Network("fd20:ce::254/128"),  # Google
    IPv6Network("fd00:42::42/128"),  # Scaleway
)
"""Where clouds hand out credentials to whoever asks from inside: never opened by any exception."""

_SPECIAL_IPV4: tuple[tuple[IPv4Network, str], ...] = (
    (IPv4Network("0.0.0.0/8"), "this host"),  # connect() takes it for loopback
    (IPv4Network("10.0.0.0/8"), "private"),
    (IPv4Network("100.64.0.0/10"), "shared by a carrier"),
    (IPv4Network("127.0.0.0/8"), "loopback"),
    (IPv4Network("169.254.0.0/16"), "link-local"),
    (IPv4Network("172.16.0.0/12"), "private"),
    (IPv4Network("192.0.0.0/24"), "protocol assignment"),
    (IPv4Network("192.0.2.0/24"), "documentation"),
    (IPv4Network("192.88.99.0/24"), "6to4 relay"),
    (IPv4Network("192.168.0.0/16"), "private"),
    (IPv4Network("198.18.0.0/15"), "benchmarking"),
    (IPv4Network("198.51.100.0/24"), "documentation"),
    (IPv4Network("203.0.113.0/24"), "documentation"),
    (IPv4Network("224.0.0.0/4"), "multicast"),
    (IPv4Network("240.0.0.0/4"), "reserved"),
)

_SPECIAL_IPV6: tuple[tuple[IPv6Network, str], ...] = (
    (IPv6Network("::/128"), "this host"),
    (IPv6Network("::1/128"), "loopback"),
    (IPv6Network("fc00::/7"), "private"),
    (IPv6Network("fe80::/10"), "link-local"),
    (IPv6Network("fec0::/10"), "site-local"),
    (IPv6Network("ff00::/8"), "multicast"),
    (IPv6Network("2001:db8::/32"), "documentation"),
    (IPv6Network("3fff::/20"), "documentation"),
    (IPv6Network("2001::/32"), "Teredo tunnel"),
    (IPv6Network("2002::/16"), "6to4 tunnel"),
    (IPv6Network("2001::/23"), "protocol assignment"),
)
_GLOBAL_IPV6 = IPv6Network("2000::/3")
"""All that IANA has given out as global unicast; everything outside is special, named above or not."""


def _spans(networks: Iterable[tuple[Network, str]]) -> Spans:
    """The networks of each IP version as numbers: to compare those is many times as fast."""
    spans: dict[int, list[tuple[int, int, str]]] = {4: [], 6: []}
    for network, kind in networks:
        spans[network.version].append((int(network[0]), int(network[-1]), kind))
    return spans


_SPECIAL = _spans((*_SPECIAL_IPV4, *_SPECIAL_IPV6))
_METADATA = _spans((network, "metadata") for network in METADATA)

_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_SUFFIXED = (
    IPv6Network("::/96"),  # IPv4-compatible
    IPv6Network("::ffff:0:0:0/96"),  # IPv4-translated
)
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")
_SIXTOFOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")


def destinations(address: Address) -> tuple[Address, ...]:
    """Every address that a packet to this one may end at, this one included unless it only wraps another."""
    if isinstance(address, IPv4Address):
        return (address,)
    bits = int(address)
    if address in _MAPPED or address in _NAT64:
        # Pure spellings of an IPv4 address. Behind NAT64 every site is reached like this.
        return (_ipv4(bits),)
    return (address, *_embedded(address, bits))


def _embedded(address: IPv6Address, bits: int) -> Iterator[IPv4Address]:
    if any(address in network for network in _SUFFIXED):
        yield _ipv4(bits)
    elif address in _SIXTOFOUR:
        yield _ipv4(bits >> 80)
    elif address in _TEREDO:
        yield _ipv4(bits >> 64)  # the server
        yield _ipv4(~bits)  # the client, written with its bits turned over
    elif address in _LOCAL_NAT64:
        # RFC 6052 §2.2: where the IPv4 bits lie depends on the length of the prefix that is in use.
        yield _ipv4(bits)
        yield _ipv4((bits >> 64 & 0xFFFF) << 16 | bits >> 40 & 0xFFFF)
        yield _ipv4((bits >> 64 & 0xFF) << 24 | bits >> 32 & 0xFFFFFF)
        yield _ipv4(bits >> 24)


def _ipv4(bits: int) -> IPv4Address:
    return IPv4Address(bits & 0xFFFFFFFF)


def is_metadata(address: Address) -> bool:
    """Whether a cloud's credentials are to be had there, however the address is wrapped."""
    return any(_kind(place, _METADATA) is not None for place in destinations(address))


def what_is_special(address: Address) -> str | None:
    """Why the address is not an ordinary one of the open internet; None if it is."""
    for place in destinations(address):
        kind = _kind(place, _SPECIAL)
        if kind is None and place.version == 6 and place not in _GLOBAL_IPV6:
            kind = "not global"
        if kind is not None:
            return kind if place == address else f"{kind}, as {place}"
    return None


def _kind(address: Address, spans: Spans) -> str | None:
    bits = int(address)
    for first, last, kind in spans[address.version]:
        if first <= bits <= last:
            return kind
    return None
