"""compositor_admin: who may attach what, what is recorded of it, and that all clients see it."""

import gc
import weakref
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.json import decode

from clients import Client, RawClient
from clock import jumping
from fakes import FakeServer, Message, words
from pinned_talk import LIST_CHANGED, behind, call, server, somebody
from plait.compositor import Compositor
from plait.config.model import HttpServer, ServerSettings, Settings, StdioServer
from plait.constants import COMPOSITOR_ADMIN_MOUNT_PREFIX
from plait.errors import UpstreamUnavailable
from plait.pipeline.audit import AuditLog
from plait.pipeline.compose import Layer
from plait.pipeline.permissions import PermissionFilter
from plait.pipeline.rules import Rule, Rules
from plait.providers.pinned.admin import CompositorAdminServer
from plait.providers.pinned.sight import Sight
from plait.routing.naming import MountPrefix

COMMAND: Message = {
    "type": "stdio",
    "command": "serve-files",
    "args": ["--root", "/srv", "--token", "tok-12"],
    "env": [{"key": "API_KEY", "value": "hunter2"}],
}
ADDRESS: Message = {
    "type": "http",
    "url": "https://tools.example/mcp?key=k-12",
    "headers": [{"key": "X-Team", "value": "blue-12"}],
}


class Office:
    """A compositor whose admin tools attach a server in memory, whatever is asked for."""

    def __init__(self, made: Compositor) -> None:
        self.made = made
        self.asked: list[StdioServer | HttpServer] = []
        self.fake = server("new", "n://1")

    async def attach(self, prefix: MountPrefix, spec: StdioServer | HttpServer) -> None:
        self.asked.append(spec)
        await self.made.mount(prefix, self.fake)

    async def detach(self, prefix: str) -> None:
        await self.made.unmount(self.made.registry.find(prefix))


@asynccontextmanager
async def office(*servers: FakeServer, layers: Sequence[Layer] = ()) -> AsyncIterator[Office]:
    async with behind(*servers, layers=layers) as made:
        one = Office(made)
        sight = Sight(made.registry, lambda: made.resolver)
        admin = CompositorAdminServer(one.attach, one.detach, sight.servers, ["boss", "ops-*"])
        await made.mount(
            COMPOSITOR_ADMIN_MOUNT_PREFIX, admin, settings=ServerSettings(share="all"), pinned=True
        )
        yield one


async def do(client: RawClient, tool: str, **arguments: object) -> Message:
    return await call(client, f"compositor_admin__{tool}", **arguments)


def ok(result: Message) -> bool:
    return result.get("structuredContent") == {"ok": True}


@pytest.mark.requirement("BD-19")
@jumping
async def test_what_one_client_attaches_all_of_them_see_and_can_detach() -> None:
    async with office() as one, somebody(one.made, "boss") as boss, Client(one.made) as other:
        assert ok(await do(boss, "attach_server", prefix="new", spec=COMMAND))
        assert one.asked == [
            StdioServer(
                name="new",
                command="serve-files",
                args=["--root", "/srv", "--token", "tok-12"],
                env={"API_KEY": "hunter2"},
            )
        ]
        assert "new__t" in await other.names()
        result = await other.call("compositor_admin__detach_server", prefix="new")
        assert ok(result)
        assert "new__t" not in await other.names()
        assert other.told("notifications/tools/list_changed")
        assert other.told(LIST_CHANGED)
        assert one.fake.wire.closed


@pytest.mark.requirement("BD-19")
@jumping
async def test_an_address_with_headers_and_the_null_forms_are_understood() -> None:
    async with office() as one, somebody(one.made, "guest") as guest, somebody(one.made, "ops-1") as ops:
        assert ok(await do(guest, "attach_server", prefix="new", spec=ADDRESS))
        assert ok(await do(guest, "detach_server", prefix="new"))
        bare = {"type": "stdio", "command": "x", "args": None, "env": None}
        assert ok(await do(ops, "attach_server", prefix="new", spec=bare))
        http, stdio = one.asked
        assert isinstance(http, HttpServer)
        assert (http.url, http.headers) == (ADDRESS["url"], {"X-Team": "blue-12"})
        assert isinstance(stdio, StdioServer)
        assert (stdio.args, stdio.env) == ((), {})


@pytest.mark.parametrize("identity", ["guest", "anonymous", "Boss", "xops-1", ""])
@jumping
async def test_a_command_is_attached_by_operators_only(identity: str) -> None:
    async with office() as one, somebody(one.made, identity) as client:
        refused = await do(client, "attach_server", prefix="new", spec=COMMAND)
        assert refused["isError"]
        assert "the setting `operators`" in words(refused)
        assert one.asked == []
        assert "hunter2" not in str(refused)


@pytest.mark.requirement("BD-20")
@pytest.mark.parametrize("prefix", ["resources", "compositor_meta", "compositor_admin"])
@jumping
async def test_what_is_pinned_cannot_be_detached(prefix: str) -> None:
    async with office() as one, somebody(one.made, "boss") as boss:
        refused = await do(boss, "detach_server", prefix=prefix)
        assert refused["isError"]
        assert "pinned" in words(refused)
        assert one.made.registry.find(prefix).prefix == prefix


