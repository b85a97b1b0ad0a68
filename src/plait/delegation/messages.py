"""A conversation in the words of Anthropic's Messages API, both ways."""

from collections.abc import Mapping, Sequence

from plait.delegation.conversation import Answer, Asked, Block, Conversation, Returned, Stop, Turn, Use
from plait.delegation.schema import tool_result
from plait.errors import DelegationFailed

_STOPS = {
    "tool_use": Stop.CALLS,
    "end_turn": Stop.DONE,
    "stop_sequence": Stop.DONE,
    "max_tokens": Stop.CUT,
    "pause_turn": Stop.PAUSED,
}
"""X-32. What is not here is an error: a refusal, and whatever comes later."""
_COUNTED = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def render(conversation: Conversation) -> list[Block]:
    return [_message(turn) for turn in conversation.turns]


def _message(turn: Turn) -> Block:
    match turn:
        case Asked(task=task):
            return {"role": "user", "content": task}
        case Answer(content=content):
            return {"role": "assistant", "content": list(content)}
        case Returned(outcomes=outcomes):
            return {"role": "user", "content": [tool_result(each) for each in outcomes]}


def read(message: Mapping[str, object]) -> Answer:
    """Raises DelegationFailed for an answer that is none."""
    reason = message.get("stop_reason")
    stop = _STOPS.get(str(reason))
    if stop is None:
        raise DelegationFailed(_told(reason))
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    usage = message.get("usage")
    return Answer(
        blocks, _text(blocks), _uses(blocks), stop, _tokens(usage if isinstance(usage, Mapping) else {})
    )


def _told(reason: object) -> str:
    if reason == "refusal":
        return "the model refused the task"
    return f"the model stopped for a reason that plait does not know: {reason}"


def _text(blocks: Sequence[Block]) -> str:
    """Joined with a line break (BC-55)."""
    return "\n".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")


def _uses(blocks: Sequence[Block]) -> list[Use]:
    return [
        Use(str(block.get("id", "")), str(block.get("name", "")), block.get("input"))
        for block in blocks
        if block.get("type") == "tool_use"
    ]


def _tokens(usage: Mapping[str, object]) -> int:
    counts = [usage.get(key) for key in _COUNTED]
    return sum(count for count in counts if isinstance(count, int))
