"""From a name to its addresses: asked once per connection, never trusted, never waited for too long."""

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Protocol

from plait.outbound.addresses import Address


class Resolver(Protocol):
    """Whoever can tell the addresses of a host."""

    async def resolve(self, host: str) -> Sequence[Address]:
        """All its addresses, of both families. Raises OSError, TimeoutError included, if there are none."""


class SystemResolver:
    """The resolver of the operating system, /etc/hosts included."""

    def __init__(self, timeout: float = 5.0) -> None:
        self._timeout = timeout

    async def resolve(self, host: str) -> Sequence[Address]:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._timeout):
            found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        # A scope (`fe80::1%eth0`) is dropped: a link-local address is refused, or opened by hand.
        addresses = (ip_address(str(entry[4][0]).partition("%")[0]) for entry in found)
        return tuple(dict.fromkeys(addresses))
