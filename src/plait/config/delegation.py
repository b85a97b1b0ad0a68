"""What a user may say about handing tasks on: to whom, by which rules, and how much that may cost."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct, field

from plait.config.discreet import Discreet
from plait.config.masking import MASK, mask_url

CLAUDE_FLOW = "claude-flow"
"""What the server is called whose entry stands in the delegation itself."""
DEPTH_VARIABLE = "PLAIT_DELEGATION_DEPTH"
"""How many plaits that hand tasks on are above a process."""


class DelegationTarget(StrEnum):
    """Who does a task."""

    LOCAL = "local"
    """Whoever asked: nothing is handed on."""
    CLAUDE = "claude"
    CLAUDE_FLOW = "claude_flow"
    HOST = "host"
    """The model of the client itself, asked by sampling."""
    AUTO = "auto"
    """Whoever fits, by how complex the task looks."""

    @classmethod
    def of(cls, text: str) -> DelegationTarget:
        """However it is spelled: `ClaudeFlow`, `claude-flow`, `flow`. Raises ValueError."""
        folded = text.replace("-", "").replace("_", "").lower()
        found = _FOLDED.get(folded)
        if found is None:
            raise ValueError(f"{text!r} is none of {', '.join(each.value for each in cls)}")
        return found


_FOLDED = {each.value.replace("_", ""): each for each in DelegationTarget} | {
    "flow": DelegationTarget.CLAUDE_FLOW,
    "sampling": DelegationTarget.HOST,
}


class DelegationRule(Struct, frozen=True):
    """Tasks in which the pattern is found go to this target, with these tools."""

    pattern: str
    """A regular expression, searched for; an empty one is found in every task."""
    target: DelegationTarget = DelegationTarget.AUTO
    tools: tuple[str, ...] = ()
    """Globs of the tools that are on offer; none: all of them."""


class ComplexitySettings(Struct, frozen=True, kw_only=True):
    """How the complexity of a task is estimated, and what follows from it."""

    keywords: tuple[str, ...] = (
        *("deploy", "refactor", "architect", "design", "optimize", "migrate", "security", "audit"),
        *("review", "analyze", "orchestrate", "coordinate", "integrate", "implement", "debug"),
        *("investigate", "comprehensive", "distributed", "concurrent", "parallel", "research", "compare"),
    )
    """Counted where a word begins so."""
    keyword_weight: float = 0.26
    """For each of them that is there."""
    keyword_limit: float = 0.66
    """For all of them together."""
    question_weight: float = 0.14
    """For three question marks or more."""
    length_weight: float = 0.20
    """For 150 words or more."""
    local_below: float = 0.3
    claude_flow_above: float = 0.7


class BudgetSettings(Struct, frozen=True, kw_only=True):
    """What one task may cost."""

    tokens: int = 200_000
    """Read and written by the model in all turns."""
    seconds: float = 300.0
    tool_calls: int = 50


class FlowTask(Struct, frozen=True, kw_only=True):
    """The one tool of claude-flow that takes a whole task, for those who have no key."""

    tool: str
    """Its own name there."""
    arguments: dict[str, object] = field(default_factory=lambda: {"task": "{task}"})
    """`{task}` in a text stands for the task."""


class DelegationConfig(Discreet, frozen=True, kw_only=True):
    """Off unless something is enabled."""

    claude_enabled: bool = False
    claude_model: str = "claude-sonnet-4-20250514"
    allowed_models: tuple[str, ...] = ()
    """Globs of what else a caller may ask for."""
    max_turns: int = 10
    max_tokens: int = 4096
    """Of one answer."""
    api_key: str | None = None
    """None: what the environment calls ANTHROPIC_API_KEY."""
    base_url: str | None = None
    """None: what the environment calls ANTHROPIC_BASE_URL, or Anthropic's own."""
    retries: int = 3
    """How often a question to the model is put again; a tool is never called again."""
    claude_flow_enabled: bool = False
    claude_flow_server: str = CLAUDE_FLOW
    """The name of the server; its whole entry may stand there too."""
    claude_flow_tools: tuple[str, ...] = ()
    """Globs of those of its tools that are on offer; none: all of them."""
    claude_flow_task: FlowTask | None = None
    host_enabled: bool = False
    """Whether the client's own model may be asked."""
    rules: tuple[DelegationRule, ...] = ()
    default_target: DelegationTarget = DelegationTarget.LOCAL
    """For tasks that no rule fits."""
    fallback: str = "local"
    """Where a rule's target is not there: `local`, or the others in turn (`chain`)."""
    excluded_tools: tuple[str, ...] = ()
    """Globs of tools that no model is given, and that none can call."""
    complexity: ComplexitySettings = ComplexitySettings()
    budget: BudgetSettings = BudgetSettings()
    max_depth: int = 3
    """How many delegations may be within each other."""

    @property
    def enabled(self) -> bool:
        return self.claude_enabled or self.claude_flow_enabled or self.host_enabled

    def _masked(self) -> dict[str, object]:
        return {
            "api_key": None if self.api_key is None else MASK,
            "base_url": None if self.base_url is None else mask_url(self.base_url),
        }
