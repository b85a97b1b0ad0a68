"""Bring what was written to the disk, in groups, from a thread: the loop never waits for a disk."""

import asyncio
import contextlib
import logging
import threading

from plait.pipeline.ledger_files import Tape

_log = logging.getLogger("plait.audit")


class Syncer:
    """One thread for one ledger. Whatever is written while it syncs goes with the next group."""

    def __init__(self, window: float) -> None:
        self.failure: OSError | None = None
        """What the disk said last, if it could not."""
        self._window = window
        self._written = 0
        self._synced = 0
        self._tapes: list[Tape] = []
        self._stopping = False
        self._idle = False
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    # ---- on the loop

    def use(self, tape: Tape) -> None:
        """From now on lines go to this tape. Earlier ones are synced once more, and closed."""
        with self._changed:
            self._tapes.append(tape)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="plait audit", daemon=True)
            self._thread.start()

    def written(self, seq: int) -> None:
        self._written = seq
        # The thread says that it is idle before it looks for work, so this wakes it or it has seen it.
        if self._idle:
            with self._changed:
                self._changed.notify()

    async def durable(self, seq: int) -> None:
        """Wait for the group that has this record. Raises what the disk said if it could not."""
        if self._synced >= seq:
            return
        future = asyncio.get_running_loop().create_future()
        with self._changed:
            self._waiting.append((seq, future))
            self._changed.notify()
        await future

    def stop(self) -> None:
        """Sync the rest, close every tape, and see the thread end."""
        if self._thread is None:
            return
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()
        for tape in self._tapes:
            tape.close()
        self._tapes = []

    # ---- in the thread

    def _run(self) -> None:
        while self._wait():
            self._group()
        self._group()

    def _wait(self) -> bool:
        """Until there is something to do; then a moment longer, so that more comes along."""
        with self._changed:
            self._idle = True
            while not self._stopping and self._written == self._synced and not self._waiting:
                self._changed.wait()
            self._idle = False
            if self._window and not self._stopping:
                self._changed.wait(self._window)
            return not self._stopping

    def _group(self) -> None:
        with self._changed:
            target, tapes = self._written, tuple(self._tapes)
            waiting = [entry for entry in self._waiting if entry[0] <= target]
            self._waiting = [entry for entry in self._waiting if entry[0] > target]
        failure = _sync(tapes)
        if failure is not None:
            if self.failure is None:
                _log.error("audit records could not be brought to the disk: %s", failure)
            self.failure = failure
        self._synced = target
        with self._changed:
            for tape in tapes[:-1]:
                self._tapes.remove(tape)
                tape.close()
        _settle(waiting, failure)


def _sync(tapes: tuple[Tape, ...]) -> OSError | None:
    try:
        for tape in tapes:
            tape.sync()
    except OSError as problem:
        return problem
    return None


def _settle(waiting: list[tuple[int, "asyncio.Future[None]"]], failure: OSError | None) -> None:
    for _, future in waiting:
        with contextlib.suppress(RuntimeError):  # its loop is closed: nobody waits any more
            future.get_loop().call_soon_threadsafe(_tell, future, failure)


def _tell(future: "asyncio.Future[None]", failure: OSError | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(None)
    else:
        future.set_exception(failure)
