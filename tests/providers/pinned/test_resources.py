"""The tools of `resources` that list and read, as a client calls them."""

from pathlib import Path

import pytest

from clients import Client
from clock import jumping
from fakes import FakeServer, Message, Refusal, words
from pinned_talk import ask, before, behind, call, fail, only, server, settle, somebody, use
from plait.compositor import Compositor
from plait.config.model import Config, PolicySettings, Settings, UrlSettings
from plait.errors import UpstreamUnavailable
from plait.pipeline.audit import AuditLog
from plait.pipeline.permissions import PermissionFilter
from plait.pipeline.rules import Rule, Rules
from plait.routing.naming import MountPrefix

TOOLS = [
    "list_resources",
    "list_resource_templates",
    "read",
    "read_blocks",
    "subscribe",
    "unsubscribe",
    "subscribe_list_changes",
    "unsubscribe_list_changes",
    "list_subscriptions",
]


async def found(client: Client, **filters: object) -> list[tuple[object, object]]:
    """Server and URI of every resource, without those of plait itself."""
    entries = (await use(client, "list_resources", **filters))["resources"]
    assert isinstance(entries, list)
    pairs = [(each["server"], each["resource"]["uri"]) for each in entries]
    return [pair for pair in pairs if pair[0] not in ("resources", "compositor_meta")]


def reading(fake: FakeServer, *texts: str) -> FakeServer:
    """It answers every reading with these."""
    fake.answers["resources/read"] = lambda params: {
        "contents": [{"uri": params["uri"], "text": text} for text in texts]
    }
    return fake


# ---- listing


@pytest.mark.requirement("S3-08", "BD-21", "BD-22")
@jumping
async def test_the_nine_tools_are_there_with_schemas_and_hints() -> None:
    async with before() as (_, client):
        tools = {tool["name"]: tool for tool in await client.session.list_tools()}
        assert list(tools) == [f"resources__{name}" for name in TOOLS]
        assert tools["resources__list_resources"]["inputSchema"] == {
            "type": "object",
            "properties": {
                "server": {
                    "description": "Only of the server with this prefix; null: of all servers.",
                    "anyOf": [{"type": "string"}, {"type": "null"}],
                    "default": None,
                },
                "uri_prefix": {
                    "description": "Only those that begin so; null: all of them.",
                    "anyOf": [{"type": "string"}, {"type": "null"}],
                    "default": None,
                },
            },
            "required": [],
            "additionalProperties": False,
        }
        read = tools["resources__read"]["inputSchema"]
        assert isinstance(read, dict)
        assert read["required"] == ["server", "uri"]
        assert read["properties"]["start_offset"] == {
            "description": "The byte to begin with.",
            "type": "integer",
            "minimum": 0,
            "default": 0,
        }
        hints = {name: tools[f"resources__{name}"]["annotations"] for name in TOOLS}
        assert [name for name in TOOLS if not hints[name]["readOnlyHint"]] == TOOLS[4:8]  # type: ignore[index]


@pytest.mark.requirement("S3-13", "BD-21")
@jumping
async def test_resources_of_all_servers_are_listed_under_their_own_uris() -> None:
    async with before(
        server("a", "a://1", "x://same"), server("b", "x://same"), FakeServer("c", tools=["t"])
    ) as (
        _,
        client,
    ):
        assert await found(client) == [("a", "a://1"), ("a", "x://same"), ("b", "x://same")]
        everything = await use(client, "list_resources")
        assert "resources://subscriptions" in str(everything)
        assert "compositor://a/state" in str(everything)


@pytest.mark.requirement("BD-21")
@jumping
async def test_null_filters_filter_nothing() -> None:
    async with before(server("a", "a://1")) as (_, client):
        assert await found(client, server=None, uri_prefix=None) == await found(client) == [("a", "a://1")]


