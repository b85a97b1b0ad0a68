"""Which URLs may be asked for: one reading, one judgement, and every address checked that a host has."""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, ip_network
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr

from plait.errors import ConfigError
from plait.outbound.addresses import Address, Network, destinations, is_metadata, what_is_special
from plait.outbound.hosts import Host, InvalidUrl, read_host
from plait.outbound.parsing import ParsedUrl, parse_url
from plait.outbound.resolver import Resolver, SystemResolver

METADATA_HOSTS = frozenset(
    {
        "metadata.google.internal",
        "metadata.goog",
        "metadata.internal",
        "metadata",
        "instance-data",
        "instance-data.ec2.internal",
        "metadata.tencentyun.com",
    }
)
_LOOPBACK = IPv4Address("127.0.0.1")

Entry = TypeVar("Entry")


class Approved(Struct, frozen=True):
    """The URL may be asked for, in this spelling."""

    url: str
    """The one spelling that was judged: host in lower case, no default port, no fragment."""
    host: str
    port: int
    addresses: tuple[Address, ...] = ()
    """All that the host has; empty if it is a name that nobody resolved yet."""


class Refusal(Struct, frozen=True):
    """The URL may not be asked for."""

    rule: str
    """One word for programs: invalid, scheme, port, domain, metadata, private or unresolved."""
    reason: str
    """For people. Names the host at most: the rest of a URL may hold secrets."""


class UrlPolicy(Struct, frozen=True, kw_only=True):
    """What the operator says about URLs. The defaults let the open internet through and nothing else.

    An allowed domain is an exception, not the whole of what is allowed: its addresses may be private, and
    it wins over a blocked one. It means that host alone, `*.name` the hosts below it; a blocked domain
    means the host and everything below it. Metadata services of clouds stay shut in any case.
    """

    enabled: bool = True
    allow_private: bool = False
    allowed_domains: Sequence[str] = ()
    blocked_domains: Sequence[str] = ()
    schemes: Sequence[str] = ("http", "https")
    ports: Sequence[int] | None = None
    """None: every port."""
    private_ranges: Sequence[str | Network] = ()
    """Networks such as 10.1.0.0/16 that are open although they are private. Read into networks at once."""

    def __post_init__(self) -> None:
        force_setattr(self, "allowed_domains", _read_domains("allowed_domains", self.allowed_domains))
        force_setattr(self, "blocked_domains", _read_domains("blocked_domains", self.blocked_domains))
        force_setattr(self, "schemes", tuple(scheme.lower() for scheme in _listed("schemes", self.schemes)))
        force_setattr(self, "private_ranges", _read_ranges(self.private_ranges))
        force_setattr(self, "ports", None if self.ports is None else tuple(self.ports))

    def judge(self, url: str) -> Approved | Refusal:
        """All that can be said without asking a resolver. Never raises."""
        try:
            parsed = parse_url(url)
        except InvalidUrl as problem:
            # A policy that is switched off refuses nothing; whoever connects will find out.
            return Refusal("invalid", f"invalid URL: {problem}") if self.enabled else Approved(url, "", 0)
        return self.judge_parsed(parsed)

    async def judge_resolved(self, url: str, resolver: Resolver | None = None) -> Approved | Refusal:
        """The whole judgement, with every address that the host has now.

        Whoever connects later must not resolve again and trust the answer: HttpClient judges what it
        connects to.
        """
        verdict = self.judge(url)
        if isinstance(verdict, Refusal) or verdict.addresses or not self.enabled:
            return verdict
        addresses = await self.resolve(verdict.host, resolver or SystemResolver())
        if isinstance(addresses, Refusal):
            return addresses
        return Approved(verdict.url, verdict.host, verdict.port, addresses)

    def judge_parsed(self, url: ParsedUrl) -> Approved | Refusal:
        refusal = self._judge_parts(url) if self.enabled else None
        if refusal is not None:
            return refusal
        addresses = () if url.host.address is None else (url.host.address,)
        return Approved(url.text, url.host.name, url.port, addresses)

    def _judge_parts(self, url: ParsedUrl) -> Refusal | None:
        host = url.host.name
        if url.scheme not in self.schemes:
            return Refusal("scheme", f"invalid URL: {_either(self.schemes)} is needed, not {url.scheme[:32]}")
        if self.ports is not None and url.port not in self.ports:
            return Refusal("port", f"invalid URL: port {url.port} of host {host} is not allowed")
        if host in METADATA_HOSTS:
            return Refusal("metadata", f"blocked cloud metadata endpoint: {host}")
        if self._is_blocked(host):
            return Refusal("domain", f"blocked domain: {host}")
        address = _known_address(url.host)
        return None if address is None else self.judge_address(host, address)

    async def resolve(self, host: str, resolver: Resolver) -> tuple[Address, ...] | Refusal:
        """The addresses of a host, if there are any and each of them may be connected to."""
        try:
            addresses = tuple(await resolver.resolve(host))
        except (OSError, ValueError) as problem:
            return Refusal("unresolved", f"failed to resolve {host}: {_why(problem)}")
        if not addresses:
            return Refusal("unresolved", f"failed to resolve {host}: it has no address")
        refusals = (self.judge_address(host, address) for address in addresses)
        return next((refusal for refusal in refusals if refusal is not None), addresses)

    def judge_address(self, host: str, address: Address) -> Refusal | None:
        """Whether this host may be found at this address. None: yes."""
        if not self.enabled:
            return None
        if is_metadata(address):
            return Refusal("metadata", f"blocked cloud metadata endpoint: {address} for host {host}")
        kind = what_is_special(address)
        if kind is None or self.allow_private or self._is_allowed(host) or self._is_opened(address):
            return None
        return Refusal("private", f"blocked private IP {address} ({kind}) for host {host}")

    def _is_allowed(self, host: str) -> bool:
        return any(
            host.endswith(domain[1:]) if domain.startswith("*") else host == domain
            for domain in self.allowed_domains
        )

    def _is_blocked(self, host: str) -> bool:
        below = f".{host}"
        return not self._is_allowed(host) and any(
            below.endswith(f".{domain.removeprefix('*.')}") for domain in self.blocked_domains
        )

    def _is_opened(self, address: Address) -> bool:
        """Whether every place that the address leads to lies in a range that the operator opened."""
        ranges = [network for network in self.private_ranges if not isinstance(network, str)]
        return bool(ranges) and all(
            what_is_special(place) is None or any(place in network for network in ranges)
            for place in destinations(address)
        )


