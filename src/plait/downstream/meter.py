"""How often somebody may ask: so many requests in a minute, saved up for a minute at most."""

import asyncio
import math

from plait.pipeline.grants import Identity


class Meter:
    """A bucket for each identity that has a rate. Those are few: an operator wrote them down."""

    def __init__(self) -> None:
        self._buckets: dict[str, tuple[float, float]] = {}
        """What is left, and when that was."""

    def wait(self, identity: Identity) -> int:
        """Seconds until the next request may come; 0: it may come now, and counts."""
        if identity.rate is None:
            return 0
        now = asyncio.get_running_loop().time()
        left, since = self._buckets.get(identity, (float(identity.rate), now))
        left = min(float(identity.rate), left + (now - since) * identity.rate / 60)
        if left < 1:
            self._buckets[identity] = left, now
            return math.ceil((1 - left) * 60 / identity.rate)
        self._buckets[identity] = left - 1, now
        return 0
