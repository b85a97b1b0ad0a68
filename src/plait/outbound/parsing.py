"""One strict reading of a URL, and its one spelling: what is judged here is what is connected to.

Everything that two readers could read differently is refused: user names, control characters, spaces,
backslashes, percent signs in the host, empty ports. Browsers forgive more; an attacker lives on that.
"""

import re
from urllib.parse import quote, urljoin

from msgspec import Struct
from msgspec.structs import replace

from plait.outbound.hosts import Host, InvalidUrl, read_host

DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}

_LONGEST = 8192
# RFC 3986, appendix B, but with the scheme and the authority required.
_SHAPE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\\\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]")
_SAFE = "%/:@!$&'()*+,;=-._~[]"


class ParsedUrl(Struct, frozen=True):
    """A URL in pieces. `text` puts them together again, always in the same way."""

    scheme: str
    host: Host
    port: int
    target: str
    """The path and the query, percent-encoded. The fragment is gone: it is never sent."""

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host.name, self.port

    @property
    def text(self) -> str:
        port = "" if DEFAULT_PORTS.get(self.scheme) == self.port else f":{self.port}"
        return f"{self.scheme}://{self.host.bracketed}{port}{self.target}"


def parse_url(text: str) -> ParsedUrl:
    """Read a URL. Raises InvalidUrl, and nothing else, whatever the text is."""
    _refuse_forbidden(text)
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise InvalidUrl("it is not of the form scheme://host/path")
    scheme = match[1].lower()
    host, port = _read_authority(match[2], DEFAULT_PORTS.get(scheme))
    return ParsedUrl(scheme, host, port, _read_target(match[3], match[4]))


def join_url(current: ParsedUrl, location: str) -> ParsedUrl:
    """Where a redirect leads. The result is read from the top like any other URL."""
    # Servers do send spaces; encoded, they are harmless in a path and refused in a host.
    location = location.strip(" ").replace(" ", "%20")
    _refuse_forbidden(location)  # before urljoin, which would drop tabs and newlines in silence
    if _SCHEME.match(location) is not None:
        return parse_url(location)
    if location.startswith("//"):
        return parse_url(f"{current.scheme}:{location}")
    # What is left is a path, and a path never changes the host: without its first slash it would.
    path = urljoin(current.target, location).removeprefix("/")
    return parse_url(replace(current, target=f"/{path}").text)


def _refuse_forbidden(text: str) -> None:
    if len(text) > _LONGEST:
        raise InvalidUrl(f"it is longer than {_LONGEST} characters")
    found = _FORBIDDEN.search(text)
    if found is not None:
        what = "a backslash" if found[0] == "\\" else "a space, a control or an invisible character"
        raise InvalidUrl(f"it has {what} at position {found.start()}; percent-encode it")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidUrl("it has a lone surrogate, which is no character")


def _read_authority(authority: str, default_port: int | None) -> tuple[Host, int]:
    if "@" in authority:
        raise InvalidUrl("it has a user name or a password; put credentials into a header")
    if "%" in authority:
        raise InvalidUrl("it has a percent sign in the host")
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        raise InvalidUrl("the host and port are not of the form host:port")
    port = default_port if match[2] is None else int(match[2])
    host = read_host(match[1])
    if port is None:
        raise InvalidUrl("its scheme has no usual port, and it names none")
    if not 0 < port < 65536:
        raise InvalidUrl("the port is not between 1 and 65535")
    return host, port


def _read_target(path: str, query: str | None) -> str:
    target = quote(path or "/", safe=_SAFE)
    # aiohttp never sends an empty query: so it is not part of the one spelling.
    return f"{target}?{quote(query, safe=_SAFE + '?')}" if query else target
