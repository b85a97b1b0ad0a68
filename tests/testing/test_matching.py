"""A call that a test expects, compared with calls in every form they are written down in."""

from types import SimpleNamespace
from unittest.mock import ANY

import pytest

from clients import Client, compositor
from clock import jumping
from plait.routing.naming import InvalidPrefix, MountPrefix, Naming
from plait.testing import ScriptedServer, tool_call
from plait.wire.tools import ToolCallRequest

FS = MountPrefix("fs")
NAME, ARGUMENTS = "fs__read", {"path": "x", "deep": {"a": [1]}}
TEXT = '{"deep": {"a": [1]}, "path": "x"}'


@pytest.mark.requirement("S3-03")
@pytest.mark.parametrize(
    "call",
    [
        ToolCallRequest(NAME, ARGUMENTS),
        {"name": NAME, "arguments": ARGUMENTS},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": NAME, "arguments": ARGUMENTS}},
        ("tools/call", {"name": NAME, "arguments": ARGUMENTS}),
        {"type": "tool_use", "id": "u1", "name": NAME, "input": ARGUMENTS},
        {"id": "c1", "type": "function", "function": {"name": NAME, "arguments": TEXT}},
        SimpleNamespace(type="tool_use", name=NAME, input=ARGUMENTS),
        SimpleNamespace(type="function", function=SimpleNamespace(name=NAME, arguments=TEXT)),
    ],
)
def test_a_call_is_recognised_in_every_form(call: object) -> None:
    assert call == tool_call(FS, "read", ARGUMENTS)
    assert tool_call(FS, "read", ARGUMENTS) == call
    assert call == tool_call(FS, "read")
    assert call != tool_call(FS, "write", ARGUMENTS)
    assert call != tool_call(FS, "read", {"path": "x"}), "an argument that nobody asked for is a difference"
    assert call == tool_call(FS, "read", {"path": ANY, "deep": ANY})
    assert [call] == [tool_call(FS, "read")]


@pytest.mark.parametrize("arguments", [{}, "", "{}", None])
def test_no_arguments_are_no_arguments(arguments: object) -> None:
    assert {"name": NAME, "arguments": arguments} == tool_call(FS, "read", {})


@pytest.mark.parametrize(
    "other",
    [None, 7, "fs__read", object(), {}, {"name": 7}, {"name": NAME, "arguments": "{"}, ("x", "y"), str],
)
def test_what_is_no_call_equals_none(other: object) -> None:
    assert other != tool_call(FS, "read")


def test_the_name_is_made_in_the_one_place_where_names_are_made() -> None:
    assert tool_call(FS, "read", naming=Naming(".")) == {"name": "fs.read"}
    with pytest.raises(InvalidPrefix, match="make it a MountPrefix first"):
        tool_call("fs", "read")  # type: ignore[arg-type]


def test_a_failed_comparison_can_be_read() -> None:
    assert repr(tool_call(FS, "read", {"path": "x"})) == "<a call of fs__read with {'path': 'x'}>"
    assert repr(tool_call(FS, "read")) == "<a call of fs__read with any arguments>"
    assert len({tool_call(FS, "read"), tool_call(FS, "read")}) == 1
    assert tool_call(FS, "read") != tool_call(FS, "read", {})


@jumping
async def test_what_a_server_recorded_has_its_own_names() -> None:
    server = ScriptedServer("fs", tools=["read"])
    async with compositor(server) as made, Client(made) as client:
        await client.call("fs__read", path="x")
    assert server.calls == [tool_call(MountPrefix.none(), "read", {"path": "x"})]
