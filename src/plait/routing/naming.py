"""The only place where a prefix meets a name.

An exposed name is `{prefix}{separator}{native}`. It must fit the strictest readers: model APIs take
at most 64 characters of `[A-Za-z0-9_-]`, and one bad name hides a whole connector. A name that does
not fit becomes a shortened one that ends in a hash of the original, the same on every machine and
whatever else is mounted. Names are never parsed back: routing is a lookup of what was exposed.
"""

import hashlib
import re
from typing import Self

from msgspec import Struct

from plait.config.model import is_prefix
from plait.errors import ConfigError

SEPARATORS = ("__", "_", ".")
LONGEST = 64
_HASHED = 8
_ILLEGAL = (re.compile(r"[^A-Za-z0-9_-]"), re.compile(r"[^A-Za-z0-9_.-]"))
"""What a name may not hold; the second where the separator is a dot."""
_NOT_PREFIX = re.compile(r"[^a-z0-9_-]+")


class MountPrefix(str):
    """A validated prefix; a raw string never is one. Empty only by `MountPrefix.none()`."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        if not is_prefix(text):
            raise InvalidPrefix(
                f"{text!r} cannot be a prefix: use a-z, 0-9, '-' and single '_', at most 50 characters, "
                "starting with a letter and not ending in '_'"
            )
        return super().__new__(cls, text)

    @classmethod
    def none(cls) -> Self:
        """Mounted without a prefix: names are exposed as they are."""
        return super().__new__(cls, "")

    @classmethod
    def of(cls, name: str) -> Self:
        """The prefix of a server called so in somebody's file; the same for the same name, always."""
        if is_prefix(name):
            return cls(name)
        text = re.sub("__+", "_", _NOT_PREFIX.sub("-", name.lower())).strip("-_")
        if not text or not text[0].isalpha():
            text = f"s-{text}".rstrip("-")
        if len(text) > 50 or not any(char.isalnum() for char in text[1:]):
            text = f"{text[:41].rstrip('-_')}-{_hash(name)}"
        return cls(text)


MCPMountPrefix = MountPrefix
"""As the seed of the compositor calls it."""


class InvalidPrefix(ConfigError, ValueError):
    """What was given as a mount prefix is none."""


class Naming(Struct, frozen=True):
    """How one compositor makes names; part of its settings."""

    separator: str = "__"
    budget: int = 0
    """Characters that the client puts in front, such as Claude Code's `mcp__plait__`."""

    def expose(self, prefix: MountPrefix, native: str) -> str:
        """The name clients see."""
        if not prefix:
            # Mounted so to keep its names as they are: an MCP App knows only those.
            return native
        full = f"{prefix}{self.separator}{native}"
        return fit(full, LONGEST - self.budget, _ILLEGAL[self.separator == "."])

    def spellings(self, prefix: MountPrefix, native: str) -> set[str]:
        """What else somebody may call it: the bare name, and the other separators' forms.

        A server without a prefix may have put one in front itself, as a composite provider does.
        """
        left, found, bare = (prefix, True, native) if prefix else native.partition("__")
        if not found:
            return {native}
        # A nested namespace, `a.b.tool`, in one form throughout (seed 004).
        nested = {f"{left}.{bare.replace('__', '.')}", f"{left}__{bare.replace('.', '__')}"}
        return {bare, *(f"{left}{separator}{bare}" for separator in SEPARATORS), *nested}


def fit(name: str, longest: int = LONGEST, illegal: re.Pattern[str] = _ILLEGAL[0]) -> str:
    """The name itself, or a shortened one with a hash of it where the strictest readers would refuse it."""
    clean = illegal.sub("_", name)
    if name and clean == name and len(name) <= longest:
        return name
    return f"{clean[: max(0, longest - _HASHED - 1)]}_{_hash(name)}"


def build_mcp_function(prefix: MountPrefix, tool: str, naming: Naming | None = None) -> str:
    """The one way to make the name of a mounted tool (S3-02)."""
    if not isinstance(prefix, MountPrefix):
        raise InvalidPrefix(f"{prefix!r} is a plain string; make it a MountPrefix first")
    if not tool:
        raise ValueError("a tool has a name")
    return (naming or Naming()).expose(prefix, tool)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:_HASHED]
