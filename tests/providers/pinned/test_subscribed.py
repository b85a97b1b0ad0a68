"""The tools of `resources` that watch, and the records they leave."""

import gc

import pytest

from clients import Client
from clock import jumping, quiet
from fakes import FakeServer, Message, Refusal, words
from pinned_talk import LIST_CHANGED, before, behind, fail, look, only, server, settle, updates, use
from plait.errors import UpstreamUnavailable
from plait.providers.pinned import subscribed
from plait.providers.pinned.resources import ResourcesServer
from plait.routing.naming import MountPrefix

INDEX = ResourcesServer.subscriptions_resource
ONE: Message = {"server": "a", "uri": "a://1"}
RECORD = {**ONE, "pinned": False, "present": True, "active": True, "last_error": None}
NOTHING: Message = {"subscriptions": [], "list_subscriptions": []}


@pytest.mark.requirement("S3-10", "S3-11", "S3-14", "BD-26", "K-12")
@jumping
async def test_subscribing_reaches_the_origin_under_its_own_uri_and_its_updates_reach_the_client() -> None:
    fake = server("a", "a://1")
    async with before(fake) as (made, client), Client(made) as other:
        assert await use(client, "subscribe", **ONE) == {"ok": True}
        assert fake.asked("resources/subscribe") == [{"uri": "a://1"}]
        fake.notify("notifications/resources/updated", {"uri": "a://1"})
        await settle()
        assert updates(client) == ["a://1"]
        assert updates(other) == []


@pytest.mark.requirement("BD-26")
@jumping
async def test_unsubscribing_reaches_the_origin_and_removes_the_record() -> None:
    fake = server("a", "a://1")
    async with before(fake) as (_, client):
        await use(client, "subscribe", **ONE)
        assert await use(client, "unsubscribe", **ONE) == {"ok": True}
        assert fake.asked("resources/unsubscribe") == [{"uri": "a://1"}]
        assert await use(client, "list_subscriptions") == NOTHING


@pytest.mark.requirement("S3-05", "BD-28")
@jumping
async def test_the_records_are_listed_by_a_tool_and_by_a_resource() -> None:
    async with before(server("a", "a://1")) as (_, client):
        await use(client, "subscribe", **ONE)
        await use(client, "subscribe_list_changes", server="a")
        records = {
            "subscriptions": [RECORD],
            "list_subscriptions": [{"server": "a", "present": True, "active": True}],
        }
        assert await use(client, "list_subscriptions") == records
        assert await look(client, INDEX) == records


@jumping
async def test_what_a_client_subscribed_to_by_itself_is_in_its_records_too() -> None:
    async with before(server("a", "a://1")) as (_, client):
        await client.send("resources/subscribe", uri="a://1")
        assert (await use(client, "list_subscriptions"))["subscriptions"] == [RECORD]


@jumping
async def test_a_client_sees_only_its_own_records() -> None:
    async with before(server("a", "a://1")) as (made, client), Client(made) as other:
        await use(client, "subscribe", **ONE)
        await use(client, "subscribe_list_changes", server="a")
        assert await use(other, "list_subscriptions") == NOTHING
        assert await look(other, INDEX) == NOTHING


@pytest.mark.requirement("BD-26")
@jumping
async def test_a_subscription_that_fails_is_recorded_with_its_error_until_it_succeeds() -> None:
    fake = server("a", "a://1")
    fake.answers["resources/subscribe"] = lambda params: Refusal(-32000, "full")
    async with before(fake) as (_, client):
        assert await fail(client, "subscribe", **ONE) == "subscribe: full (-32000)"
        failed = {**RECORD, "active": False, "last_error": "full (-32000)"}
        assert (await use(client, "list_subscriptions"))["subscriptions"] == [failed]
        del fake.answers["resources/subscribe"]
        await use(client, "subscribe", **ONE)
        assert (await use(client, "list_subscriptions"))["subscriptions"] == [RECORD]


@pytest.mark.requirement("BD-26", "BD-27", "BD-44")
@jumping
async def test_a_server_that_cannot_tell_of_changes_is_not_subscribed_to() -> None:
    plain = FakeServer("a", resources=["a://1"])
    async with before(plain) as (_, client):
        assert "has no subscriptions" in await fail(client, "subscribe", **ONE)
        assert "does not tell when its list changes" in await fail(
            client, "subscribe_list_changes", server="a"
        )
        assert await use(client, "list_subscriptions") == NOTHING
        assert "there is no server 'z'" in await fail(client, "subscribe", server="z", uri="a://1")


