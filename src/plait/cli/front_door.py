"""From settings to who may come in over HTTP, and what is told to those who may not."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from plait.config.access import OAuthSettings, Place
from plait.config.model import Settings
from plait.downstream.access import Access, Proof
from plait.downstream.asgi import Answer
from plait.downstream.sources import Sources, is_loopback
from plait.downstream.token_file import tokens_path
from plait.downstream.tokens import TokenBook
from plait.errors import ConfigError
from plait.pipeline.grants import ANONYMOUS, Grant, Identity
from plait.providers.tools.builtin import READ_ONLY

if TYPE_CHECKING:
    from plait.downstream.oauth import ResourceServer


class FrontDoor(Struct):
    """What guards the way in."""

    access: Access
    documents: Mapping[str, Answer]
    anonymous: bool
    """May a client come in that does not say who it is?"""


@contextlib.asynccontextmanager
async def front_door(
    settings: Settings, place: Place, environ: Mapping[str, str]
) -> AsyncIterator[FrontDoor]:
    """Raises ConfigError where everybody could come in from anywhere."""
    http = settings.http
    book = TokenBook(http.tokens, tokens_path(environ))
    proofs: list[Proof] = [book]
    sources = Sources(place.host, http.allowed_hosts, http.allowed_origins)
    async with contextlib.AsyncExitStack() as stack:
        challenge: list[str] = []
        documents: dict[str, Answer] = {}
        if http.oauth is not None:
            server = _resource_server(http.oauth)
            stack.push_async_callback(server.aclose)
            proofs.append(server)
            challenge, documents = server.challenge, server.documents()
        guarded = bool(len(book)) or http.oauth is not None
        if not guarded and not is_loopback(place.host):
            raise ConfigError(
                f"{place.host} can be reached from other machines, and anybody could come in; "
                "make a token first: plait token add NAME"
            )
        anonymous = None if guarded else Identity(ANONYMOUS, Grant(builtin=READ_ONLY))
        yield FrontDoor(Access(sources, proofs, anonymous, challenge), documents, not guarded)


def _resource_server(settings: OAuthSettings) -> "ResourceServer":
    try:
        from plait.downstream.oauth import ResourceServer  # noqa: PLC0415  an extra that most do without
    except ModuleNotFoundError as problem:
        raise ConfigError(f"oauth needs {problem.name}: install plait[auth]") from None
    return ResourceServer(settings)
