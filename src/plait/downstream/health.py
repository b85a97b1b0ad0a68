"""Are we alive, and are the servers behind us settled? For whoever watches over us."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from plait.downstream.asgi import Answer, as_json
from plait.pipeline.grants import Identity


class ServerHealth(Struct, frozen=True):
    """One server, as far as a watcher needs to know."""

    name: str
    state: str
    settled: bool
    """Has its first start come to an end, good or bad?"""
    reason: str = ""


Servers = Callable[[], Sequence[ServerHealth]]


def alive() -> Answer:
    return as_json(200, {"status": "ok"})


def ready(servers: Sequence[ServerHealth], identity: Identity | Answer) -> Answer:
    """Which servers there are is told only to those who may use all of them."""
    settled = all(server.settled for server in servers)
    told: dict[str, object] = {"status": "ready" if settled else "starting"}
    if isinstance(identity, Identity) and identity.grant.tools is None:
        told["servers"] = [
            {"name": server.name, "state": server.state, "reason": server.reason} for server in servers
        ]
    return as_json(200 if settled else 503, told)
