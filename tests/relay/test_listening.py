"""`subscriptions/listen`: what modern clients hear of servers of both eras."""

import asyncio

import pytest

from clients import Client, compositor, error_of, result_of
from clock import jumping, quiet
from fakes import FakeServer, HangingServer, Message
from modern_fakes import ModernClient, ModernServer
from plait.downstream.connection import MAX_BACKLOG
from plait.errors import UpstreamRefused
from plait.wire.modern import SUBSCRIPTION_KEY
from plait.wire.spec import Kind

LISTS: Message = {"toolsListChanged": True, "promptsListChanged": False}
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CHANGED = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"


def watched(era: str = "handshake") -> FakeServer:
    capabilities: Message = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
    kind = ModernServer if era == "modern" else FakeServer
    return kind("s", tools=["t"], resources=["x:1", "x:2"], capabilities=capabilities)


def tag(id: object) -> Message:
    return {SUBSCRIPTION_KEY: id}


@jumping
async def test_a_stream_begins_with_what_is_honoured() -> None:
    other = FakeServer("o", resources=["o:1"])
    async with compositor(watched(), other) as made, ModernClient(made) as client:
        wanted: Message = {**LISTS, "resourceSubscriptions": ["x:1", "y:1", "o:1", "x:1"], "taskIds": ["t"]}
        client.request("subscriptions/listen", "L", notifications=wanted)
        told = await client.heard(ACKNOWLEDGED)
        honoured = {"toolsListChanged": True, "resourceSubscriptions": ["x:1"]}
        assert told == {"notifications": honoured, "_meta": tag("L")}


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_changes_of_a_list_come_on_the_stream_that_asked(era: str) -> None:
    changes_of_a_list(era)


@jumping
async def changes_of_a_list(era: str) -> None:
    server = watched(era)
    async with compositor(server, shared=True) as made, ModernClient(made) as client, Client(made) as old:
        await client.send("tools/list", 0)
        client.request("subscriptions/listen", 7, notifications=LISTS)
        client.request("subscriptions/listen", 8, notifications={"promptsListChanged": True})
        await client.heard(ACKNOWLEDGED)
        await old.names()
        server.lists[Kind.TOOLS] = ["t", "u"]
        if isinstance(server, ModernServer):
            server.tell(server.stream_of("toolsListChanged"), CHANGED)
        else:
            server.notify(CHANGED)
        assert await client.heard(CHANGED) == {"_meta": tag(7)}
        assert len(client.told(CHANGED)) == 1
        await quiet()
        assert old.told(CHANGED) == [{}]
        tools = result_of(await client.send("tools/list", 1))["tools"]
        assert isinstance(tools, list)
        assert [tool["name"] for tool in tools] == ["s__t", "s__u"]


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_updates_of_a_resource_come_on_the_streams_that_watch_it(era: str) -> None:
    updates_of_a_resource(era)


@jumping
async def updates_of_a_resource(era: str) -> None:
    server = watched(era)
    async with compositor(server, shared=True) as made, ModernClient(made) as client, Client(made) as old:
        for id, uris in (("a", ["x:1"]), ("b", ["x:1", "x:2"]), ("c", [])):
            client.request("subscriptions/listen", id, notifications={"resourceSubscriptions": uris})
        await old.send("resources/subscribe", uri="x:1")
        await quiet()
        assert len(client.told(ACKNOWLEDGED)) == 3
        if isinstance(server, ModernServer):
            ids = [
                id for id, wanted in server.streams.items() if wanted.get("resourceSubscriptions") == ["x:1"]
            ]
            assert len(ids) == 1
            server.tell(ids[0], UPDATED, uri="x:1")
        else:
            assert [asked["uri"] for asked in server.asked("resources/subscribe")].count("x:1") == 1
            server.notify(UPDATED, {"uri": "x:1", "odd": 1})
        await quiet()
        heard = [message["params"] for message in client.told(UPDATED)]
        assert sorted(str(params["_meta"]) for params in heard) == [str(tag("a")), str(tag("b"))]  # type: ignore[index]
        assert [params["uri"] for params in old.told(UPDATED)] == ["x:1"]
        assert "_meta" not in old.told(UPDATED)[0]


@jumping
async def test_cancelling_a_stream_ends_what_only_it_watched() -> None:
    for era in ("handshake", "modern"):
        server = watched(era)
        async with compositor(server) as made, ModernClient(made) as client:
            for id, uris in (("a", ["x:1"]), ("b", ["x:2"])):
                client.request("subscriptions/listen", id, notifications={"resourceSubscriptions": uris})
            await quiet()
            client.say("notifications/cancelled", requestId="a")
            await quiet()
            if isinstance(server, ModernServer):
                wanted = [each.get("resourceSubscriptions") for each in server.streams.values()]
                assert wanted == [None, ["x:2"]]
            else:
                assert [asked["uri"] for asked in server.asked("resources/unsubscribe")] == ["x:1"]
            assert [message for message in client.messages if "result" in message] == []


