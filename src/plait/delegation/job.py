"""One task while it is being done: what was asked, who does it, and what it has come to."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.json import Decoder

from plait.config.delegation import DelegationTarget
from plait.delegation.conversation import Conversation, Finished
from plait.delegation.schema import Toolset
from plait.providers.pinned.toolbox import in_both_forms
from plait.session.exchange import Reply

LONGEST_TASK = 100_000
"""Characters."""
_WHO = Meta(
    description="Who is to do it; null: it is decided which one fits.",
    extra_json_schema={"enum": [*(each.value for each in DelegationTarget), None]},
)
_GLOBS = Meta(description="Patterns of the tools that it may use; null: all that you may use.")


class Task(Struct, forbid_unknown_fields=True):
    """The arguments of `delegate_task` (X-30)."""

    task: Annotated[
        str, Meta(description="What is to be done, in full.", min_length=1, max_length=LONGEST_TASK)
    ]
    target: Annotated[str | None, _WHO] = None
    model: Annotated[str | None, Meta(description="One of the models that are allowed.")] = None
    tools: Annotated[list[str] | None, _GLOBS] = None
    max_turns: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="How often it is asked at most.")
    ] = None


read_task = Decoder(Task).decode


class Job(Struct):
    given: Task
    target: DelegationTarget
    reason: str
    conversation: Conversation
    toolset: Toolset

    def done(self, finished: Finished) -> Reply:
        told: dict[str, object] = {
            "status": "delegated",
            "target": self.target.value,
            "response": finished.text,
            "task": self.given.task,
            "reason": self.reason,
            "turns": self.conversation.answers,
            "tool_calls": self.conversation.calls,
            "tokens": self.conversation.tokens,
            "truncated": finished.truncated,
        }
        return Reply(result=in_both_forms(told))
