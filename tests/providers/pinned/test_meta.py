"""compositor_meta, as a client reads it."""

import pytest

from clients import Client, error_of, result_of
from clock import jumping
from fakes import FakeServer, Message
from pinned_talk import LIST_CHANGED, ask, before, behind, look, server, settle, somebody, updates
from plait.compositor import Compositor
from plait.config.model import ServerSettings, Settings
from plait.errors import NeedsAuth, UpstreamRefused, UpstreamUnavailable
from plait.pipeline.permissions import PermissionFilter
from plait.pipeline.rules import Rule, Rules
from plait.providers.pinned.meta import CompositorMetaServer
from plait.routing.naming import MountPrefix

SERVERS = CompositorMetaServer.servers_resource
STATE = CompositorMetaServer.server_state_resource


async def state(client: Client, name: str) -> Message:
    read = await look(client, STATE.uri(server=name))
    assert isinstance(read, dict)
    return read


async def listed(client: Client) -> list[object]:
    resources = (await client.send("resources/list"))["resources"]
    assert isinstance(resources, list)
    return [each["uri"] for each in resources]


@pytest.mark.requirement("S3-05", "S3-08", "S3-13", "BD-17")
@jumping
async def test_the_servers_are_listed_and_each_has_a_state() -> None:
    async with before(server("a", "a://1"), server("b")) as (_, client):
        assert await look(client, SERVERS) == ["a", "b", "resources", "compositor_meta"]
        uris = await listed(client)
        assert SERVERS in uris
        assert [uri for uri in uris if str(uri).endswith("/state")] == [
            "compositor://a/state",
            "compositor://b/state",
            "compositor://resources/state",
            "compositor://compositor_meta/state",
        ]
        templates = await client.send("resources/templates/list")
        assert str(templates).count("compositor://{server}/state") == 1


@pytest.mark.requirement("BD-14")
@jumping
async def test_a_server_that_runs_tells_what_it_said_of_itself_and_its_tools() -> None:
    fake = FakeServer("a", tools=["t", "u"], instructions="Use t first.")
    async with before(fake) as (_, client):
        told = await state(client, "a")
        assert told["state"] == "running"
        assert told["mount_state"] == "active"
        assert told["initialize"] == {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "a", "version": "1"},
            "instructions": "Use t first.",
        }
        assert [tool["name"] for tool in told["tools"]] == ["a__t", "a__u"]  # type: ignore[attr-defined]


@pytest.mark.requirement("BD-14")
@jumping
async def test_a_server_that_cannot_start_is_failed_and_says_why_and_the_others_run() -> None:
    broken = FakeServer("broken", tools=["t"])
    broken.failures = [UpstreamUnavailable("no such program; token=abcdefgh12345678")] * 100
    async with behind(server("a")) as made:
        await made.mount(MountPrefix("broken"), broken, wait=False)
        async with Client(made) as client:
            told = await state(client, "broken")
            for _ in range(100):
                if told["state"] == "failed":
                    break
                await settle()
                told = await state(client, "broken")
            assert "no such program" in str(told["error"])
            assert "abcdefgh12345678" not in str(told)
            assert "tools" not in told
            assert (await state(client, "a"))["state"] == "running"


@pytest.mark.requirement("BD-14")
@jumping
async def test_a_server_whose_tools_cannot_be_listed_is_the_only_one_that_failed() -> None:
    odd = FakeServer("odd", tools=["t"])
    odd.answers["tools/list"] = lambda params: {"tools": 7}
    async with behind(server("a")) as made:
        await made.mount(MountPrefix("odd"), odd, wait=False)
        async with Client(made) as client:
            await settle()
            assert (await state(client, "odd"))["mount_state"] != "active"
            assert (await state(client, "a"))["state"] == "running"


@jumping
async def test_the_reason_tells_of_a_sign_in_that_is_missing() -> None:
    fake = FakeServer("a", tools=["t"])
    fake.failures = [NeedsAuth("sign in first")]
    async with behind() as made:
        await made.mount(MountPrefix("a"), fake, wait=False)
        async with Client(made) as client:
            told = await state(client, "a")
            assert (told["state"], told["reason"]) == ("failed", "needs auth: sign in first")


@jumping
async def test_a_server_that_sleeps_says_so_and_still_has_its_tools() -> None:
    async with behind() as made:
        await made.mount(MountPrefix("a"), server("a"), settings=ServerSettings(idle=10))
        async with Client(made) as client:
            for _ in range(60):
                await settle()
            told = await state(client, "a")
            assert told["state"] == "asleep"
            assert str(told["reason"]).startswith("asleep")
            assert len(told["tools"]) == 1  # type: ignore[arg-type]


@jumping
async def test_a_server_without_a_prefix_is_called_by_its_name_in_brackets() -> None:
    async with behind() as made:
        await made.mount(None, server("bare"), name="bare one")
        async with Client(made) as client:
            assert "(bare one)" in str(await look(client, SERVERS))
            assert (await state(client, "(bare one)"))["name"] == "bare one"
            assert (await state(client, "bare one"))["prefix"] == ""


