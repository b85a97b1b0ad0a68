"""Pages of our own lists: opaque cursors that only we can make, good for one state of a list."""

import base64
import hashlib
import hmac
import secrets

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder, encode

from plait.errors import RemoteProtocolError
from plait.routing.catalog import Listing, page
from plait.wire.address import read_text
from plait.wire.spec import INVALID_PARAMS, Kind


class _Position(Struct, array_like=True):
    method: str
    generation: str
    offset: int


_read_position = Decoder(_Position).decode
_MAC = 16


class Pager:
    """Cuts a listing into pages. Cursors are sealed with a key of this process."""

    def __init__(self, size: int | None) -> None:
        self._size = size
        self._key = secrets.token_bytes(32)

    def cut(self, kind: Kind, listing: Listing, cursor: Raw | None) -> Raw:
        """One page. There is a next cursor only if there is a next item (K-20)."""
        if self._size is None and cursor is None:
            return listing.whole
        generation = hashlib.sha256(listing.whole).hexdigest()[:16]
        start = 0 if cursor is None else self._open(cursor, kind, generation, len(listing.items))
        end = start + (self._size or len(listing.items))
        more = self._seal(_Position(kind.method, generation, end)) if end < len(listing.items) else None
        return page(kind, listing.items[start:end], more)

    def _seal(self, position: _Position) -> str:
        body = encode(position)
        return base64.urlsafe_b64encode(self._sign(body) + body).decode()

    def _open(self, cursor: Raw, kind: Kind, generation: str, length: int) -> int:
        """The place a cursor points to. One message for every reason: it is either ours or not."""
        try:
            text = read_text(cursor).encode()
            sealed = base64.urlsafe_b64decode(text)
            body = sealed[_MAC:]
            # The decoder skips what it does not know, and so would take a cursor that we did not write.
            ours = base64.urlsafe_b64encode(sealed) == text
            if ours and hmac.compare_digest(sealed[:_MAC], self._sign(body)):
                position = _read_position(body)
                if (position.method, position.generation) == (kind.method, generation):
                    return min(position.offset, length)
        except (MsgspecError, ValueError):
            pass
        message = "invalid cursor, or one of a list that has changed since: list again from the start"
        raise RemoteProtocolError(message, INVALID_PARAMS)

    def _sign(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, "sha256")[:_MAC]
