"""Lists, prompts, completion and log messages, from servers to clients."""

import asyncio

import pytest

from clients import Client, compositor
from clock import jumping, now, quiet
from fakes import FakeServer, Message
from plait.config.model import Settings
from plait.errors import UpstreamRefused, UpstreamUnavailable
from plait.wire.spec import Kind

LOGGING: Message = {"logging": {}}
WATCHED: Message = {"resources": {"subscribe": True}}

# ---- prompts, resources, completion


@jumping
async def test_prompts_are_listed_and_fetched_under_their_exposed_names() -> None:
    async with compositor(FakeServer("a", prompts=["ask"])) as made, Client(made) as client:
        assert await client.send("prompts/list") == {"prompts": [{"name": "a__ask"}]}
        assert (await client.send("prompts/get", name="a__ask"))["description"] == "a: ask"


@jumping
async def test_resources_and_templates_keep_their_uris_and_find_their_servers() -> None:
    a = FakeServer("a", resources=["x:1"])
    b = FakeServer("b", templates=["y:{id}"])
    async with compositor(a, b) as made, Client(made) as client:
        assert await client.send("resources/list") == {"resources": [{"uri": "x:1", "name": "x:1"}]}
        templates = await client.send("resources/templates/list")
        assert templates == {"resourceTemplates": [{"uriTemplate": "y:{id}", "name": "y:{id}"}]}
        assert await client.send("resources/read", uri="x:1") == {"contents": [{"uri": "x:1", "text": "a"}]}
        assert await client.send("resources/read", uri="y:7") == {"contents": [{"uri": "y:7", "text": "b"}]}
        with pytest.raises(UpstreamRefused, match="Resource not found: z:1"):
            await client.send("resources/read", uri="z:1")


@jumping
async def test_completion_is_asked_of_the_server_under_its_own_name() -> None:
    server = FakeServer("a", prompts=["ask"], capabilities={"prompts": {}, "completions": {}})
    server.answers["completion/complete"] = lambda params: {"completion": {"values": ["x"]}}
    async with compositor(server) as made, Client(made) as client:
        ref = {"type": "ref/prompt", "name": "a__ask"}
        result = await client.send("completion/complete", ref=ref, argument={"name": "n", "value": ""})
        assert result == {"completion": {"values": ["x"]}}
        [asked] = server.asked("completion/complete")
        assert asked["ref"] == {"type": "ref/prompt", "name": "ask"}


@jumping
async def test_updates_of_a_resource_reach_those_who_watch_it() -> None:
    server = FakeServer("a", resources=["x:1", "x:2"], capabilities=WATCHED)
    async with compositor(server) as made, Client(made) as ann, Client(made) as bob:
        for client in (ann, bob):
            await client.send("resources/subscribe", uri="x:1")
        await bob.send("resources/unsubscribe", uri="x:1")
        server.notify("notifications/resources/updated", {"uri": "x:1"})
        server.notify("notifications/resources/updated", {"uri": "x:2"})
        await quiet()
        assert ann.told("notifications/resources/updated") == [{"uri": "x:1"}]
        assert bob.notes == []
        assert len(server.asked("resources/subscribe")) == 1


@jumping
async def test_what_only_a_client_that_left_watched_is_unsubscribed() -> None:
    server = FakeServer("a", resources=["x:1"], capabilities=WATCHED)
    async with compositor(server) as made:
        async with Client(made) as client:
            await client.send("resources/subscribe", uri="x:1")
        await quiet()
        assert server.asked("resources/unsubscribe") == [{"uri": "x:1"}]


@jumping
async def test_a_client_that_leaves_while_the_server_is_away_does_not_wait_for_it() -> None:
    server = FakeServer("a", resources=["x:1", "x:2"], capabilities=WATCHED)
    async with compositor(server) as made:
        async with Client(made) as client:
            for uri in ("x:1", "x:2"):
                await client.send("resources/subscribe", uri=uri)
            server.failures = [UpstreamUnavailable("gone")] * 1000
            server.end()
            await quiet()
            began = now()
        assert now() - began < 1


