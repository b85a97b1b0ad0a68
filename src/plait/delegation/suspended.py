"""Tasks that wait for a client's next call: each can be taken up once, and not for ever."""

import asyncio
import secrets

from plait.delegation.job import Job

LIFETIME = 600.0
"""Seconds; the seal around the state holds no longer either."""
MOST = 1000


class Waiting:
    """By an id that only whoever asked is given. What was taken up is gone: no tool runs twice."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Job, float]] = {}

    def put(self, job: Job) -> str:
        now = asyncio.get_running_loop().time()
        self._waiting = {id: each for id, each in self._waiting.items() if each[1] > now}
        while len(self._waiting) >= MOST:
            del self._waiting[next(iter(self._waiting))]
        id = secrets.token_urlsafe(16)
        self._waiting[id] = job, now + LIFETIME
        return id

    def take(self, id: str) -> Job | None:
        job, expires = self._waiting.pop(id, (None, 0.0))
        return job if expires > asyncio.get_running_loop().time() else None
