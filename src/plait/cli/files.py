"""Which configuration a command works with."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from plait.config.load import load
from plait.config.model import Config

OWN = "plait.json"
FOREIGN = (".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json")


def find(given: Sequence[str]) -> Config | None:
    """The files that were named, or ours in this folder, or none: then the built-in tools are served.

    Files of other programs are never read unasked: they name commands, and we would run them.
    """
    if given:
        return load([Path(path) for path in given], os.environ, Path.cwd())
    if Path(OWN).is_file():
        return load([Path(OWN)], os.environ, Path.cwd())
    for path in FOREIGN:
        if Path(path).is_file():
            print(
                f"note: {path} is here; it names commands, so it is used only with: -c {path}",
                file=sys.stderr,
            )
    return None
