"""Calls of tools, there and back, with their progress and their cancellation."""

import asyncio

import pytest

from clients import Client, RawClient, compositor, result_of
from clock import jumping, now, quiet
from fakes import FakeServer, HangingServer, Held, Refusal, text, words
from plait.errors import UpstreamRefused

# ---- tools


@pytest.mark.requirement("S0-02", "S0-03", "S0-04", "S0-05", "S1-E10")
@jumping
async def test_tools_of_all_servers_are_listed_and_each_call_finds_its_own() -> None:
    alpha = FakeServer("alpha", tools=[{"name": "t", "description": "kept", "inputSchema": {}, "new": [1]}])
    beta = FakeServer("beta", tools=["t", "a__b"])
    async with compositor(alpha, beta) as made, Client(made) as client:
        listed = await client.session.list_tools()
        assert listed[0] == {"name": "alpha__t", "description": "kept", "inputSchema": {}, "new": [1]}
        assert [tool["name"] for tool in listed] == ["alpha__t", "beta__t", "beta__a__b"]
        assert words(await client.call("alpha__t")) == "alpha: t {}"
        assert words(await client.call("beta__t")) == "beta: t {}"
        assert words(await client.call("beta__a__b")) == "beta: a__b {}"
        assert len(alpha.asked("tools/call")) == 1


@pytest.mark.requirement("S1-E7", "S1-E1")
@jumping
async def test_with_nothing_mounted_the_list_is_empty_and_every_namespace_unknown() -> None:
    async with compositor() as made, Client(made) as client:
        assert await client.names() == []
        result = await client.call("a__t")
        assert result["isError"] is True
        assert "unknown namespace 'a'" in words(result)


@pytest.mark.requirement("S1-E2")
@jumping
async def test_a_server_without_tools_is_no_trouble() -> None:
    async with compositor(FakeServer("empty"), FakeServer("a", tools=["t"])) as made, Client(made) as client:
        assert await client.names() == ["a__t"]


@pytest.mark.requirement("S1-E3")
@jumping
async def test_a_server_that_crashes_in_its_handshake_is_left_out() -> None:
    bad = FakeServer("bad", tools=["t"])
    held = Held()
    bad.answers["initialize"] = lambda params: held
    async with compositor(bad, FakeServer("a", tools=["t"])) as made, Client(made) as client:
        await quiet()
        bad.end("it exited with code 3")
        assert await client.names() == ["a__t"]
        assert "it exited with code 3" in made.registry.mounts[0].reason


@jumping
async def test_every_byte_of_a_result_that_nobody_reads_arrives() -> None:
    odd = {
        "content": [{"type": "new", "x": {"y": [1.5, None]}}],
        "structuredContent": {"z": 10**25},
        "_meta": {"k": {}},
    }
    server = FakeServer("a", tools=["t"])
    server.answers["tools/call"] = lambda params: odd
    async with compositor(server) as made, Client(made) as client:
        assert await client.call("a__t") == odd


@jumping
async def test_a_servers_error_arrives_as_it_is() -> None:
    server = FakeServer("a", tools=["t"])
    server.answers["tools/call"] = lambda params: Refusal(-32042, "login first")
    async with compositor(server) as made, Client(made) as client:
        with pytest.raises(UpstreamRefused) as caught:
            await client.call("a__t")
        assert (caught.value.code, caught.value.message) == (-32042, "login first")


@jumping
async def test_the_list_waits_for_a_server_that_starts_and_a_later_one_announces_itself() -> None:
    quick, slow, late = FakeServer("quick", tools=["t"]), HangingServer("slow"), HangingServer("late")
    loop = asyncio.get_running_loop()
    async with compositor(quick, slow, late) as made, Client(made) as client:
        loop.call_later(2, slow.go_on)
        loop.call_later(9, late.go_on)
        await quiet()
        assert await client.names() == ["quick__t", "slow__t"]
        assert now() == pytest.approx(5, abs=0.01)
        assert client.notes == []
        await asyncio.sleep(10)
        assert client.notes == [("notifications/tools/list_changed", {})]
        assert await client.names() == ["quick__t", "slow__t", "late__t"]


@jumping
async def test_calls_run_side_by_side() -> None:
    server = FakeServer("a", tools=["t"])
    held = [Held(), Held()]
    waiting = iter(held)
    server.answers["tools/call"] = lambda params: next(waiting)
    async with compositor(server) as made, RawClient(made) as raw:
        raw.initialize()
        raw.say("tools/call", 2, name="a__t")
        raw.say("tools/call", 3, name="a__t")
        await quiet()
        held[1].answer(text("second"))
        held[0].answer(text("first"))
        await raw.answered()
        assert [message["id"] for message in raw.messages] == [1, 3, 2]
        assert words(result_of(raw.answer(2))) == "first"


# ---- cancellation and progress


