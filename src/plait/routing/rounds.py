"""Calls in several rounds, modern client to modern server: the server's `requestState`, under our seal.

The state comes back from the client with the next round. To the server all our clients are one, so it
cannot tell whether it comes from the one it was meant for; we can: what goes to a client is bound to who
it is, to the request, to the server, and to ten minutes. Inside is the server's own state, to the byte.
"""

import asyncio
import base64
import hashlib
import hmac
import secrets

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder, decode, encode

from plait.routing.backchannel import signed
from plait.session.exchange import Exchange, Reply, refuse
from plait.session.negotiation import fields_of, may_ask
from plait.wire.address import as_raw, read_text
from plait.wire.envelope import EMPTY, Fields, open_fields
from plait.wire.spec import INTERNAL_ERROR, INVALID_PARAMS

LIFETIME = 600.0
"""Seconds that a person may take between two rounds."""

_MAC = 32
_OF_A_ROUND = ("_meta", "inputResponses", "requestState")


class _Bound(Struct, array_like=True):
    expires: float
    server: str
    state: str


_read_bound = Decoder(_Bound).decode


class Rounds:
    """Sealed with a key of this process: a state does not outlive us."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def resume(self, exchange: Exchange) -> Reply | None:
        """Put the server's own state back into a request of a later round; or refuse it."""
        try:
            bound = self._open(exchange)
        except (MsgspecError, ValueError, KeyError):
            bound = None
        server = "" if exchange.destination is None else exchange.destination.server
        now = asyncio.get_running_loop().time()
        if bound is None or bound.server != server or bound.expires < now:
            return refuse(INVALID_PARAMS, "invalid or expired requestState: make the call anew, without one")
        exchange.params["requestState"] = as_raw(bound.state)
        return None

    def asked(self, exchange: Exchange, reply: Reply) -> Reply:
        """A server's `input_required` on its way to the client: checked, signed with its name, sealed."""
        server = "" if exchange.destination is None else exchange.destination.server
        fields = open_fields(reply.result or EMPTY)
        questions = fields_of(fields.get("inputRequests"))
        put: Fields = {}
        for key, question in questions.items():
            opened = fields_of(question)
            method, params = _method(opened), fields_of(opened.get("params"))
            problem = may_ask(exchange.caller.capabilities, method, params)
            if problem is not None:
                return refuse(INTERNAL_ERROR, f"server '{server}' asks {method}, and {problem}")
            put[key] = as_raw({**opened, "params": signed(server, method, params)})
        if put:
            fields["inputRequests"] = as_raw(put)
        try:
            if "requestState" in fields:
                state = read_text(fields["requestState"])
                fields["requestState"] = as_raw(self._seal(exchange, server, state))
        except (MsgspecError, UnicodeDecodeError):
            return refuse(INTERNAL_ERROR, f"server '{server}' gave a requestState that is no string")
        return Reply(result=as_raw(fields), asks=True)

    def _seal(self, exchange: Exchange, server: str, state: str) -> str:
        expires = asyncio.get_running_loop().time() + LIFETIME
        body = encode(_Bound(expires, server, state))
        return base64.urlsafe_b64encode(self._sign(exchange, body) + body).decode()

    def _open(self, exchange: Exchange) -> _Bound | None:
        text = read_text(exchange.params["requestState"]).encode()
        sealed = base64.urlsafe_b64decode(text)
        body = sealed[_MAC:]
        # The decoder skips what it does not know, and so would take a state that we did not write.
        if base64.urlsafe_b64encode(sealed) != text:
            return None
        genuine = hmac.compare_digest(sealed[:_MAC], self._sign(exchange, body))
        return _read_bound(body) if genuine else None

    def _sign(self, exchange: Exchange, body: bytes) -> bytes:
        bound = encode([exchange.caller.identity, exchange.method, _digest(exchange.params)])
        return hmac.digest(self._key, encode([len(bound)]) + bound + body, "sha256")


def _digest(params: Fields) -> str:
    """The request itself: "the same method and params", however its JSON is written."""
    same = {name: decode(value) for name, value in params.items() if name not in _OF_A_ROUND}
    return hashlib.sha256(encode(same, order="sorted")).hexdigest()


def _method(question: Fields) -> str:
    try:
        return read_text(question["method"])
    except (KeyError, MsgspecError, UnicodeDecodeError):
        return "something without a method"
