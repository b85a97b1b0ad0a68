"""A command that a client attaches while we run: a real process, and its end."""

import sys
from pathlib import Path

import pytest

import echo_server
from clients import Client
from fakes import words
from plait.compositor import Compositor
from plait.config.model import Settings

pytestmark = pytest.mark.e2e

SPEC = {"type": "stdio", "command": sys.executable, "args": [str(Path(echo_server.__file__).resolve())]}


@pytest.mark.requirement("BD-19")
async def test_a_command_is_attached_used_and_detached() -> None:
    settings = Settings(admin_tools=True, operators=("anonym*",))
    async with Compositor(settings) as made, Client(made) as client:
        attached = await client.call("compositor_admin__attach_server", prefix="echo", spec=SPEC)
        assert attached["structuredContent"] == {"ok": True}, words(attached)
        assert [name for name in await client.names() if str(name).startswith("echo__")]
        detached = await client.call("compositor_admin__detach_server", prefix="echo")
        assert detached["structuredContent"] == {"ok": True}, words(detached)
        assert not [name for name in await client.names() if str(name).startswith("echo__")]


async def test_a_command_that_does_not_exist_is_told_and_leaves_nothing_mounted() -> None:
    settings = Settings(admin_tools=True, operators=("*",))
    async with Compositor(settings) as made, Client(made) as client:
        spec = {"type": "stdio", "command": "/nowhere/at/all"}
        failed = await client.call("compositor_admin__attach_server", prefix="echo", spec=spec)
        assert failed["isError"]
        assert "/nowhere/at/all" in words(failed)
        assert all(mount.pinned for mount in made.registry.mounts)