@pytest.mark.requirement("BD-21")
@jumping
async def test_resources_are_filtered_by_server_and_by_the_beginning_of_the_uri() -> None:
    async with before(server("a", "a://1", "a://2/x"), server("b", "a://2/y")) as (_, client):
        assert await found(client, uri_prefix="a://2") == [("a", "a://2/x"), ("b", "a://2/y")]
        assert await found(client, server="b") == [("b", "a://2/y")]
        assert await found(client, server="a", uri_prefix="z") == []
        assert await fail(client, "list_resources", server="zzz") == (
            "list_resources: there is no server 'zzz'. Use list_resources to see which there are."
        )


@pytest.mark.requirement("BD-21")
@jumping
async def test_only_servers_that_run_are_listed() -> None:
    fake = server("a", "a://1")
    async with before(fake, server("b", "b://1")) as (_, client):
        fake.failures = [UpstreamUnavailable("gone")] * 100
        fake.end()
        await settle()
        assert await found(client) == [("b", "b://1")]
        assert "is not up (" in await fail(client, "read", server="a", uri="a://1")


@pytest.mark.requirement("BD-22")
@jumping
async def test_templates_are_listed_with_their_servers() -> None:
    fake = FakeServer("a", templates=["a://{x}"], capabilities={"resources": {}})
    async with before(fake) as (_, client):
        listed = await use(client, "list_resource_templates", server="a")
        assert listed == {
            "templates": [{"server": "a", "template": {"uriTemplate": "a://{x}", "name": "a://{x}"}}]
        }


# ---- reading


@pytest.mark.requirement("BD-22", "BD-23")
@jumping
async def test_a_resource_is_read_in_windows_of_25000_bytes_unless_said_otherwise() -> None:
    async with before(reading(server("a", "a://1"), "x" * 30_000)) as (_, client):
        first = await use(client, "read", server="a", uri="a://1")
        assert first["window"] == {"start_offset": 0, "max_bytes": 25_000}
        assert first["next_offset"] == 25_000
        rest = await use(client, "read", server="a", uri="a://1", start_offset=25_000, max_bytes=None)
        part = only(rest["parts"])
        assert (part["bytes_returned"], part["total_bytes"], rest["next_offset"]) == (5_000, 30_000, None)


@pytest.mark.requirement("BD-24")
@jumping
async def test_blocks_are_read_whole_in_part_and_from_any_place() -> None:
    async with before(reading(server("a", "a://1"), "x" * 100, "tail")) as (_, client):
        where: Message = {"server": "a", "uri": "a://1"}
        cut = only((await use(client, "read_blocks", **where, max_bytes=50))["blocks"])
        assert (cut["kind"], cut["started_at"], cut["ended_at"], cut["full_size"]) == (
            "truncated",
            0,
            50,
            100,
        )
        whole = await use(client, "read_blocks", **where)
        assert whole["blocks"] == [{"uri": "a://1", "text": "x" * 100}, {"uri": "a://1", "text": "tail"}]
        later = await use(client, "read_blocks", **where, start_block=1)
        assert later["blocks"] == [{"uri": "a://1", "text": "tail"}]
        assert later["next"] is None


@jumping
async def test_the_server_that_is_named_is_asked_also_where_another_has_the_same_uri() -> None:
    async with before(server("a", "x://same"), server("b", "x://same")) as (_, client):
        for name in ("a", "b"):
            assert f"'text': '{name}'" in str(await use(client, "read", server=name, uri="x://same"))


@pytest.mark.requirement("BD-25", "BD-44")
@jumping
async def test_a_resource_that_is_missing_is_told_with_advice() -> None:
    fake = server("a", "a://1")
    fake.answers["resources/read"] = lambda params: Refusal(-32002, "Resource not found")
    async with before(fake, FakeServer("c", tools=["t"])) as (_, client):
        advice = "Use list_resources or list_resource_templates to see what there is."
        assert await fail(client, "read", server="a", uri="a://9") == (
            f"read: server 'a' does not provide the resource 'a://9'. {advice}"
        )
        assert "server 'c' does not provide" in await fail(client, "read", server="c", uri="a://9")


