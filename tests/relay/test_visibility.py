"""What a caller may see is what it may call, whatever the rules; the rest does not exist for it."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clients import ALONE, Client, RawClient
from fakes import FakeServer, Message, words
from plait.compositor import Compositor
from plait.errors import UpstreamRefused
from plait.pipeline.permissions import PermissionFilter
from plait.pipeline.rules import Rule, Rules
from plait.routing.naming import MountPrefix

SERVERS = {
    "builtin": ["read", "write"],
    "fs": ["read", "write_all", "x"],
    "a": ["read", "run"],
    "": ["plain"],
}


def exposed(server: str, tool: str) -> str:
    return f"{server}__{tool}" if server else tool


NAMES = [exposed(server, tool) for server, tools in SERVERS.items() for tool in tools]
GOOD, BAD = {"path": "tmp/a"}, {"path": "etc/a"}
UNLESS = {"path": "tmp/*"}

patterns = st.sampled_from(
    [
        *NAMES,
        "*",
        "fs__*",
        "a__r*",
        "*__read",
        "*read*",
        "read",
        "write",
        "run",
        "r?n",
        "plain",
        "nothing",
        "a*",
    ]
)
deny_rules = st.builds(
    Rule,
    st.just("deny"),
    patterns,
    unless=st.sampled_from([{}, UNLESS]),
    identity=st.sampled_from(["*", "anonymous", "somebody-*"]),
)
allow_rules = st.builds(
    Rule, st.just("allow"), patterns, identity=st.sampled_from(["*", "anonymous", "somebody-*"])
)
rule_lists = st.lists(st.one_of(deny_rules, allow_rules), max_size=6)


async def behind(
    rules: Sequence[Rule], lists: Mapping[str, Sequence[str]], stack: AsyncExitStack
) -> Compositor:
    """All servers, with these tools, behind a filter with these rules."""
    guard = PermissionFilter(rules=Rules(rules))
    made = await stack.enter_async_context(Compositor(ALONE, [guard]))
    for name, tools in lists.items():
        prefix = MountPrefix(name) if name else MountPrefix.none()
        server = FakeServer(name or "bare", tools=list(tools), capabilities={"tools": {}})
        await made.mount(prefix, server, name=name or "bare", wait=False)
    return made


async def outcome(client: Client, name: str, arguments: Mapping[str, object]) -> str:
    """Whether a call got through: `called`, `denied`, or the words of the refusal."""
    result = await client.call(name, **arguments)
    if result.get("isError") is not True:
        return "called"
    return "denied" if words(result).startswith("denied[P001]") else words(result)


def native(name: str) -> tuple[str, str]:
    server, separator, tool = name.rpartition("__")
    return (server, tool) if separator else ("", name)


@pytest.mark.requirement("K-03", "S1-046", "S1-AC16", "S1-T7.10", "S1-T7.19")
@settings(deadline=None, max_examples=100)
@given(rules=rule_lists)
@example(rules=[Rule("deny", "*")])
@example(rules=[Rule("deny", "*", unless=UNLESS), Rule("allow", "read"), Rule("deny", "read")])
def test_visible_is_callable(rules: list[Rule]) -> None:
    """A tool is listed just when some call of it gets through; a call of any other finds nothing."""

    async def check() -> None:
        async with AsyncExitStack() as stack:
            made = await behind(rules, SERVERS, stack)
            client = await stack.enter_async_context(Client(made))
            visible = set(await client.names())
            for name in NAMES:
                calls = [await outcome(client, name, arguments) for arguments in (GOOD, BAD, {})]
                assert ("called" in calls) is (name in visible), (name, calls)
                if name in visible:
                    assert set(calls) <= {"called", "denied"}
                else:
                    assert all(call.startswith(f"unknown tool '{name}'") for call in calls), calls

    asyncio.run(check())


@settings(deadline=None, max_examples=60)
@given(rules=rule_lists)
@example(rules=[Rule("deny", "fs__*")])
def test_what_is_hidden_and_what_is_not_there_cannot_be_told_apart(rules: list[Rule]) -> None:
    """The same rules where there is not even a server for what is hidden: every answer is the same."""

    async def check() -> None:
        async with AsyncExitStack() as stack:
            whole = await behind(rules, SERVERS, stack)
            client = await stack.enter_async_context(Client(whole))
            visible = set(await client.names())
            shown = {
                server: [tool for tool in tools if exposed(server, tool) in visible]
                for server, tools in SERVERS.items()
            }
            lacking = await behind(rules, {server: tools for server, tools in shown.items() if tools}, stack)
            hidden = [name for name in NAMES if name not in visible]
            spellings = [
                *hidden,
                *(native(name)[1] for name in hidden),
                *(n.replace("__", ".") for n in hidden),
            ]
            assert await conversation(whole, spellings) == await conversation(lacking, spellings)

    asyncio.run(check())


async def conversation(made: Compositor, names: Sequence[str]) -> list[Message]:
    """Everything a client gets to see of the tools, and of calls by these names."""
    async with RawClient(made) as client:
        client.initialize()
        client.say("tools/list", 2)
        for number, name in enumerate(names):
            client.say("tools/call", 3 + number, name=name, arguments=GOOD)
        await client.answered()
    # What the greeting says of capabilities depends on whether a client was here before.
    answers = [message for message in client.messages if "method" not in message and message["id"] != 1]
    return sorted(answers, key=lambda message: int(str(message["id"])))


@settings(deadline=None, max_examples=30)
@given(rules=rule_lists, extra=st.sampled_from(["zz", "b", "f"]))
def test_another_server_changes_no_decision_on_the_names_there_are(rules: list[Rule], extra: str) -> None:
    async def check() -> None:
        async with AsyncExitStack() as stack:
            before = await behind(rules, SERVERS, stack)
            after = await behind(rules, {**SERVERS, extra: ["read", "run", "plain"]}, stack)
            clients = [await stack.enter_async_context(Client(made)) for made in (before, after)]
            listed = [[name for name in await client.names() if name in NAMES] for client in clients]
            assert listed[0] == listed[1]
            for name in listed[0]:
                first, second = [
                    [await outcome(client, str(name), arguments) for arguments in (GOOD, BAD)]
                    for client in clients
                ]
                assert first == second

    asyncio.run(check())


# ---- prompts and resources

PROMPTS = ["fs__greet", "fs__part", "a__greet"]
URIS = ["fs:///one", "fs:///two", "a:///one"]
plain_rules = st.lists(
    st.builds(
        Rule,
        st.sampled_from(["allow", "deny"]),
        st.sampled_from([*PROMPTS, *URIS, "*", "fs__*", "greet", "fs:*", "*one", "a:*", "*greet"]),
        identity=st.sampled_from(["*", "anonymous", "somebody"]),
    ),
    max_size=5,
)


async def refusal(client: Client, method: str, **params: object) -> str:
    """The words of the error; nothing if there is none."""
    try:
        await client.send(method, **params)
    except UpstreamRefused as refused:
        return refused.message
    return ""


@pytest.mark.requirement("K-03")
@settings(deadline=None, max_examples=60)
@given(rules=plain_rules)
def test_visible_is_usable_for_prompts_and_resources_too(rules: list[Rule]) -> None:
    async def check() -> None:
        fs = FakeServer("fs", prompts=["greet", "part"], resources=URIS[:2], capabilities=ABLE)
        a = FakeServer("a", prompts=["greet"], resources=URIS[2:], capabilities=ABLE)
        for server in (fs, a):
            server.answers["completion/complete"] = lambda params: {"completion": {"values": ["x"]}}
        async with Compositor(ALONE, [PermissionFilter(rules=Rules(rules))]) as made:
            for server in (fs, a):
                await made.mount(MountPrefix(server.name), server, name=server.name, wait=False)
            async with Client(made) as client:
                await expect_prompts(client)
                await expect_resources(client)

    asyncio.run(check())


ABLE: Mapping[str, object] = {"prompts": {}, "resources": {"subscribe": True}, "completions": {}}


def listed(result: Message, what: str, key: str) -> set[object]:
    items = result[what]
    assert isinstance(items, list)
    return {item[key] for item in items}


async def expect_prompts(client: Client) -> None:
    visible = listed(await client.send("prompts/list"), "prompts", "name")
    for name in PROMPTS:
        argument = {"name": "x", "value": ""}
        told = [
            await refusal(client, "prompts/get", name=name),
            await refusal(
                client, "completion/complete", ref={"type": "ref/prompt", "name": name}, argument=argument
            ),
        ]
        assert told == (["", ""] if name in visible else [f"unknown prompt '{name}'"] * 2)


async def expect_resources(client: Client) -> None:
    visible = listed(await client.send("resources/list"), "resources", "uri")
    for uri in URIS:
        for method in ("resources/read", "resources/subscribe", "resources/unsubscribe"):
            told = await refusal(client, method, uri=uri)
            assert told == ("" if uri in visible else f"Resource not found: {uri}"), method


async def test_null_for_arguments_is_judged_as_an_empty_object() -> None:
    rules = [Rule("deny", "fs__x", unless=UNLESS)]
    async with AsyncExitStack() as stack:
        made = await behind(rules, SERVERS, stack)
        raw = await stack.enter_async_context(RawClient(made))
        raw.initialize()
        raw.say("tools/call", 2, name="fs__x", arguments=None)
        raw.say("tools/call", 3, name="fs__read", arguments=None)
        await raw.answered()
        assert "denied[P001]" in words(raw.answer(2)["result"])
        assert words(raw.answer(3)["result"]) == "fs: read {}"