@pytest.mark.requirement("BD-18")
@jumping
async def test_a_server_that_is_not_there_is_not_found_in_words_that_help() -> None:
    async with before(server("a")) as (_, client):
        with pytest.raises(UpstreamRefused, match="compositor://servers lists") as refused:
            await look(client, STATE.uri(server="nobody"))
        assert refused.value.code == -32002
        with pytest.raises(UpstreamRefused):
            await client.send("resources/subscribe", uri=STATE.uri(server="nobody"))


@pytest.mark.requirement("S3-12", "S3-14", "BD-18")
@jumping
async def test_every_mount_and_unmount_changes_the_list_and_updates_who_watches() -> None:
    async with before() as (made, client):
        assert "compositor://a/state" not in await listed(client)
        await client.send("resources/subscribe", uri=SERVERS)
        client.notes.clear()
        await made.mount(MountPrefix("a"), server("a"))
        await settle()
        assert "compositor://a/state" in await listed(client)
        assert client.told(LIST_CHANGED)
        assert updates(client) == [SERVERS]
        client.notes.clear()
        await made.unmount(MountPrefix("a"))
        await settle()
        assert client.told(LIST_CHANGED)
        assert updates(client) == [SERVERS]
        assert "compositor://a/state" not in await listed(client)


@pytest.mark.requirement("S3-14", "BD-18")
@jumping
async def test_whoever_watches_a_state_is_told_of_every_change_of_it_and_nobody_else() -> None:
    fake = server("a")
    async with before(fake, server("b")) as (made, client), Client(made) as other:
        await client.send("resources/subscribe", uri=STATE.uri(server="a"))
        await other.send("resources/subscribe", uri=STATE.uri(server="b"))
        fake.end()
        await settle()
        assert set(updates(client)) == {"compositor://a/state"}
        assert updates(other) == []
        assert not made.registry.find("compositor_meta").counters
        await client.send("resources/unsubscribe", uri=STATE.uri(server="a"))
        client.notes.clear()
        fake.end()
        await settle()
        assert updates(client) == []


@jumping
async def test_the_state_shows_how_much_was_dropped() -> None:
    fake = server("a")
    async with before(fake) as (_, client):
        fake.notify("notifications/nonsense")
        await settle()
        assert (await state(client, "a"))["dropped"] == {"unknown notification": 1}


def shut(*patterns: str) -> PermissionFilter:
    """A filter that hides these from guests."""
    return PermissionFilter(rules=Rules([Rule("deny", pattern, identity="guest") for pattern in patterns]))


@jumping
async def test_whoever_sees_nothing_of_a_server_does_not_learn_that_it_is_there() -> None:
    async with (
        behind(server("a"), server("b"), layers=[shut("a__*")]) as made,
        somebody(made, "guest") as guest,
        somebody(made, "boss") as boss,
    ):
        assert "compositor://a/state" not in str(await ask(guest, "resources/list"))
        assert "compositor://a/state" in str(await ask(boss, "resources/list"))
        assert '["b","resources",' in str(await ask(guest, "resources/read", uri=SERVERS))
        assert '["a","b","resources",' in str(await ask(boss, "resources/read", uri=SERVERS))
        hidden = error_of(await ask(guest, "resources/read", uri="compositor://a/state"))
        missing = error_of(await ask(guest, "resources/read", uri="compositor://z/state"))
        assert str(hidden).replace("//a/", "//z/") == str(missing)
        assert "contents" in result_of(await ask(boss, "resources/read", uri="compositor://a/state"))


@jumping
async def test_a_server_that_has_listed_nothing_is_hidden_by_a_rule_about_all_of_it() -> None:
    broken = FakeServer("a")
    broken.failures = [UpstreamUnavailable("no")] * 100
    async with behind(layers=[shut("a__*")]) as made, somebody(made, "guest") as guest:
        await made.mount(MountPrefix("a"), broken, wait=False)
        await settle()
        assert "compositor://a/state" not in str(await ask(guest, "resources/list"))
        async with somebody(made, "boss") as boss:
            assert "compositor://a/state" in str(await ask(boss, "resources/list"))


@jumping
async def test_the_tools_in_a_state_are_those_that_the_caller_sees() -> None:
    fake = server("a", tools=["open", "shut"])
    async with behind(fake, layers=[shut("a__shut")]) as made, somebody(made, "guest") as guest:
        await settle()
        told = str(await ask(guest, "resources/read", uri="compositor://a/state"))
        assert "a__open" in told
        assert "a__shut" not in told


@jumping
async def test_it_can_be_left_out() -> None:
    settings = Settings(meta_resources=False, resource_tools=False)
    async with Compositor(settings) as made, Client(made) as client:
        assert made.registry.mounts == []
        assert await listed(client) == []
