"""What is wrong in a file, where, and what to do about it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from plait.config.masking import quoted
from plait.errors import ConfigError

Severity = Literal["error", "warning"]


class Where(Struct, frozen=True):
    """A place in a file: line and column count from 1, path is the way there through the document."""

    file: str
    line: int
    column: int
    path: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Problem(Struct, frozen=True):
    """One finding; `plait.config.codes` lists the codes. None of its texts holds the value of a variable."""

    code: str
    message: str
    where: Where | None = None
    server: str | None = None
    excerpt: str = ""
    hints: tuple[str, ...] = ()
    severity: Severity = "error"

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message

    def render(self) -> str:
        """The block that people read in a terminal."""
        lines = [f"{self.severity}[{self.code}]: {self.message}"]
        if self.where is not None:
            lines.append(f"  --> {self.where}   {self.where.path}".rstrip())
        if self.excerpt:
            lines.append(f"   |      {self.excerpt}")
        if self.server is not None and self.severity == "error":
            lines.append(f"   = server {quoted(self.server)} is not started; the others are not affected")
        lines.extend(f"   = {hint}" for hint in self.hints)
        return "\n".join(lines)


class ConfigFileError(ConfigError):
    """A file of which nothing can be used. Its problem knows the place, and renders as any other."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem
