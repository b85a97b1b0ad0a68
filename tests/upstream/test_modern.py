"""Our side of a conversation with a modern server."""

import pytest
from msgspec.json import decode

from clock import jumping, now, quiet
from fakes import Message, Refusal
from modern_fakes import ModernServer
from plait.errors import UpstreamBroken
from plait.session.exchange import Reply
from plait.upstream.base import Link
from plait.upstream.client import Listener
from plait.upstream.modern import ModernSession
from plait.upstream.opening import Behalf
from plait.upstream.trial import Trial
from plait.wire.address import as_raw
from plait.wire.envelope import Fields
from plait.wire.spec import Era
from seams import FakeCaller


class Ears(Listener):
    def __init__(self) -> None:
        self.notes: list[tuple[str, Message]] = []
        self.counts: list[str] = []
        self.ends: list[str] = []

    def heard(self, method: str, params: Fields) -> None:
        self.notes.append((method, {key: decode(value) for key, value in params.items()}))

    def counted(self, what: str, detail: str) -> None:
        self.counts.append(what)

    def ended(self, reason: str) -> None:
        self.ends.append(reason)


async def opened(server: ModernServer, ears: Listener | None = None) -> Link:
    async def behalf() -> Behalf:
        return Behalf({}, "2026-07-28")

    return await server.open(ears or Listener(), behalf())


@jumping
async def test_what_a_modern_server_has_no_word_for_is_done_here() -> None:
    server = ModernServer("s", tools=["t"])
    link = await opened(server)
    assert (await link.request("ping", None)).error is None
    assert (await link.request("logging/setLevel", {"level": as_raw("info")})).error is None
    link.notify("notifications/roots/list_changed")
    await quiet()
    assert [method for method, _ in server.requests] == ["server/discover", "subscriptions/listen"]
    assert server.notifications == []
    assert link.supports("resources", "subscribe")
    assert not link.supports("prompts", "listChanged")
    assert "ModernSession s: 2026-07-28" in repr(link)
    await link.aclose()


@jumping
async def test_what_comes_untagged_passes_and_what_comes_on_no_stream_is_counted() -> None:
    server, ears = ModernServer("s", tools=["t"]), Ears()
    link = await opened(server, ears)
    await quiet()
    server.notify("notifications/message", {"level": "info", "data": 1})
    server.tell(999, "notifications/tools/list_changed")
    server.tell(server.stream_of("toolsListChanged"), "notifications/tools/list_changed", odd=1)
    server.ask("q", "roots/list")
    await quiet()
    assert ears.notes == [
        ("notifications/message", {"level": "info", "data": 1}),
        ("notifications/tools/list_changed", {"odd": 1}),
    ]
    assert ears.counts == ["notification on a stream that is not open", "request of a modern server's"]
    assert server.wire.replies == {}
    server.end()
    await quiet()
    assert ears.ends == ["it exited with code 1"]
    await link.aclose()


@jumping
async def test_a_server_that_refuses_our_revision_is_asked_anew_next_time() -> None:
    server = ModernServer("s", tools=["t"])
    link = await opened(server)
    assert server.memory.recall(now()) is Era.MODERN
    server.answers["tools/call"] = lambda params: Refusal(-32022, "no")
    exchange = FakeCaller().exchange("tools/call", name="t")
    reply = await link.request("tools/call", exchange.params, exchange)
    assert reply.error is not None
    assert decode(reply.error)["code"] == -32603
    assert server.memory.recall(now()) is None
    await link.aclose()


@jumping
async def test_a_question_where_none_may_be_asked_is_a_broken_answer() -> None:
    server = ModernServer("s", tools=["t"])
    link = await opened(server)
    server.answers["tools/list"] = lambda params: {"resultType": "input_required", "requestState": "x"}
    with pytest.raises(UpstreamBroken, match="input_required"):
        await link.request("tools/list", None)
    await link.aclose()


@jumping
async def test_a_server_that_does_not_listen_is_used_without() -> None:
    server = ModernServer("s", tools=["t"])
    server.listen = lambda id, wanted: server.wire.say(  # type: ignore[method-assign]
        {"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}
    )
    link = await opened(server)
    assert isinstance(link, ModernSession)
    await quiet()
    refused = await link.request("resources/subscribe", {"uri": as_raw("x:1")})
    assert refused.error is not None
    assert len(server.asked("subscriptions/listen")) == 2
    await link.aclose()


def test_the_end_of_a_server_on_trial_is_told_when_the_trial_is_over() -> None:
    ears = Ears()
    trial = Trial(ears)
    trial.heard("m", {})
    trial.counted("c", "")
    trial.ended("gone")
    assert (ears.notes, ears.counts, ears.ends) == ([("m", {})], ["c"], [])
    trial.passed()
    assert ears.ends == ["gone"]
    answers: list[Reply] = []
    trial.consulted(b"1", "roots/list", {}, answers.append, None)
    trial.retracted(b"1")
    assert answers[0].error is not None