def _known_address(host: Host) -> Address | None:
    """The address of a literal, and of the names that RFC 6761 gives to loopback."""
    if host.address is None and (host.name == "localhost" or host.name.endswith(".localhost")):
        return _LOOPBACK
    return host.address


def _why(problem: BaseException) -> str:
    if isinstance(problem, TimeoutError):
        return "the resolver took too long"
    return (
        problem.strerror or "unknown" if isinstance(problem, OSError) else "not a name that can be looked up"
    )


def _either(words: Iterable[str]) -> str:
    return " or ".join(words) or "nothing"


def _listed(setting: str, values: Sequence[Entry]) -> Sequence[Entry]:
    if isinstance(values, str):
        raise ConfigError(f"urls.{setting}: one string; give a list of strings")
    return values


def _read_domains(setting: str, domains: Sequence[str]) -> tuple[str, ...]:
    return tuple(_read_domain(setting, domain) for domain in _listed(setting, domains))


def _read_domain(setting: str, domain: str) -> str:
    """In the spelling that hosts of URLs are compared in."""
    star = "*." if domain.startswith("*.") else ""
    bare = domain.removeprefix("*.")
    try:
        return star + read_host(f"[{bare}]" if ":" in bare and not bare.startswith("[") else bare).name
    except InvalidUrl as problem:
        raise ConfigError(
            f"urls.{setting}: '{domain}' is no domain: {problem}; write example.org or *.example.org"
        ) from None


def _read_ranges(ranges: Sequence[str | Network]) -> tuple[Network, ...]:
    return tuple(_read_range(entry) for entry in _listed("private_ranges", ranges))


def _read_range(text: str | Network) -> Network:
    try:
        return ip_network(text)
    except ValueError as problem:
        raise ConfigError(f"urls.private_ranges: {problem}; write 10.1.0.0/16") from None
