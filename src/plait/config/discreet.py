"""Facts with secrets in them, whose representation shows the secrets' names only."""

from __future__ import annotations

from msgspec import Struct


class Discreet(Struct, frozen=True):
    """A fact with secrets in it; its representation, rich's too, shows their names only."""

    def _masked(self) -> dict[str, object]:
        """What to show in place of some fields."""
        return {}

    def __rich_repr__(self) -> list[tuple[str, object]]:
        masked = self._masked()
        return [(name, masked.get(name, getattr(self, name))) for name in self.__struct_fields__]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"
        )
