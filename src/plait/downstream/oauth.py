"""We as a resource server of OAuth 2.1: access tokens of one issuer, made for us, and what they are good for.

"MCP servers MUST validate that access tokens were issued specifically for them as the intended audience
[...] MCP servers MUST NOT accept or transit any other tokens" (authorization).
"""

from urllib.parse import urlsplit

import jwt
from jwt.exceptions import PyJWTError

from plait.config.access import OAuthSettings
from plait.downstream.access import challenge
from plait.downstream.asgi import Answer, as_json, refusal
from plait.downstream.jwks import Keys, KeysUnavailable
from plait.outbound.client import HttpClient
from plait.outbound.urls import UrlPolicy
from plait.pipeline.grants import Grant, Identity

ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
"""Signatures only: with a shared secret whoever can check a token could make one."""
KINDS = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})
LEEWAY = 30.0
"""Seconds that clocks may differ."""
WELL_KNOWN = "/.well-known/oauth-protected-resource"
LONGEST = 16 * 1024
_LONGEST_SUBJECT = 200


class ResourceServer:
    def __init__(self, settings: OAuthSettings, client: HttpClient | None = None) -> None:
        self._settings = settings
        self._client = client or HttpClient(UrlPolicy(allowed_domains=_hosts(settings)))
        self._keys = Keys(settings, self._client)

    async def aclose(self) -> None:
        await self._client.aclose()

    # ---- what clients are told

    @property
    def challenge(self) -> list[str]:
        """Where a client without a token learns how to get one (RFC 9728 §5.1)."""
        parts = urlsplit(self._settings.resource)
        url = f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path.rstrip('/')}"
        scopes = " ".join(self._settings.scopes)
        return [f'resource_metadata="{url}"', *([f'scope="{scopes}"'] if scopes else [])]

    def documents(self) -> dict[str, Answer]:
        """Our metadata (RFC 9728), under the path of our resource and under none."""
        told = as_json(
            200,
            {
                "resource": self._settings.resource,
                "authorization_servers": [self._settings.issuer],
                "scopes_supported": list(self._settings.scopes),
                "bearer_methods_supported": ["header"],
                "resource_name": "plait",
            },
        )
        path = urlsplit(self._settings.resource).path.rstrip("/")
        return {WELL_KNOWN: told, f"{WELL_KNOWN}/mcp": told, f"{WELL_KNOWN}{path}": told}

    # ---- who is it

    async def identify(self, token: str) -> Identity | Answer | None:
        try:
            claims = await self._claims(token)
        except KeysUnavailable:
            return refusal(503, "tokens cannot be checked just now", ((b"retry-after", b"30"),))
        subject = claims.get("sub") if claims is not None else None
        if claims is None or not isinstance(subject, str) or not _is_name(subject):
            return None
        if not self._settings.scopes:
            return Identity(f"oauth:{subject}")
        patterns = [p for scope in _scopes(claims) for p in self._settings.scopes.get(scope, ())]
        if not patterns:
            return self._insufficient()
        return Identity(f"oauth:{subject}", Grant(tuple(sorted(set(patterns)))))

    def knows(self, identity: Identity) -> bool:
        """A token that runs out is renewed by its client; the session goes on."""
        return identity.startswith("oauth:")

    async def _claims(self, token: str) -> dict[str, object] | None:
        """What a good token says; None for any other."""
        if len(token) > LONGEST or token.count(".") != 2:
            return None
        try:
            header = jwt.get_unverified_header(token)
        except PyJWTError:
            return None
        algorithm, id = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS or str(header.get("typ") or "").lower() not in KINDS:
            return None
        for key in await self._keys.find(id if isinstance(id, str) else None):
            claims = self._checked(token, key, str(algorithm))
            if claims is not None:
                return claims
        return None

    def _checked(self, token: str, key: jwt.PyJWK, algorithm: str) -> dict[str, object] | None:
        try:
            claims: dict[str, object] = jwt.decode(
                token,
                key.key,
                algorithms=[algorithm],
                audience=self._settings.resource,
                issuer=self._settings.issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (PyJWTError, ValueError, TypeError):
            return None
        return claims

    def _insufficient(self) -> Answer:
        told = challenge('error="insufficient_scope"', *self.challenge)
        return refusal(403, "the token has none of the scopes that are good for something here", told)


def _hosts(settings: OAuthSettings) -> tuple[str, ...]:
    """The operator named these hosts: they may have private addresses."""
    named = [urlsplit(url).hostname for url in (settings.issuer, settings.jwks_url) if url]
    return tuple(host for host in named if host)


def _scopes(claims: dict[str, object]) -> list[str]:
    """`scope` is a text (RFC 8693 §4.2); some issuers have a list, under `scp`."""
    given = claims.get("scope", claims.get("scp"))
    if isinstance(given, str):
        return given.split()
    return [each for each in given if isinstance(each, str)] if isinstance(given, list) else []


def _is_name(subject: str) -> bool:
    return 0 < len(subject) <= _LONGEST_SUBJECT and subject.isprintable()
