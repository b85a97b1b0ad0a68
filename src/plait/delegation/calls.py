"""A model's calls, made as whoever handed the task on: every guard sees them as it sees that caller's own."""

import logging

from msgspec import MsgspecError
from msgspec.json import Decoder, decode

from plait.agent import in_words
from plait.delegation.claude import not_on_offer
from plait.delegation.conversation import Outcome, Use
from plait.delegation.schema import Toolset
from plait.errors import PlaitError
from plait.session.exchange import Exchange, Handler, Reply
from plait.wire.address import as_raw
from plait.wire.envelope import EMPTY, ErrorBody, Fields
from plait.wire.tools import CallToolResult

_log = logging.getLogger("plait.delegation")

DEPTH_KEY = "plait/delegation-depth"
"""The `_meta` key that says within how many delegations a call is made."""
_read_error = Decoder(ErrorBody).decode


def depth_within(exchange: Exchange, above: int) -> int:
    """How many delegations this request is within: `above` are those that our whole process is within."""
    try:
        told = decode((exchange.meta or {})[DEPTH_KEY], type=int)
    except (KeyError, MsgspecError):
        told = 0
    return max(told, above)


class Calls:
    """Whatever goes wrong with a call is an outcome. What is not in the toolset is refused (K-15)."""

    def __init__(self, exchange: Exchange, toolset: Toolset, dispatch: Handler, depth: int) -> None:
        """`dispatch`: where a client's requests begin, before any guard."""
        self._exchange = exchange
        self._toolset = toolset
        self._dispatch = dispatch
        # Progress of the one call is no progress of the whole, so nobody is told of it.
        meta = {key: value for key, value in (exchange.meta or {}).items() if key != "progressToken"}
        self._meta: Fields = {**meta, DEPTH_KEY: as_raw(depth + 1)}

    async def __call__(self, use: Use) -> Outcome:
        name = self._toolset.find(use.name)
        if name is None:
            return Outcome(use.id, not_on_offer(use.name), is_error=True)
        if not isinstance(use.input, dict):
            return Outcome(use.id, "the input of a tool is an object", is_error=True)
        try:
            return _outcome(use.id, await self._call(name, use.input))
        except PlaitError as problem:
            return Outcome(use.id, str(problem), is_error=True)
        except Exception:
            _log.exception("a delegated call of %s failed", name)
            return Outcome(use.id, f"{name} failed; the log of plait says more", is_error=True)

    async def _call(self, name: str, arguments: dict[str, object]) -> Reply:
        made = {"name": name, "arguments": arguments, "_meta": self._meta}
        params: Fields = {key: as_raw(value) for key, value in made.items()}
        asker = self._exchange
        return await self._dispatch(
            Exchange(asker.id, "tools/call", params, name, asker.caller, dict(self._meta))
        )


def _outcome(id: str, reply: Reply) -> Outcome:
    if reply.error is not None:
        body = _read_error(reply.error)
        return Outcome(id, f"{body.message} ({body.code})", is_error=True)
    if reply.asks:
        words = "the tool wants to ask the user something, which cannot be done from within a delegated task"
        return Outcome(id, words, is_error=True)
    said = in_words(CallToolResult.of(decode(reply.result or EMPTY, type=dict[str, object])))
    return Outcome(id, str(said), is_error=said.is_error)
