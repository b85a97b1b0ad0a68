"""The warning of a compositor that was dropped with servers still mounted."""

import sys
import warnings
from collections.abc import Sequence

_WHY = {
    "created": "it was never used",
    "active": "its `async with` block was never left",
    "closed": "they were still there after it was left",
}


def warn(state: str, prefixes: Sequence[str]) -> None:
    """On stderr too: a ResourceWarning is silent by default, and processes may be running."""
    if not prefixes:
        return
    names = ", ".join(repr(prefix) for prefix in prefixes)
    text = f"COMPOSITOR LEAK: a compositor was dropped with {len(prefixes)} mounted servers ({names}): "
    text += f"{_WHY[state]}; use `async with Compositor() as compositor`"
    sys.stderr.write(f"{text}\n")
    warnings.warn(text, ResourceWarning, stacklevel=3)
