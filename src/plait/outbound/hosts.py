"""One spelling per host: what a name or an address literal in a URL means, or why it means nothing."""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from msgspec import Struct

from plait.outbound.addresses import Address

_LONGEST_NAME = 253
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_IPV6 = re.compile(r"[0-9A-Fa-f:.]{2,45}")
_OTHER_DOTS = "\u3002\uff0e\uff61"
"""Signs that IDNA's rules also split a name at: a reader sees one label where a resolver sees two."""


class InvalidUrl(ValueError):
    """Not a URL that we would connect to. The message never repeats the URL: it may hold secrets."""


class Host(Struct, frozen=True):
    """The host of a URL in the one spelling that is judged, resolved and connected to."""

    name: str
    """Lower case, ASCII, no root dot; for an address its usual form, without brackets."""
    address: Address | None = None
    """The address, if the host is spelled as one."""

    @property
    def bracketed(self) -> str:
        return f"[{self.name}]" if ":" in self.name else self.name


def read_host(text: str) -> Host:
    """Read the host of a URL, `[…]` included for IPv6. Raises InvalidUrl."""
    if text.startswith("["):
        return _read_ipv6(text)
    if not text:
        raise InvalidUrl("there is no host")
    name = ".".join(_read_label(label) for label in _labels(text))
    if len(name) > _LONGEST_NAME:
        raise InvalidUrl("the host is longer than 253 characters")
    address = _read_ipv4(name)
    return Host(name) if address is None else Host(str(address), address)


def _read_ipv6(text: str) -> Host:
    inside = text[1:-1]
    # A zone id (`%eth0`) would pick the network interface: it is refused with everything else.
    if not text.endswith("]") or _IPV6.fullmatch(inside) is None:
        raise InvalidUrl("the host in brackets is no IPv6 address")
    try:
        address = IPv6Address(inside)
    except AddressValueError:
        raise InvalidUrl("the host in brackets is no IPv6 address") from None
    return Host(str(address), address)


def _labels(text: str) -> list[str]:
    """The parts between the dots. One root dot at the end means the same host, so it goes."""
    if any(dot in text for dot in _OTHER_DOTS):
        raise InvalidUrl("the host has a dot that is not '.'")
    if len(text) > _LONGEST_NAME + 1:
        raise InvalidUrl("the host is longer than 253 characters")
    return text.removesuffix(".").split(".")


def _read_label(label: str) -> str:
    ascii_label = label.lower() if label.isascii() else _to_ascii(label)
    if _LABEL.fullmatch(ascii_label) is None:
        raise InvalidUrl("the host has an empty part, or a character that no host name has")
    return ascii_label


def _to_ascii(label: str) -> str:
    """IDNA 2008 as it is written, without the mappings that turn full-width digits into digits."""
    # Only hosts that are not ASCII need its tables.
    import idna  # noqa: PLC0415

    try:
        return idna.alabel(label).decode("ascii")
    except UnicodeError:
        raise InvalidUrl("the host is not ASCII and no valid international name (IDNA 2008)") from None


def _read_ipv4(name: str) -> IPv4Address | None:
    """The address that connect() takes a numeric host for: `0x7f.1`, `2130706433`, `0177.0.0.1`.

    A host whose last part is a number is an address or nothing, as in browsers.
    """
    parts = name.split(".")
    if _NUMBER.fullmatch(parts[-1]) is None:
        return None
    *front, last = [_read_number(part) for part in parts]
    if len(front) > 3 or any(number > 255 for number in front) or last >= 256 ** (4 - len(front)):
        raise InvalidUrl("the host ends in a number and is no IPv4 address")
    for place, number in enumerate(front):
        last += number << (8 * (3 - place))
    return IPv4Address(last)


def _read_number(part: str) -> int:
    """As inet_aton reads it: hexadecimal after 0x, octal after 0."""
    base = 16 if part.startswith("0x") else 8 if part.startswith("0") and part != "0" else 10
    if _NUMBER.fullmatch(part) is None:
        raise InvalidUrl("the host ends in a number and is no IPv4 address")
    try:
        return int(part, base)
    except ValueError:
        raise InvalidUrl("the host ends in a number and is no IPv4 address") from None
