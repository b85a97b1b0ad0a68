"""Bearer tokens: whose is the one that came? Those of the configuration, and those of the file."""

import hmac
import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path

from plait.config.access import TokenSetting
from plait.downstream.asgi import Answer
from plait.downstream.token_file import digest_of, read_tokens
from plait.errors import ConfigError
from plait.pipeline.grants import Grant, Identity

_log = logging.getLogger("plait")

LONGEST = 4096


class TokenBook:
    """Every token there is. What `plait token` changes counts from the next request on."""

    def __init__(self, configured: Sequence[TokenSetting] = (), path: Path | None = None) -> None:
        self._configured = tuple(configured)
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._tokens = self._configured if path is None else (*self._configured, *read_tokens(path))
        self._look()

    def __repr__(self) -> str:
        return f"<TokenBook of {len(self._tokens)}>"

    def __len__(self) -> int:
        return len(self._tokens)

    async def identify(self, token: str) -> Identity | Answer | None:
        self._look()
        if len(token) > LONGEST:
            return None
        given, found = digest_of(token), None
        for each in self._tokens:
            # All of them are compared, each in constant time: how long it takes tells nothing.
            if hmac.compare_digest(each.sha256, given):
                found = each
        return None if found is None or _expired(found) else _identity(found)

    def knows(self, identity: Identity) -> bool:
        """Would a token of this identity still be taken?"""
        self._look()
        return any(
            _identity(each).same(identity)
            for each in self._tokens
            if each.name == identity and not _expired(each)
        )

    def _look(self) -> None:
        """Read the file again if it is another one. One that cannot be read lets nobody in."""
        if self._path is None:
            return
        try:
            status = os.stat(self._path)
            seen = (status.st_ino, status.st_mtime_ns, status.st_size)
        except OSError:
            seen = (0, 0, 0)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._tokens = (*self._configured, *read_tokens(self._path))
        except ConfigError as problem:
            _log.error("%s; until that is mended its tokens are not taken", problem)
            self._tokens = self._configured


def _expired(token: TokenSetting) -> bool:
    return token.expires is not None and time.time() >= token.expires


def _identity(token: TokenSetting) -> Identity:
    return Identity(token.name, Grant(token.tools), sessions=token.sessions, rate=token.rate)