@pytest.mark.requirement("BD-19", "BD-44")
@jumping
async def test_what_is_wrong_with_a_request_is_told_and_changes_nothing() -> None:
    async with office(server("a")) as one, somebody(one.made, "boss") as boss:
        for arguments, expected in (
            ({"prefix": "a", "spec": COMMAND}, "already mounted"),
            ({"prefix": "No", "spec": COMMAND}, "cannot be a prefix"),
            ({"prefix": "n", "spec": {"type": "ftp"}}, "Invalid value 'ftp' - at `$.spec.type`"),
            ({"prefix": "n", "spec": {"type": "stdio"}}, "missing required field `command`"),
            ({"prefix": "n", "spec": {**COMMAND, "cwd": "/"}}, "unknown field `cwd`"),
            ({"prefix": "n"}, "missing required field `spec`"),
            ({"prefix": "n", "spec": {**COMMAND, "args": ["x" * 20_000]}}, "could not be recorded"),
        ):
            refused = await do(boss, "attach_server", **arguments)
            assert refused["isError"]
            assert expected in words(refused)
        unknown = await do(boss, "detach_server", prefix="zzz")
        assert words(unknown) == "detach_server: 'zzz' is not mounted. Use list_servers to see what is."
        one.fake.failures = [UpstreamUnavailable("no such program")]
        failed = await do(boss, "attach_server", prefix="new", spec=COMMAND)
        assert "no such program" in words(failed)
        names = [str(mount.prefix) for mount in one.made.registry.mounts]
        assert names == ["a", "resources", "compositor_meta", "compositor_admin"]


@jumping
async def test_the_servers_are_listed_with_their_states() -> None:
    async with office(server("a")) as one, Client(one.made) as client:
        await client.names()
        listed = await client.call("compositor_admin__list_servers")
        servers = listed["structuredContent"]["servers"]  # type: ignore[index]
        assert servers[0] == {
            "prefix": "a",
            "name": "a",
            "state": "running",
            "reason": "running",
            "pinned": False,
        }
        assert [each["prefix"] for each in servers if each["pinned"]] == [
            "resources",
            "compositor_meta",
            "compositor_admin",
        ]


@jumping
async def test_a_server_that_is_hidden_from_a_caller_cannot_be_detached_by_it() -> None:
    hiding = PermissionFilter(rules=Rules([Rule("deny", "a__*", identity="guest")]))
    async with office(server("a"), layers=[hiding]) as one, somebody(one.made, "guest") as guest:
        refused = words(await do(guest, "detach_server", prefix="a"))
        assert refused == "detach_server: 'a' is not mounted. Use list_servers to see what is."
        assert "'a'" not in words(await do(guest, "list_servers"))
        assert one.made.registry.find("a").usable


def written(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.glob("*.jsonl"))


@pytest.mark.parametrize("identity", ["boss", "guest"])
async def test_the_exact_command_is_in_the_audit_and_no_secret_of_it(identity: str, tmp_path: Path) -> None:
    audit = AuditLog(tmp_path)
    async with office(layers=[audit]) as one, somebody(one.made, identity) as client:
        await do(client, "attach_server", prefix="new", spec=COMMAND)
        await do(client, "attach_server", prefix="web", spec=ADDRESS)
    await audit.aclose()
    text = written(tmp_path)
    records = [decode(line) for line in text.splitlines()]
    intents = [record for record in records if record.get("phase") == "intent"]
    assert decode(intents[0]["summary"]) == {
        "prefix": "new",
        "spec": {
            "type": "stdio",
            "command": "serve-files",
            "args": ["--root", "/srv", "--token", "[redacted]"],
            "env": [{"key": "API_KEY", "value": "[redacted]"}],
        },
    }
    assert decode(intents[1]["summary"])["spec"]["url"] == "https://tools.example/mcp?key=[redacted]"
    for secret in ("hunter2", "tok-12", "k-12", "blue-12"):
        assert secret not in text
    outcome = next(record for record in records if record.get("phase") == "outcome")
    assert outcome["outcome"] == ("ok" if identity == "boss" else "denied")


@jumping
async def test_no_other_server_can_have_what_it_is_given_written_down() -> None:
    schema = {"type": "object", "x-plait-audit": "arguments"}
    nosy = FakeServer("nosy", tools=[{"name": "t", "inputSchema": schema}])
    audit = AuditLog()
    async with behind(nosy, layers=[audit]) as made, Client(made) as client:
        await client.call("nosy__t", diary="dear diary")
        assert "dear diary" not in str(list(audit.records))


@pytest.mark.requirement("S3-08")
@jumping
async def test_it_is_there_only_if_it_is_asked_for() -> None:
    for wanted in (False, True):
        async with Compositor(Settings(admin_tools=wanted)) as made, Client(made) as client:
            assert ("compositor_admin__attach_server" in await client.names()) is wanted


@pytest.mark.requirement("BD-20")
@jumping
async def test_the_compositor_itself_keeps_what_is_pinned() -> None:
    async with Compositor(Settings(admin_tools=True)) as made, Client(made) as client:
        result = await client.call("compositor_admin__detach_server", prefix="resources")
        assert "pinned" in words(result)
        assert made.registry.find("resources").pinned


@jumping
async def test_the_pinned_servers_do_not_keep_a_compositor_that_somebody_dropped() -> None:
    made = Compositor(Settings(admin_tools=True))
    await made.__aenter__()
    registry, guardian, gone = made.registry, made.guardian, weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None
    await registry.aclose()
    await guardian.aclose()