@jumping
async def test_a_cancellation_reaches_the_server_and_nothing_is_answered_after_it() -> None:
    server = FakeServer("a", tools=["t"])
    held = Held()
    server.answers["tools/call"] = lambda params: held
    async with compositor(server) as made, RawClient(made) as raw:
        raw.initialize()
        raw.say("tools/list", 2)
        await raw.answered()
        raw.say("tools/call", "mine", name="a__t")
        await quiet()
        raw.say("notifications/cancelled", requestId="mine")
        await quiet()
        [cancelled] = server.told("notifications/cancelled")
        upstream_ids = len(server.requests)
        assert cancelled["requestId"] == upstream_ids, "by the id that the server knows"
        held.answer(text("too late"))
        await quiet()
        assert [message["id"] for message in raw.messages] == [1, 2]
        assert made.registry.mounts[0].counters == {"reply to nobody": 1}


@jumping
async def test_a_cancellation_of_another_client_touches_nobody_else() -> None:
    server = FakeServer("a", tools=["t"])
    held = Held()
    server.answers["tools/call"] = lambda params: held
    async with compositor(server) as made, RawClient(made) as ann, RawClient(made) as eve:
        ann.initialize()
        eve.initialize()
        ann.say("tools/call", 7, name="a__t")
        await quiet()
        eve.say("notifications/cancelled", requestId=7)
        ann.say("notifications/cancelled", requestId="7")
        await quiet()
        held.answer(text("done"))
        await ann.answered()
        assert words(result_of(ann.answer(7))) == "done"
        assert server.told("notifications/cancelled") == []


@jumping
async def test_a_client_that_is_gone_cancels_its_calls() -> None:
    server = FakeServer("a", tools=["t"])
    server.answers["tools/call"] = lambda params: Held()
    async with compositor(server) as made:
        async with RawClient(made) as raw:
            raw.initialize()
            raw.say("tools/call", 2, name="a__t")
            await quiet()
        assert len(server.told("notifications/cancelled")) == 1


@pytest.mark.requirement("X-44", "K-20")
@jumping
async def test_progress_only_increases_and_comes_under_the_clients_own_token() -> None:
    server = FakeServer("a", tools=["t"])
    held = Held()
    server.answers["tools/call"] = lambda params: held
    async with compositor(server) as made, RawClient(made) as raw:
        raw.initialize()
        raw.say("tools/call", 2, name="a__t", _meta={"progressToken": "my own", "kept": 1})
        await quiet()
        meta = server.asked("tools/call")[0]["_meta"]
        assert isinstance(meta, dict)
        assert meta["kept"] == 1
        assert meta["progressToken"] != "my own"
        for value in (0, 1, 1, 0.5, 2):
            params = {"progressToken": meta["progressToken"], "progress": value, "message": f"at {value}"}
            server.notify("notifications/progress", params)
        server.notify("notifications/progress", {"progressToken": "my own", "progress": 9})
        await quiet()
        held.answer(text("done"))
        server.notify("notifications/progress", {"progressToken": meta["progressToken"], "progress": 3})
        await raw.answered()
        await quiet()
        told = [message["params"] for message in raw.told("notifications/progress")]
        assert told == [
            {"progressToken": "my own", "progress": value, "message": f"at {value}"} for value in (0, 1, 2)
        ]


@jumping
async def test_two_clients_with_the_same_token_get_each_their_own_progress() -> None:
    server = FakeServer("a", tools=["t"])
    server.answers["tools/call"] = lambda params: Held()
    async with compositor(server) as made, RawClient(made) as ann, RawClient(made) as bob:
        for client in (ann, bob):
            client.initialize()
            client.say("tools/call", 2, name="a__t", _meta={"progressToken": 1})
        await quiet()
        tokens = [asked["_meta"]["progressToken"] for asked in server.asked("tools/call")]  # type: ignore[index]
        assert len(set(tokens)) == 2
        server.notify("notifications/progress", {"progressToken": tokens[1], "progress": 1})
        await quiet()
        assert ann.told("notifications/progress") == []
        assert [message["params"] for message in bob.told("notifications/progress")] == [
            {"progressToken": 1, "progress": 1}
        ]


@jumping
async def test_without_a_token_no_progress_is_asked_for() -> None:
    server = FakeServer("a", tools=["t"])
    async with compositor(server) as made, Client(made) as client:
        await client.call("a__t")
        assert "_meta" not in server.asked("tools/call")[0]


@jumping
async def test_a_call_that_takes_too_long_is_told_as_a_result_and_cancelled_at_the_server() -> None:
    server = FakeServer("a", tools=["t"])
    server.answers["tools/call"] = lambda params: Held()
    async with compositor(server) as made, Client(made) as client:
        result = await client.call("a__t")
        assert now() == pytest.approx(60, abs=0.01)
        assert result["_meta"] == {"plait/fault": {"kind": "timeout", "server": "a"}}
        assert len(server.told("notifications/cancelled")) == 1
