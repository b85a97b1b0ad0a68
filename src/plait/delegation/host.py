"""The client's own model as a brain, asked by sampling: it needs no key of ours.

In the handshake era we ask while the call runs. In the modern one "a server never sends a JSON-RPC request":
the call is answered with `input_required`, and goes on when the client calls again with the answer.
"""

from collections.abc import Mapping

from msgspec import MsgspecError, Raw
from msgspec.json import Decoder, decode

from plait.delegation.conversation import Answer, Asked, Block, Conversation, Returned, Stop, Turn, Use
from plait.delegation.loop import Say
from plait.delegation.schema import Toolset
from plait.errors import DelegationFailed
from plait.session.exchange import Caller, Exchange
from plait.session.negotiation import may_ask
from plait.wire.address import as_raw
from plait.wire.envelope import EMPTY, ErrorBody, Fields

METHOD = "sampling/createMessage"
_STOPS = {"toolUse": Stop.CALLS, "maxTokens": Stop.CUT}
_read_error = Decoder(ErrorBody).decode


def absence(caller: Caller) -> str | None:
    """Why the model of this client cannot be asked; None if it can."""
    return may_ask(caller.capabilities, METHOD, {})


def takes_tools(caller: Caller) -> bool:
    return may_ask(caller.capabilities, METHOD, {"tools": EMPTY}) is None


def question(conversation: Conversation, toolset: Toolset) -> dict[str, object]:
    """The params of the request. An empty toolset is not mentioned: not every client knows the word."""
    asked: dict[str, object] = {
        "messages": [_message(turn) for turn in conversation.turns],
        "maxTokens": conversation.max_tokens,
    }
    return {**asked, "tools": toolset.sampling()} if toolset.definitions else asked


def _message(turn: Turn) -> Block:
    match turn:
        case Asked(task=task):
            return {"role": "user", "content": {"type": "text", "text": task}}
        case Answer(content=content):
            return {"role": "assistant", "content": list(content)}
        case Returned(outcomes=outcomes):
            return {
                "role": "user",
                "content": [_result(each.id, each.text, each.is_error) for each in outcomes],
            }


def _result(id: str, text: str, is_error: bool) -> Block:
    block: Block = {"type": "tool_result", "toolUseId": id, "content": [{"type": "text", "text": text}]}
    return {**block, "isError": True} if is_error else block


def read(result: object) -> Answer:
    """Raises DelegationFailed. `stopReason` is any word, or none: what we do not know is the end."""
    content = result.get("content") if isinstance(result, Mapping) else None
    blocks = [
        each for each in (content if isinstance(content, list) else [content]) if isinstance(each, dict)
    ]
    if not isinstance(result, Mapping) or not blocks:
        raise DelegationFailed("the client's model gave no message")
    texts = [str(block.get("text", "")) for block in blocks if block.get("type") == "text"]
    uses = [
        Use(str(block.get("id", "")), str(block.get("name", "")), block.get("input"))
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    return Answer(blocks, "\n".join(texts), uses, _STOPS.get(str(result.get("stopReason")), Stop.DONE))


class AskingHost:
    """A client of the handshake era, asked while its call runs."""

    def __init__(self, exchange: Exchange, toolset: Toolset) -> None:
        self._exchange = exchange
        self._toolset = toolset

    async def think(self, conversation: Conversation, say: Say) -> Answer:
        params: Fields = {key: as_raw(value) for key, value in question(conversation, self._toolset).items()}
        reply = await self._exchange.caller.ask(METHOD, params, None, self._exchange.id)
        if reply.error is not None:
            raise DelegationFailed(f"the client's model was not asked: {_words(reply.error)}")
        return read(decode(reply.result or EMPTY))


def _words(error: Raw) -> str:
    try:
        body = _read_error(error)
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return "the client refused, and did not say why in a way that can be read"
    return f"{body.message} ({body.code})"