@pytest.mark.requirement("BD-29")
@jumping
async def test_unmounting_drops_the_records_without_asking_the_server_and_updates_the_index() -> None:
    fake, flaky = server("a", "a://1"), server("b", "b://1")
    flaky.answers["resources/subscribe"] = lambda params: Refusal()
    async with before(fake, flaky) as (made, client):
        await client.send("resources/subscribe", uri=INDEX)
        await use(client, "subscribe", **ONE)
        await use(client, "subscribe_list_changes", server="a")
        await fail(client, "subscribe", server="b", uri="b://1")
        client.notes.clear()
        await made.unmount(MountPrefix("a"))
        await made.unmount(MountPrefix("b"))
        await settle()
        assert fake.asked("resources/unsubscribe") == []
        assert updates(client) == [INDEX, INDEX]
        index = await use(client, "list_subscriptions")
        assert [each["uri"] for each in index["subscriptions"]] == [INDEX]  # type: ignore[attr-defined]
        assert index["list_subscriptions"] == []


@pytest.mark.requirement("BD-30")
@jumping
async def test_the_index_is_updated_when_a_subscribed_resource_is() -> None:
    fake = server("a", "a://1", "a://2")
    async with before(fake) as (made, client), Client(made) as other:
        for each in (client, other):
            await each.send("resources/subscribe", uri=INDEX)
        await use(client, "subscribe", **ONE)
        assert updates(client) == [INDEX]
        client.notes.clear()
        fake.notify("notifications/resources/updated", {"uri": "a://1"})
        await settle()
        assert sorted(str(uri) for uri in updates(client)) == ["a://1", INDEX]
        assert updates(other) == []


@pytest.mark.requirement("BD-27", "BD-30")
@jumping
async def test_the_index_is_updated_when_the_list_of_a_followed_server_changes() -> None:
    fake, other = server("a", "a://1"), server("b", "b://1")
    async with before(fake, other) as (_, client):
        await client.send("resources/list")
        await client.send("resources/subscribe", uri=INDEX)
        await use(client, "subscribe_list_changes", server="a")
        client.notes.clear()
        fake.lists = {**fake.lists, **FakeServer("a", resources=["a://1", "a://2"], tools=["t"]).lists}
        fake.notify(LIST_CHANGED)
        await settle()
        assert client.told(LIST_CHANGED)
        assert updates(client) == [INDEX]
        await use(client, "unsubscribe_list_changes", server="a")
        client.notes.clear()
        fake.lists = server("a", "a://3").lists
        fake.notify(LIST_CHANGED)
        await settle()
        assert updates(client) == []


@jumping
async def test_while_a_server_is_down_its_subscription_is_not_active() -> None:
    fake = server("a", "a://1")
    async with before(fake) as (_, client):
        await use(client, "subscribe", **ONE)
        fake.failures = [UpstreamUnavailable("it fell")] * 3
        fake.end("it fell")
        await quiet()
        record = only((await use(client, "list_subscriptions"))["subscriptions"])
        assert record == {**RECORD, "present": False, "active": False, "last_error": "it fell"}
        for _ in range(30):
            await settle()
        assert (await use(client, "list_subscriptions"))["subscriptions"] == [RECORD]
        assert len(fake.asked("resources/subscribe")) == 2


@jumping
async def test_a_client_that_leaves_leaves_no_record() -> None:
    fake = server("a", "a://1")
    async with behind(fake) as made:
        async with Client(made) as client:
            await settle()
            await use(client, "subscribe", **ONE)
        await settle()
        assert fake.asked("resources/unsubscribe") == [{"uri": "a://1"}]
        async with Client(made) as client:
            assert await use(client, "list_subscriptions") == NOTHING
        del client
        gc.collect()


@jumping
async def test_nobody_has_more_than_so_many_subscriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribed, "MAX_RECORDS", 2)
    async with before(server("a", "a://1")) as (_, client):
        for uri in ("a://1", "a://2"):
            await use(client, "subscribe", server="a", uri=uri)
        assert "unsubscribe from some first" in await fail(client, "subscribe", server="a", uri="a://3")


@jumping
async def test_unsubscribing_from_what_is_not_watched_is_no_error() -> None:
    fake = server("a", "a://1")
    async with before(fake) as (_, client):
        assert await use(client, "unsubscribe", **ONE) == {"ok": True}
        assert fake.asked("resources/unsubscribe") == []
        result = await client.call("resources__nonsense")
        assert "unknown tool" in words(result)
