"""What an instance tells the rest of the compositor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from plait.session.exchange import Exchange, OnProgress, Reply
from plait.wire.envelope import Fields

if TYPE_CHECKING:
    from plait.mounts.instance import Instance


class Surroundings(Protocol):
    """Whoever it belongs to."""

    def state_changed(self, instance: Instance) -> None: ...
    def lists_changed(self, instance: Instance) -> None: ...
    def heard(self, instance: Instance, method: str, params: Fields) -> None: ...
    def watched(self, instance: Instance) -> bool:
        """Does a client wait for what this server may say unasked?"""

    async def consulted(
        self,
        instance: Instance,
        method: str,
        params: Fields,
        on_progress: OnProgress,
        working_for: Sequence[Exchange],
    ) -> Reply: ...


class Supporting(Protocol):
    """Whatever knows what a server has declared."""

    def supports(self, capability: str, detail: str | None = None) -> bool: ...
