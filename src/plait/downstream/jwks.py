"""The keys of an issuer: fetched through our own client, kept for a while, fetched again when they rotate."""

import asyncio
import logging
from urllib.parse import urlsplit

from jwt import PyJWK, PyJWKSet
from jwt.exceptions import PyJWTError
from msgspec import MsgspecError, Struct
from msgspec.json import decode

from plait.config.access import OAuthSettings
from plait.outbound.client import HttpClient
from plait.outbound.faults import OutboundError
from plait.outbound.requests import Limits

_log = logging.getLogger("plait")

FRESH = 600.0
"""Seconds that keys are taken as they are."""
PAUSE = 30.0
"""Seconds between two tries: tokens with made-up key ids must not make us ask all the time."""
LIMITS = Limits(connect=5, idle=5, total=10, wire_bytes=1024 * 1024, body_bytes=1024 * 1024, hops=0)


class KeysUnavailable(Exception):
    """The issuer's keys could never be fetched: whether a token is good cannot be said."""


class Metadata(Struct):
    """What an issuer says of itself (RFC 8414)."""

    issuer: str
    jwks_uri: str


class Keys:
    def __init__(self, settings: OAuthSettings, client: HttpClient) -> None:
        self._issuer = settings.issuer
        self._url = settings.jwks_url
        self._client = client
        self._keys: tuple[PyJWK, ...] | None = None
        self._fetched = self._tried = float("-inf")
        self._lock = asyncio.Lock()

    async def find(self, id: str | None) -> list[PyJWK]:
        """The keys that a token may be signed with; none, if it names one that the issuer does not have."""
        now = asyncio.get_running_loop().time()
        if self._keys is None or now - self._fetched > FRESH or not self._named(id):
            await self._refresh()
        if self._keys is None:
            raise KeysUnavailable
        return self._named(id)

    def _named(self, id: str | None) -> list[PyJWK]:
        return [key for key in self._keys or () if id is None or key.key_id == id]

    async def _refresh(self) -> None:
        """Once for all who wait for it, and not too often. What we have stays until there is better."""
        asked = asyncio.get_running_loop().time()
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if self._tried >= asked or now - self._tried < PAUSE:
                return
            self._tried = now
            try:
                self._keys = await self._fetch()
                self._fetched = now
            except (OutboundError, MsgspecError, PyJWTError, ValueError) as problem:
                _log.warning("the keys of %s could not be fetched: %s", self._issuer, problem)

    async def _fetch(self) -> tuple[PyJWK, ...]:
        if self._url is None:
            self._url = await self._discover()
        return tuple(PyJWKSet.from_dict(decode(await self._get(self._url), type=dict[str, object])).keys)

    async def _discover(self) -> str:
        """ "The issuer value returned MUST be identical to the [one] into which the well-known URI string
        was inserted" (RFC 8414 §3.3)."""
        parts = urlsplit(self._issuer)
        origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        problem: Exception = ValueError("no metadata")
        for url in (
            f"{origin}/.well-known/oauth-authorization-server{path}",
            f"{origin}/.well-known/openid-configuration{path}",
            f"{origin}{path}/.well-known/openid-configuration",
        ):
            try:
                found = decode(await self._get(url), type=Metadata)
            except (OutboundError, MsgspecError, ValueError) as exc:
                problem = exc
                continue
            if found.issuer != self._issuer:
                raise ValueError("its metadata names another issuer")
            if urlsplit(found.jwks_uri).scheme != parts.scheme:
                raise ValueError("its keys are not where they can be fetched safely")
            return found.jwks_uri
        raise problem

    async def _get(self, url: str) -> bytes:
        async with self._client.open("GET", url, limits=LIMITS) as response:
            if response.status != 200:
                raise ValueError(f"status {response.status}")
            return await response.read()
