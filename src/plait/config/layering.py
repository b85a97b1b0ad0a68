"""Put what one file says on top of what the files before it say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

Fact = TypeVar("Fact", bound=Struct)


class Changes(Struct, frozen=True):
    """What an object of a file sets in a fact of this kind; the rest stays as it was."""

    kind: type[Struct]
    values: dict[str, object]


class Joined(Struct, frozen=True):
    """Items that add to those of earlier files instead of taking their place."""

    items: tuple[object, ...]
    in_front: bool = False


def changed(fact: Fact, values: Mapping[str, object]) -> Fact:
    """The fact with these values, each put on what it has."""
    return replace(fact, **{name: _on_top(getattr(fact, name), value) for name, value in values.items()})


def _on_top(before: object, value: object) -> object:
    match value:
        case Changes(kind=kind, values=values):
            return changed(before if isinstance(before, kind) else kind(), values)
        case Joined(items=items) if isinstance(before, tuple):
            return (*items, *before) if value.in_front else (*before, *items)
        case dict() if isinstance(before, dict):
            return {**before, **value}
        case _:
            return value
