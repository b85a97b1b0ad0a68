"""Where programs of this user keep their things (XDG base directories)."""

import os
from collections.abc import Mapping
from pathlib import Path


def state_folder(environ: Mapping[str, str]) -> Path:
    """What must outlive us: the audit, notes."""
    return _below(environ, "XDG_STATE_HOME", ".local/state")


def cache_folder(environ: Mapping[str, str]) -> Path:
    """What we could find out again."""
    return _below(environ, "XDG_CACHE_HOME", ".cache")


def _below(environ: Mapping[str, str], variable: str, default: str) -> Path:
    base = environ.get(variable) or os.path.join(environ.get("HOME") or os.path.expanduser("~"), default)
    return Path(base) / "plait"