@pytest.mark.requirement("BD-44")
@jumping
async def test_whatever_else_goes_wrong_is_a_result_that_says_so() -> None:
    fake = server("a", "a://1")
    async with before(fake) as (_, client):
        fake.answers["resources/read"] = lambda params: Refusal(-32000, "disk on fire")
        assert await fail(client, "read", server="a", uri="a://1") == "read: disk on fire (-32000)"
        fake.answers["resources/read"] = lambda params: {"contents": "nonsense"}
        assert "something that is no resource" in await fail(client, "read", server="a", uri="a://1")
        assert "`$.start_offset`" in await fail(client, "read", server="a", uri="a://1", start_offset=-1)
        assert "unknown field `more`" in await fail(client, "read", server="a", uri="a://1", more=1)
        assert "missing required field `uri`" in await fail(client, "read", server="a")


# ---- nothing is gained by it


def shut(*patterns: str) -> PermissionFilter:
    return PermissionFilter(rules=Rules([Rule("deny", each, identity="guest") for each in patterns]))


@jumping
async def test_what_is_hidden_from_a_caller_is_neither_listed_nor_read_and_told_like_what_is_missing() -> (
    None
):
    fake = server("a", "a://open", "a://shut")
    fake.answers["resources/read"] = lambda params: Refusal(-32002, "Resource not found")
    async with (
        behind(fake, server("b"), layers=[shut("a://shut", "b__*")]) as made,
        somebody(made, "guest") as guest,
    ):
        await settle()
        assert "a://shut" not in words(await call(guest, "resources__list_resources"))
        answers = [
            words(await call(guest, f"resources__{tool}", server="a", uri=uri))
            for tool in ("read", "subscribe")
            for uri in ("a://shut", "a://none")
        ]
        assert answers[0].replace("shut", "none") == answers[1]
        assert "does not provide the resource 'a://shut'" in answers[2]
        assert {"uri": "a://shut"} not in fake.asked("resources/read")
        assert {"uri": "a://shut"} not in fake.asked("resources/subscribe")
        unknown = [
            words(await call(guest, "resources__read", server=name, uri="x://y")) for name in ("b", "c")
        ]
        assert unknown[0].replace("'b'", "'c'") == unknown[1]


@jumping
async def test_every_reading_is_recorded_like_a_client_s_own() -> None:
    audit = AuditLog()
    async with before(server("a", "a://1"), layers=[audit]) as (_, client):
        await use(client, "read", server="a", uri="a://1")
        recorded = [(each.event, each.name, each.server) for each in audit.records if each.phase == "intent"]
        assert recorded == [("tools/call", "resources__read", "resources"), ("resources/read", "a://1", "a")]


@jumping
async def test_a_client_cannot_choose_the_server_of_its_own_request() -> None:
    async with (
        behind(server("a", "x://same"), server("b", "x://same")) as made,
        somebody(made, "x") as client,
    ):
        await settle()
        answer = await ask(client, "resources/read", uri="x://same", destination="b", server="b")
        assert "'text': 'a'" in str(answer)


async def test_a_policy_for_urls_does_not_judge_the_uris_of_resources(tmp_path: Path) -> None:
    config = Config(settings=Settings(policy=PolicySettings(urls=UrlSettings())))
    async with Compositor(config, environ={"XDG_STATE_HOME": str(tmp_path)}) as made:
        await made.mount(MountPrefix("a"), server("a", "a://1"))
        async with Client(made) as client:
            assert "'text': 'a'" in str(await use(client, "read", server="a", uri="a://1"))


@jumping
async def test_the_tools_can_be_left_out() -> None:
    async with before(settings=Settings(resource_tools=False)) as (made, client):
        assert await client.names() == []
        assert [str(mount.prefix) for mount in made.registry.mounts] == ["compositor_meta"]


@jumping
async def test_the_tools_make_no_name_of_a_server_ambiguous() -> None:
    async with before(FakeServer("a", tools=["read"])) as (_, client):
        assert words(await client.call("read", x=1)) == 'a: read {"x":1}'
        assert "subscriptions" in words(await client.call("list_subscriptions"))
