"""A process that makes audited calls, for tests that kill it or take its disk away.

`D name` on stdout: the call was dispatched. `A name`: its caller has the answer. `R name`: refused.
"""

import asyncio
import itertools
import json
import os
import resource
import sys
from pathlib import Path

from plait.pipeline.audit import AuditLog, Mode
from plait.pipeline.ledger_check import check
from plait.pipeline.ledger_files import KEY, load_key
from plait.session.exchange import Exchange, Reply
from plait.wire.address import as_raw
from plait.wire.content import text_result

DONE = Reply(result=text_result("done"))


class Client:
    identity = "anonymous"
    revision = "2025-11-25"


CLIENT = Client()


def say(word: str, name: str) -> None:
    """At once: what was said before a kill was said."""
    os.write(1, f"{word} {name}\n".encode())


async def dispatch(exchange: Exchange) -> Reply:
    say("D", exchange.address)
    await asyncio.sleep(0)
    return DONE


async def call(log: AuditLog, name: str) -> bool:
    params = {"name": as_raw(name), "arguments": as_raw({"path": name, "token": "x" * 40})}
    reply = await log(Exchange(b"1", "tools/call", params, name, CLIENT), dispatch)  # type: ignore[arg-type]
    say("A" if reply is DONE else "R", name)
    return reply is DONE


# ---- until killed


async def endless(folder: Path, mode: Mode) -> None:
    """Four clients at once, and files that are full soon."""
    log = AuditLog(folder, mode, segment_bytes=16_000)
    async with asyncio.TaskGroup() as group:
        for client in range(4):
            group.create_task(_client(log, client))


async def _client(log: AuditLog, client: int) -> None:
    for number in itertools.count():
        await call(log, f"t__{client}_{number}")


# ---- until the disk is full, and on


async def filling(folder: Path, mode: Mode) -> None:
    """The disk is a small one (a mount), or one that is said to be full past a limit."""
    ballast = folder.parent / "ballast"
    ballast.write_bytes(bytes(200_000))
    if folder.parent.name != "mount":
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    log = AuditLog(folder, mode)
    refused = await _until_full(log, folder)
    whole = written(folder)[-1:] == b"\n"
    ballast.unlink()
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    again = await call(log, "t__again")
    await log.aclose()
    report = check(folder, load_key(folder / KEY))
    [stream] = report.streams
    told = {"refused": refused, "whole": whole, "again": again, "problems": len(report.problems)}
    print(json.dumps({**told, "lost": stream.lost, "calls": stream.calls}), flush=True)


def written(folder: Path) -> bytes:
    [path] = folder.glob("*.jsonl")
    return path.read_bytes()


async def _until_full(log: AuditLog, folder: Path) -> int:
    """Calls until the file stops growing, and then thirty more. How many of them were refused."""
    size, refused, still = -1, 0, 0
    for number in itertools.count():
        refused += not await call(log, f"t__{number}")
        now = len(written(folder))
        still = still + 1 if now == size else 0
        size = now
        if still == 30:
            return refused
    raise AssertionError


def main() -> None:
    what, folder, mode = sys.argv[1:]
    chosen: Mode = "strict" if mode == "strict" else "best_effort"
    asyncio.run((endless if what == "endless" else filling)(Path(folder), chosen))


if __name__ == "__main__":
    main()
