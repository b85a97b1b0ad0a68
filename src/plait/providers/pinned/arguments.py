"""The arguments of the tools of `resources`, with the words that tell a model what to give."""

from typing import Annotated

from msgspec import Meta, Struct

from plait.providers.pinned.windows import DEFAULT_BYTES

_SERVER = Meta(description="The server's prefix, as list_resources shows it.")
_ONE_SERVER = Meta(description="Only of the server with this prefix; null: of all servers.")
_URI = Meta(description="The URI exactly as list_resources shows it, or one made from a template.")
_BYTES = Meta(description=f"How many bytes at most; null: {DEFAULT_BYTES}.")


class Nothing(Struct, forbid_unknown_fields=True):
    """No arguments."""


class Filter(Struct, forbid_unknown_fields=True):
    server: Annotated[str | None, _ONE_SERVER] = None
    uri_prefix: Annotated[str | None, Meta(description="Only those that begin so; null: all of them.")] = None


class OfServer(Struct, forbid_unknown_fields=True):
    server: Annotated[str, _SERVER]


class At(OfServer, forbid_unknown_fields=True):
    uri: Annotated[str, _URI]


class Read(At, forbid_unknown_fields=True):
    start_offset: Annotated[int, Meta(description="The byte to begin with.", ge=0)] = 0
    max_bytes: Annotated[Annotated[int, Meta(ge=1)] | None, _BYTES] = None


class ReadBlocks(At, forbid_unknown_fields=True):
    start_block: Annotated[int, Meta(description="The block to begin with.", ge=0)] = 0
    start_offset: Annotated[int, Meta(description="The byte of that block to begin with.", ge=0)] = 0
    max_bytes: Annotated[Annotated[int, Meta(ge=1)] | None, _BYTES] = None