@jumping
async def test_at_our_end_a_stream_ends_with_its_result() -> None:
    async with compositor(watched()) as made, ModernClient(made) as client:
        client.request("subscriptions/listen", "L", notifications=LISTS)
        await client.heard(ACKNOWLEDGED)
        await client.connection.finish(60)
        result = result_of(client.answer("L"))
        assert result["resultType"] == "complete"
        assert result["_meta"][SUBSCRIPTION_KEY] == "L"  # type: ignore[index]


class Deaf(ModernClient):
    """Reads nothing from some time on."""

    unread = 0

    def backlog(self) -> int:
        return self.unread


@jumping
async def test_a_client_that_does_not_read_loses_its_stream_and_nothing_else() -> None:
    server = watched()
    async with compositor(server) as made, Deaf(made) as client:
        client.request("subscriptions/listen", "L", notifications={"resourceSubscriptions": ["x:1"]})
        await client.heard(ACKNOWLEDGED)
        client.unread = MAX_BACKLOG + 1
        server.notify(UPDATED, {"uri": "x:1"})
        await quiet()
        assert result_of(client.answer("L"))["resultType"] == "complete"
        assert client.told(UPDATED) == []


@jumping
async def test_a_server_that_hangs_does_not_hold_up_the_acknowledgement() -> None:
    hanging = HangingServer("h", "resources/subscribe")
    hanging.lists[Kind.RESOURCES] = ["h:1"]
    hanging.capabilities = {"resources": {"subscribe": True}}
    async with compositor(watched(), hanging) as made, ModernClient(made) as client:
        wanted = {"resourceSubscriptions": ["h:1", "x:1"]}
        client.request("subscriptions/listen", "L", notifications=wanted)
        told = await client.heard(ACKNOWLEDGED)
        assert told["notifications"] == {"resourceSubscriptions": ["x:1"]}


@jumping
async def test_what_happens_before_the_acknowledgement_comes_after_it() -> None:
    server = watched()
    hanging = HangingServer("h", "resources/subscribe")
    hanging.lists[Kind.RESOURCES] = ["h:1"]
    hanging.capabilities = {"resources": {"subscribe": True}}
    async with compositor(server, hanging) as made, ModernClient(made) as client:
        await client.send("tools/list", 0)
        client.request("subscriptions/listen", "L", notifications={"resourceSubscriptions": ["x:1", "h:1"]})
        await quiet()
        server.notify(UPDATED, {"uri": "x:1"})
        server.notify(UPDATED, {"uri": "x:1"})
        await quiet()
        assert client.told(ACKNOWLEDGED) == client.told(UPDATED) == []
        hanging.held.answer({})
        await client.heard(UPDATED)
        methods = [message.get("method") for message in client.messages[1:]]
        assert methods == [ACKNOWLEDGED, UPDATED]


@pytest.mark.parametrize(
    "wanted",
    [
        None,
        [],
        {"toolsListChanged": 1},
        {"resourceSubscriptions": "x"},
        {"resourceSubscriptions": [1]},
        {"resourceSubscriptions": [f"x:{number}" for number in range(257)]},
    ],
)
async def test_a_filter_that_is_none_is_refused(wanted: object) -> None:
    async with compositor(watched()) as made, ModernClient(made) as client:
        answer = await client.send("subscriptions/listen", notifications=wanted)
        assert error_of(answer)["code"] == -32602


@jumping
async def test_a_stream_that_a_server_ends_is_opened_again_and_everything_may_have_changed() -> None:
    server = watched("modern")
    assert isinstance(server, ModernServer)
    async with compositor(server) as made, Client(made) as client:
        await client.send("resources/subscribe", uri="x:1")
        await client.names()
        for filter in ("resourceSubscriptions", "toolsListChanged"):
            ended = server.stream_of(filter)
            server.end_stream(ended)
        server.lists[Kind.TOOLS] = ["t", "u"]
        await asyncio.sleep(5)
        assert client.told(UPDATED) == [{"uri": "x:1"}]
        assert server.stream_of("toolsListChanged") != ended
        retracted = server.stream_of("resourceSubscriptions")
        server.notify("notifications/cancelled", {"requestId": retracted})
        await asyncio.sleep(5)
        assert client.told(UPDATED) == [{"uri": "x:1"}] * 2


@jumping
async def test_a_modern_server_that_does_not_watch_says_so() -> None:
    server = watched("modern")
    assert isinstance(server, ModernServer)
    server.honours = False
    async with compositor(server) as made, Client(made) as old, ModernClient(made) as new:
        with pytest.raises(UpstreamRefused, match="does not watch"):
            await old.send("resources/subscribe", uri="x:1")
        new.request("subscriptions/listen", "L", notifications={"resourceSubscriptions": ["x:1"]})
        assert (await new.heard(ACKNOWLEDGED))["notifications"] == {}


@jumping
async def test_a_handshake_client_that_listens_is_told_what_it_lacks() -> None:

    async with compositor(watched()) as made, Client(made) as client:
        with pytest.raises(UpstreamRefused, match="-32602"):
            await client.send("subscriptions/listen", notifications={})
