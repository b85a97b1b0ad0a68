"""What a model and its tools have said so far, what it cost, and what comes next. Pure.

A turn is one answer of the model. What it said goes back to it verbatim, whatever is in it; then all results
of its calls together (S1-052). The words of the two APIs that we speak are elsewhere: `messages`, `host`.
"""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from plait.config.delegation import BudgetSettings, DelegationConfig
from plait.errors import DelegationFailed

Block = dict[str, object]


class Stop(Enum):
    """Why an answer ends."""

    CALLS = "it wants its calls answered"
    DONE = "it is done"
    CUT = "it reached max_tokens"
    PAUSED = "it goes on when it is asked again"


class Use(Struct, frozen=True):
    """A call that the model wants."""

    id: str
    name: str
    input: object
    """An object, if the model does as it should."""


class Outcome(Struct, frozen=True):
    """What came of a call, in words for the model."""

    id: str
    text: str
    is_error: bool = False


class Answer(Struct, frozen=True):
    content: Sequence[Block]
    """Verbatim."""
    text: str
    uses: Sequence[Use]
    stop: Stop
    tokens: int = 0
    """Read and written."""


class Asked(Struct, frozen=True):
    task: str


class Returned(Struct, frozen=True):
    outcomes: Sequence[Outcome]


Turn = Asked | Answer | Returned


class Finished(Struct, frozen=True):
    text: str
    truncated: bool = False


class Conversation:
    """One task. The model is asked as long as `hear` says that it is to be."""

    def __init__(self, task: str, config: DelegationConfig, max_turns: int | None = None) -> None:
        self.turns: list[Turn] = [Asked(task)]
        self.max_turns = config.max_turns if max_turns is None else min(max_turns, config.max_turns)
        self.answers = 0
        self.calls = 0
        self.tokens = 0
        self.seconds = 0.0
        """That were worked on it, by the clock of whoever drives this."""
        self._budget: BudgetSettings = config.budget
        self._max_tokens = config.max_tokens

    @property
    def seconds_left(self) -> float:
        return max(self._budget.seconds - self.seconds, 0.0)

    @property
    def max_tokens(self) -> int:
        """Of the next answer. Raises DelegationFailed where the next is one too many."""
        if self.answers >= self.max_turns:
            raise DelegationFailed(
                f"max turns: the model was not done after {self.max_turns}; see delegation.max_turns"
            )
        left = self._budget.tokens - self.tokens
        if left <= 0:
            raise DelegationFailed(
                f"the task used {self.tokens} tokens, and may use {self._budget.tokens}; "
                "see delegation.budget.tokens"
            )
        return min(self._max_tokens, left)

    def hear(self, answer: Answer) -> Finished | Sequence[Use]:
        """The end, or the calls to answer; none of them where the model is only to go on."""
        self.turns.append(answer)
        self.answers += 1
        self.tokens += answer.tokens
        if answer.stop is Stop.PAUSED:
            return ()
        if answer.stop is Stop.CALLS and answer.uses:
            return self._allowed(answer.uses)
        return Finished(answer.text, truncated=answer.stop is Stop.CUT)

    def _allowed(self, uses: Sequence[Use]) -> Sequence[Use]:
        """Nothing is called whose result no model would see."""
        _ = self.max_tokens
        self.calls += len(uses)
        if self.calls > self._budget.tool_calls:
            raise DelegationFailed(
                f"the model wants {self.calls} tool calls, and may have {self._budget.tool_calls}; "
                "see delegation.budget.tool_calls"
            )
        return uses

    def give(self, outcomes: Sequence[Outcome]) -> None:
        self.turns.append(Returned(outcomes))
