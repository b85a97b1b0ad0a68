"""The line of a file that a problem is about, without the secrets that stand on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from plait.config.document import Document
from plait.config.masking import MASK, printable, secret_spans
from plait.config.syntax import Node

_Span = tuple[int, int]

# What is shown is listed and everything else is hidden, not only what stands under `env` and `headers`:
# a misspelled key is exactly what an excerpt is about, and `"haeders"` holds secrets too. So do URLs.
# Compared in lower case and without underscores, since most have two spellings.
_PROGRAM = (
    "command",
    "cmd",
    "args",
    "module",
    "cwd",
    "type",
    "transport",
    "transporttype",
    "disabled",
    "enabled",
)
_NAMES = ("name", "prefix", "separator", "namebudget")
_TOOLS = ("tools", "hiddentools", "includetools", "enabledtools", "excludetools", "disabledtools")
_LIMITS = ("timeout", "starttimeout", "startwait", "maxmessagebytes", "memory", "processes", "pagesize")
_MORE_LIMITS = ("concurrency", "queue", "sanitise", "sanitize")
_SHOWN_KEYS = frozenset((*_PROGRAM, *_NAMES, *_TOOLS, *_LIMITS, *_MORE_LIMITS))
_OWN_KEYS = _SHOWN_KEYS | {"builtin", "workspace", "allowedtools"}
_SECTIONS = frozenset(("rules", "policy", "results", "audit", "limits"))
_POLICIES = frozenset(("commands", "urls", "commandpolicy", "urlpolicy"))
_RULE = ("allow", "deny", "reason", "mode", "allowlist", "denylist", "shell")
_URLS_AND_RESULTS = ("enabled", "allowprivate", "ports", "maxbytes", "tool", "stripinvisible", "dir")
_GUARD_KEYS = frozenset((*_RULE, *_URLS_AND_RESULTS, *_LIMITS, *_MORE_LIMITS))

_Level = Literal["file", "projects", "servers", "settings", "own", "guards", "shown", "hidden"]
_LEVELS_OF_A_FILE: dict[str, _Level] = {
    "mcpServers": "servers",
    "mcp_servers": "servers",
    "servers": "servers",
    "tools": "file",
    "projects": "projects",
    "plait": "own",
    "security": "guards",
    "allowed_tools": "shown",
    "allowedTools": "shown",
}


def excerpt(document: Document, offset: int) -> str:
    """What can be shown of the line, near enough to the offset to be read."""
    start, end = document.line_around(offset)
    shown: list[str] = []
    position = start
    for hidden_start, hidden_end in sorted(_hidden(document, start, end)):
        if hidden_end > position:
            shown += (document.text[position : max(position, hidden_start)], MASK)
            position = hidden_end
    shown.append(document.text[position : max(position, end)])
    cut_before = "" if start in document.line_starts else "…"
    cut_behind = "" if document.text[end : end + 1] in ("", "\r", "\n") else "…"
    return f"{cut_before}{printable(''.join(shown)).strip()}{cut_behind}"


def _hidden(document: Document, start: int, end: int) -> Iterator[_Span]:
    """Every span on the line that must not be shown."""
    for span in (*document.comments, *_secrets(document, document.root, "file", start, end)):
        if span[0] < end and start < span[1]:
            yield span


def _secrets(document: Document, node: Node, level: _Level, start: int, end: int) -> Iterator[_Span]:
    """What is to be hidden in a tree, as far as it reaches into the line."""
    if node.start >= end or node.end <= start:
        return
    if isinstance(node.value, dict):
        for key, member in node.value.items():
            yield from _secrets(document, member, _level_below(level, key), start, end)
    elif isinstance(node.value, tuple):
        for item in node.value:
            yield from _secrets(document, item, level, start, end)
    elif isinstance(node.value, str) and level != "shown":
        yield from secret_spans(document.text, node.start + 1, node.end - 1)
    elif level != "shown":
        yield node.start, node.end


def _level_below(level: _Level, key: str) -> _Level:
    match level:
        case "file":
            return _LEVELS_OF_A_FILE.get(key, "hidden")
        case "projects":
            return "file"
        case "servers":
            return "settings"  # an entry: it has the same kind of keys, and `plait` among them
        case "settings" if key == "plait":
            return "settings"
        case "settings" if _folded(key) in _SHOWN_KEYS:
            return "shown"
        case "own" if _folded(key) in _SECTIONS:
            return "guards"
        case "own" if _folded(key) in _OWN_KEYS:
            return "shown"
        case "guards" if _folded(key) in _POLICIES:
            return "guards"
        case "guards" if _folded(key) in _GUARD_KEYS:
            return "shown"
        case _:
            return "hidden"


def _folded(key: str) -> str:
    return key.replace("_", "").lower()
