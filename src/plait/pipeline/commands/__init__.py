"""Which commands may be run: read as plain words, allow-listed by file, judged by their arguments."""

from plait.pipeline.commands.policy import DEFAULT_ALLOW, DEFAULT_DENY, CommandPolicy
from plait.pipeline.commands.verdicts import Approved, Command, Pipeline, Redirection, Refusal

__all__ = [
    "DEFAULT_ALLOW",
    "DEFAULT_DENY",
    "Approved",
    "Command",
    "CommandPolicy",
    "Pipeline",
    "Redirection",
    "Refusal",
]
