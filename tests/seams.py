"""A mounted server and a client as routing sees them, for tests."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Raw
from msgspec.json import decode

from fakes import Message, item
from plait.errors import PlaitError
from plait.routing.catalog import Item, read_items
from plait.routing.naming import MountPrefix
from plait.session.exchange import Exchange, OnProgress, Reply
from plait.wire.address import as_raw, read_address
from plait.wire.envelope import EMPTY, Fields
from plait.wire.spec import LATEST_HANDSHAKE, Kind


class FakeOffer:
    """A mounted server as routing sees it. It answers with `replies`, and `{}` when there are no more."""

    pinned = False

    def __init__(self, prefix: str, supports: Iterable[str] = (), **lists: Sequence[str | Message]) -> None:
        self.prefix = MountPrefix(prefix) if prefix else MountPrefix.none()
        self.lists = lists
        self.hidden: set[str] = set()
        self.requests: list[tuple[str, Message]] = []
        self.replies: list[Reply | PlaitError] = []
        self._supports = set(supports)

    def listed(self, kind: Kind) -> Sequence[Item]:
        entries = [as_raw(item(kind, key)) for key in self.lists.get(kind.value, ())]
        return read_items(entries, kind)[0]

    def exposes(self, tool: str) -> bool:
        return tool not in self.hidden

    async def request(self, method: str, params: Fields | None, exchange: Exchange | None = None) -> Reply:
        self.requests.append((method, {key: decode(value) for key, value in (params or {}).items()}))
        reply = self.replies.pop(0) if self.replies else Reply(result=EMPTY)
        if isinstance(reply, PlaitError):
            raise reply
        return reply

    def notify(self, method: str, params: Fields | None = None) -> None: ...

    def supports(self, capability: str, detail: str | None = None) -> bool:
        return (capability if detail is None else f"{capability}.{detail}") in self._supports


class FakeCaller:
    """A client as routing sees it."""

    def __init__(
        self,
        identity: str = "somebody",
        capabilities: Mapping[str, object] | None = None,
        revision: str = LATEST_HANDSHAKE,
    ) -> None:
        self.identity = identity
        self.revision = revision
        self.capabilities: Fields = {key: as_raw(value) for key, value in (capabilities or {}).items()}
        self.level: int | None = None
        self.heard: list[tuple[str, Message]] = []
        self.asked: list[tuple[str, Message]] = []
        self.answer: Reply | None = Reply(result=EMPTY)
        """What it answers a question with; None: nothing, ever."""

    def notify(self, method: str, params: Fields | None, within: bytes | None = None) -> None:
        self.heard.append((method, {key: decode(value) for key, value in (params or {}).items()}))

    async def ask(
        self,
        method: str,
        params: Fields | None,
        on_progress: OnProgress | None = None,
        within: bytes | None = None,
    ) -> Reply:
        self.asked.append((method, {key: decode(value) for key, value in (params or {}).items()}))
        if self.answer is None:
            await asyncio.get_running_loop().create_future()
        assert self.answer is not None
        return self.answer

    def exchange(self, method: str, **params: object) -> Exchange:
        """A request of its."""
        fields = {key: as_raw(value) for key, value in params.items()}
        return Exchange(b"1", method, fields, read_address(method, fields), self)


def result_of(reply: Reply) -> Message:
    assert reply.result is not None, bytes(reply.error or b"").decode()
    result: Message = decode(reply.result)
    return result


def error_of(reply: Reply) -> Message:
    assert reply.error is not None, bytes(reply.result or Raw(b"")).decode()
    error: Message = decode(reply.error)
    return error
