"""The servers of a compositor at one moment, for programs."""

from datetime import datetime

import pytest
from msgspec import Raw
from msgspec.json import encode

from clock import jumping
from fakes import FakeServer, Message
from pinned_talk import behind, server, settle
from plait.config.model import HttpServer, StdioServer
from plait.errors import UpstreamUnavailable
from plait.providers.pinned.snapshot import (
    banner,
    entries,
    entry,
    inprocess_servers,
    mount_specs,
    sampling_snapshot,
)
from plait.routing.naming import MountPrefix
from plait.upstream.handshake import McpSession

OUTSIDE = StdioServer(command="serve", args=["--token", "tok-1", "--root", "/srv"], env={"KEY": "secret-1"})


@pytest.mark.requirement("K-13")
@jumping
async def test_a_closed_mount_is_closed_and_not_initializing() -> None:
    async with behind(server("a")) as made:
        mount = made.registry.find("a")
        assert entry(mount, ())["state"] == "running"
        await made.unmount(mount)
        assert entry(mount, ())["state"] == "closed"
        assert "a" not in entries(made.registry)


@pytest.mark.requirement("BD-14", "BD-15")
@jumping
async def test_a_snapshot_has_the_time_and_an_entry_for_every_server() -> None:
    slow = FakeServer("slow", tools=["t"])
    slow.failures = [UpstreamUnavailable("not yet")] * 100
    async with behind(server("a")) as made:
        await made.mount(MountPrefix("slow"), slow, wait=False)
        taken = entries(made.registry)
        assert taken["slow"]["state"] == "initializing"
        await settle()
        snapshot = sampling_snapshot(made.registry)
        assert datetime.fromisoformat(str(snapshot["timestamp"])).tzinfo is not None
        servers = snapshot["servers"]
        assert isinstance(servers, dict)
        assert list(servers) == ["a", "slow", "resources", "compositor_meta"]
        assert servers["a"]["tools"] == [{"name": "a__t", "inputSchema": {"type": "object"}}]
        assert encode(snapshot)


@pytest.mark.requirement("BD-15")
@jumping
async def test_the_specifications_are_those_of_servers_outside_and_have_no_secret() -> None:
    fake = server("a")
    async with behind(fake) as made:
        made.registry.find("resources").server = HttpServer(
            url="https://me:pw@host/mcp?key=k-1", headers={"Authorization": "Bearer b-1"}
        )
        made.registry.find("compositor_meta").server = OUTSIDE
        specs = mount_specs(made.registry)
        assert specs == {
            "resources": {
                "type": "http",
                "url": "https://***@host/mcp?***",
                "headers": {"Authorization": "***"},
            },
            "compositor_meta": {
                "type": "stdio",
                "command": "serve",
                "args": ["--token", "[redacted]", "--root", "/srv"],
                "env": {"KEY": "***"},
                "cwd": None,
            },
        }
        assert inprocess_servers(made.registry) == {"a": fake}


@pytest.mark.requirement("BD-16")
@jumping
async def test_the_banner_tells_a_model_what_runs() -> None:
    tool: Message = {"name": "t", "description": "Does\n it.", "inputSchema": {"type": "object"}}
    fake = FakeServer("a", tools=[tool, "bare"], instructions="Be kind to it.")
    async with behind(fake) as made:
        first = banner(made.registry).split("\n\n")[0]
        assert first == "## a: a\nCapabilities: tools\nBe kind to it.\n- a__t: Does it.\n- a__bare"


@jumping
async def test_what_a_server_says_that_nobody_can_read_is_left_out() -> None:
    async with behind(server("a")) as made:
        link = made.get_child_client(MountPrefix("a"))
        assert isinstance(link, McpSession)
        link.capabilities["odd"] = Raw(b"[" * 100_000 + b"]" * 100_000)
        told = entries(made.registry)["a"]
        assert told["state"] == "running"
        assert "initialize" not in told