@jumping
async def test_a_subscription_while_the_server_is_restarted_waits_and_then_works() -> None:
    server = FakeServer("a", resources=["x:1"], capabilities=WATCHED)
    async with compositor(server) as made, Client(made) as client:
        await client.send("resources/list")
        server.end()
        await quiet()
        assert await client.send("resources/subscribe", uri="x:1") == {}
        assert len(server.wires) == 2


@jumping
async def test_after_a_restart_those_who_watch_are_told_that_all_may_have_changed() -> None:
    server = FakeServer("a", resources=["x:1"], capabilities=WATCHED)
    async with compositor(server) as made, Client(made) as client:
        await client.send("resources/subscribe", uri="x:1")
        server.end()
        await asyncio.sleep(5)
        assert server.asked("resources/subscribe") == [{"uri": "x:1"}] * 2
        assert client.notes == [("notifications/resources/updated", {"uri": "x:1"})]


# ---- logging


@jumping
async def test_servers_are_asked_for_the_minimum_of_all_levels_and_each_client_gets_its_own() -> None:
    server = FakeServer("a", tools=["t"], capabilities={"tools": {}, **LOGGING})
    async with compositor(server) as made, Client(made) as ann, Client(made) as bob:
        await ann.names()
        await ann.send("logging/setLevel", level="error")
        await bob.send("logging/setLevel", level="info")
        await ann.send("logging/setLevel", level="critical")
        await quiet()
        assert [asked["level"] for asked in server.asked("logging/setLevel")] == ["error", "info", "info"]
        for level in ("debug", "info", "critical"):
            server.notify("notifications/message", {"level": level, "logger": "db", "data": {"msg": level}})
        await quiet()
        assert [note["level"] for note in ann.told("notifications/message")] == ["critical"]
        assert bob.told("notifications/message") == [
            {"level": "info", "logger": "a/db", "data": {"msg": "info"}},
            {"level": "critical", "logger": "a/db", "data": {"msg": "critical"}},
        ]


# ---- list_changed


@jumping
async def test_a_change_is_told_to_all_clients_once_and_only_if_the_aggregate_changed() -> None:
    a, b = FakeServer("a", tools=["t"]), FakeServer("b", tools=["t"], prompts=["p"])
    async with compositor(a, b) as made, Client(made) as ann, Client(made) as bob:
        await ann.names()
        for server in (a, b):
            server.notify("notifications/tools/list_changed")
        await asyncio.sleep(1)
        assert ann.notes == bob.notes == []
        a.lists[Kind.TOOLS] = ["t", "u"]
        for _ in range(6):
            a.notify("notifications/tools/list_changed")
        await asyncio.sleep(1)
        assert ann.notes == bob.notes == [("notifications/tools/list_changed", {})]
        assert await bob.names() == ["a__t", "a__u", "b__t"]


@jumping
async def test_lists_are_read_from_servers_when_they_change_and_not_when_clients_ask() -> None:
    server = FakeServer("a", tools=["t"])
    async with compositor(server) as made, Client(made) as client:
        for _ in range(5):
            await client.names()
        assert len(server.asked("tools/list")) == 1


@jumping
async def test_pages_are_walked_by_our_own_client() -> None:
    server = FakeServer("a", tools=[f"t{number}" for number in range(7)])
    async with compositor(server, settings=Settings(page_size=3)) as made, Client(made) as client:
        assert await client.names() == [f"a__t{number}" for number in range(7)]
        page = await client.send("tools/list")
        assert len(page["tools"]) == 3  # type: ignore[arg-type]
        with pytest.raises(UpstreamRefused, match="invalid cursor"):
            await client.send("prompts/list", cursor=page["nextCursor"])
