"""Packages that only some of us have: what is said where one is missing."""

import contextlib
from collections.abc import Iterator

from plait.errors import ConfigError


class MissingPackage(ConfigError, ImportError):
    """Something was asked for that needs a package which is not installed."""


@contextlib.contextmanager
def needing(extra: str) -> Iterator[None]:
    """Around the imports of a package that one of our extras is named for."""
    try:
        yield
    except ImportError as problem:
        raise MissingPackage(
            f"this needs the package {extra}, in a version that plait knows: "
            f"pip install 'plait[{extra}]' ({problem})"
        ) from problem
