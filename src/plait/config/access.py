"""What a configuration says of clients over HTTP: where they come in, and who may."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 7524


class Place(Struct, frozen=True):
    """An address to listen on."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class TokenSetting(Struct, frozen=True, kw_only=True):
    """One token: whose it is, and what it is good for. The token itself is nowhere, only its digest."""

    name: str
    sha256: str
    tools: tuple[str, ...] | None = None
    """Patterns of exposed names; None: everything."""
    expires: float | None = None
    """Seconds since 1970; None: never."""
    sessions: int | None = None
    rate: int | None = None
    """Requests in a minute."""


class OAuthSettings(Struct, frozen=True, kw_only=True):
    """Whose tokens we take, as a resource server of OAuth 2.1."""

    issuer: str = ""
    resource: str = ""
    """Our own URL, as clients write it: the audience that a token must be made for."""
    jwks_url: str | None = None
    """None: where the issuer's metadata says."""
    scopes: Mapping[str, tuple[str, ...]] = {}
    """What each scope is good for: patterns of exposed names. None at all: every token is good for all."""


class HttpSettings(Struct, frozen=True, kw_only=True):
    """Clients over HTTP."""

    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    tokens: tuple[TokenSetting, ...] = ()
    oauth: OAuthSettings | None = None
    session_idle: float = 1800.0
    max_sessions: int = 10_000
    max_connections: int = 10_000
