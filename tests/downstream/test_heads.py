"""The headers of a modern POST, from the client's side to the tool: what fits is served, nothing else is."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clock import jumping
from fakes import FakeServer, Message
from fronts import front
from plait.wire.header_schema import mirrored, parameter_headers
from plait.wire.headers import write_value

SCHEMA: Message = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "where": {"type": "object", "properties": {"deep": {"type": "boolean", "x-mcp-header": "Deep"}}},
        "free": {"type": "string"},
    },
}


def server() -> FakeServer:
    odd: Message = {
        "type": "object",
        "properties": {"a": {"type": "number", "x-mcp-header": "A"}},
    }
    tools: list[str | Message] = [
        {"name": "find", "inputSchema": SCHEMA},
        {"name": "odd", "inputSchema": odd},
    ]
    return FakeServer("fs", tools=tools)


async def call(arguments: object, headers: dict[str, str], tool: str = "fs__find") -> tuple[int, object, int]:
    """The status, the code of the error if there is one, and how many calls the server got."""
    async with front(server=server()) as at:
        visit = at.modern().begin("tools/call", {"name": tool, "arguments": arguments}, headers)
        answer = await visit.json()
        error = answer.get("error", {})
        assert isinstance(error, dict)
        return visit.status, error.get("code"), len(at.server.asked("tools/call"))


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
arguments = st.fixed_dictionaries(
    {},
    optional={
        "region": st.none() | texts,
        "count": st.none() | st.integers(-(2**63), 2**63),
        "where": st.just({}) | st.fixed_dictionaries({"deep": st.none() | st.booleans()}),
        "free": texts,
    },
)


@settings(max_examples=60, deadline=None)
@given(arguments)
@jumping
async def test_arguments_that_are_repeated_as_they_should_be_are_served(arguments: Message) -> None:
    headers = parameter_headers(mirrored(SCHEMA), arguments)
    assert await call(arguments, headers) == (200, None, 1)


@settings(max_examples=60, deadline=None)
@given(arguments, st.sampled_from(["Region", "Count", "Deep"]), texts | st.none())
@jumping
async def test_an_argument_that_is_repeated_otherwise_is_refused(
    arguments: Message, name: str, other: str | None
) -> None:
    right = parameter_headers(mirrored(SCHEMA), arguments)
    header = f"Mcp-Param-{name}"
    wrong = {key: value for key, value in right.items() if key != header}
    if other is not None:
        wrong[header] = write_value(other)
    fits = wrong == right
    assert await call(arguments, wrong) == ((200, None, 1) if fits else (400, -32020, 0))


@settings(max_examples=60, deadline=None)
@given(texts)
@jumping
async def test_any_name_can_be_repeated(name: str) -> None:
    """An unknown tool is answered with words that help: its header was fine."""
    async with front() as at:
        visit = at.modern().begin("tools/call", {"name": name, "arguments": {}})
        answer = await visit.json()
        assert (visit.status, "result" in answer) == (200, True)
        wrong = at.modern().begin("tools/call", {"name": name, "arguments": {}}, {"mcp-name": "another"})
        await wrong.body()
        assert wrong.status == (200 if name == "another" else 400)


@pytest.mark.parametrize(
    ("given", "headers", "fine"),
    [
        ({"count": 42}, {"Mcp-Param-Count": "42.0"}, True),
        ({"count": 42.0}, {"Mcp-Param-Count": "42"}, True),
        ({"count": 42}, {"MCP-PARAM-COUNT": "42"}, True),
        ({"count": 42}, {"Mcp-Param-Count": "042"}, True),
        ({"where": {"deep": True}}, {"Mcp-Param-Deep": "True"}, False),
        ({"where": {"deep": True}}, {"Mcp-Param-Deep": "true"}, True),
        ({}, {"Mcp-Param-Unheard-Of": "x"}, True),
        ({}, {"Mcp-Param-Region": ""}, False),
        ({"region": None}, {}, True),
        ({"region": ["x"]}, {}, True),
    ],
)
@jumping
async def test_parameters_are_compared_as_what_they_are(
    given: Message, headers: dict[str, str], fine: bool
) -> None:
    assert await call(given, headers) == ((200, None, 1) if fine else (400, -32020, 0))


@jumping
async def test_parameters_of_another_kind_are_left_to_others() -> None:
    assert await call({"a": 1.5}, {}, "fs__odd") == (200, None, 1)
    assert await call([1], {}) == (400, -32602, 0)
    assert await call(None, {}) == (200, None, 1)


@jumping
async def test_another_spelling_of_a_tools_name_has_the_same_parameters() -> None:
    assert await call({"region": "x"}, {}, "fs.find") == (400, -32020, 0)


@jumping
async def test_a_parameter_that_comes_twice_is_refused() -> None:
    async with front(server=server()) as at:
        client = at.modern()
        params = {"name": "fs__find", "arguments": {"region": "x"}, "_meta": client.stamp}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        head = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "fs__find"),
            ("mcp-param-region", "x"),
        ]
        visit = client.post(body, [*head, ("mcp-param-region", "y")])
        await visit.body()
        assert visit.status == 400
        assert "result" in await client.post(body, head).json()
