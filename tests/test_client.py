"""A client for programs, on a compositor of this process and on other transports."""

import asyncio

import pytest
from fastmcp import Context, FastMCP
from msgspec import Raw

from clients import ALONE, PATIENCE, compositor
from clock import jumping, now, quiet
from fakes import FakeServer, Held, Message, text
from mounting import mount
from plait import Client, Compositor, CompositorState, FunctionProvider, MountPrefix, ToolContext
from plait.config.model import Settings
from plait.errors import (
    ExecutionFailed,
    LocalProtocolError,
    UpstreamBroken,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from plait.handlers import Params
from plait.notices import Notices
from plait.session.exchange import Exchange, Handler, Reply
from plait.testing import MockTransport
from plait.wire.content import error_result
from plait.wire.spec import Kind
from plait.wire.tools import CallToolResult, ToolDefinition

GREETING: Message = {"protocolVersion": "2025-11-25", "capabilities": {}}

# ---- being connected


@pytest.mark.requirement("S3-06")
async def test_servers_of_every_kind_are_mounted_and_used_as_the_seed_writes_it() -> None:
    notes = FastMCP("an implementation detail")

    @notes.tool
    async def add(a: int, b: int, ctx: Context) -> int:
        """Adds."""
        await ctx.report_progress(1, 2, "half")
        return a + b

    def shout(text: str) -> str:
        return text.upper()

    async with asyncio.timeout(PATIENCE), Compositor(ALONE) as comp:
        await mount(comp, "notes", notes)
        await mount(comp, "loud", FunctionProvider("loud", [shout]))
        async with Client(comp) as client:
            assert {tool.name for tool in await client.list_tools()} == {"notes__add", "loud__shout"}
            seen: list[object] = []
            result = await client.call_tool(
                comp.tool_name(MountPrefix("notes"), "add"),
                {"a": 2, "b": 3},
                on_progress=lambda *progress: seen.append(progress),
            )
            assert result.structured == {"result": 5}
            assert seen == [(1, 2, "half")]
            assert await client.execute("loud__shout", '{"text": "hey"}') == "HEY"
    assert comp.state is CompositorState.CLOSED


@jumping
async def test_a_client_is_entered_once_and_used_inside() -> None:
    async with compositor(FakeServer("a")) as made:
        client = Client(made)
        assert repr(client) == "<Client not connected>"
        with pytest.raises(LocalProtocolError, match="use it inside `async with Client"):
            await client.list_tools()
        async with client:
            assert repr(client) == "<Client 2025-11-25>"
            assert client.session.server_info["name"] == "plait"
            await client.ping()
            with pytest.raises(LocalProtocolError, match="entered once"):
                await client.__aenter__()
        with pytest.raises(LocalProtocolError, match="not connected"):
            await client.execute("a__t")


@jumping
async def test_leaving_ends_the_calls_and_leaves_nobody_behind() -> None:
    server = FakeServer("a", tools=["t"])
    server.hang("tools/call")
    async with compositor(server) as made:
        async with asyncio.TaskGroup() as group:
            async with Client(made) as client:
                call = group.create_task(client.execute("a__t"))
                await quiet()
            await asyncio.wait([call])
        assert call.result().is_error
        assert len(server.told("notifications/cancelled")) == 1
        assert made.registry.clients == 0


@jumping
async def test_a_connection_that_fails_leaves_nothing_open() -> None:
    transport = MockTransport([{"error": {"code": -1, "message": "go away"}}])
    with pytest.raises(UpstreamRefused, match="go away"):
        await Client(transport).__aenter__()
    with pytest.raises(UpstreamUnavailable, match="no more replies"):
        await Client(MockTransport()).__aenter__()


# ---- lists, calls and the rest


@pytest.mark.requirement("BD-45")
@jumping
async def test_what_a_server_says_of_a_tool_arrives_unchanged() -> None:
    annotations = {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
        "laterHint": {"x": 1},
    }
    schema = {"type": "object", "x-mine": True}
    tool: Message = {"name": "t", "inputSchema": schema, "annotations": annotations, "icons": [], "x": None}
    async with compositor(FakeServer("a", tools=[tool])) as made, Client(made) as client:
        more: Message = {"annotations": annotations, "icons": [], "x": None}
        assert await client.list_tools() == [ToolDefinition("a__t", "", schema, more)]


@pytest.mark.requirement("BD-45")
@jumping
async def test_a_tool_that_calls_itself_harmless_gets_no_privilege() -> None:
    tool: Message = {"name": "t", "inputSchema": {}, "annotations": {"readOnlyHint": True}}
    server = FakeServer("a", tools=[tool, "u"])
    async with Compositor(middleware=[_denying]) as made:
        await mount(made, "a", server)
        async with Client(made) as client:
            assert (await client.call_tool("a__t")).is_error
            assert (await client.call_tool("a__u")).is_error
    assert server.calls == []


async def _denying(exchange: Exchange, call_next: Handler) -> Reply:
    return Reply(result=error_result("no"))


@jumping
async def test_lists_are_whole_however_many_pages_they_have() -> None:
    server = FakeServer(
        "a",
        tools=[f"t{number}" for number in range(7)],
        resources=["x:1", "x:2", "x:3"],
        templates=["x:{n}", "y:{n}"],
        prompts=["p", "q", "r"],
    )
    async with compositor(server, settings=Settings(page_size=2)) as made, Client(made) as client:
        assert [tool.name for tool in await client.list_tools()] == [f"a__t{number}" for number in range(7)]
        assert [each["uri"] for each in await client.list_resources()] == ["x:1", "x:2", "x:3"]
        assert [each["uriTemplate"] for each in await client.list_resource_templates()] == ["x:{n}", "y:{n}"]
        assert [each["name"] for each in await client.list_prompts()] == ["a__p", "a__q", "a__r"]


@jumping
async def test_a_result_keeps_every_field() -> None:
    server = FakeServer("a", tools=["t"])
    whole = {**text("x"), "structuredContent": {"n": 1}, "_meta": {"k": 1}, "later": [1]}
    server.answers["tools/call"] = lambda params: whole
    async with compositor(server) as made, Client(made) as client:
        result = await client.call_tool("a__t", {"x": 1})
        assert result.wire() == {**whole, "isError": False}
        assert server.calls[0].arguments == {"x": 1}


@jumping
async def test_a_failure_is_a_result_or_an_exception_as_one_likes() -> None:
    server = FakeServer("a", tools={"t": CallToolResult.error("out of ink").wire()})
    async with compositor(server) as made, Client(made) as client:
        assert (await client.call_tool("a__t")).is_error
        with pytest.raises(ExecutionFailed, match="out of ink"):
            await client.call_tool("a__t", raise_on_error=True)
        with pytest.raises(UpstreamRefused, match="unknown prompt"):
            await client.get_prompt("a__u")


@jumping
async def test_a_call_has_its_own_deadline_and_progress_starts_it_anew() -> None:
    server = FakeServer("a", tools=["t"])
    held: list[Held] = []

    def hold(params: Message) -> Held:
        held.append(Held())
        return held[-1]

    server.answers["tools/call"] = hold
    async with compositor(server) as made, Client(made) as client:
        await client.list_tools()
        began = now()
        with pytest.raises(UpstreamTimeout, match="did not answer tools/call within 5 s"):
            await client.call_tool("a__t", timeout=5)
        assert now() - began == pytest.approx(5)
        seen: list[float] = []
        async with asyncio.TaskGroup() as group:
            call = group.create_task(
                client.call_tool("a__t", timeout=5, on_progress=lambda value, *rest: seen.append(value))
            )
            for value in (1, 2, 3):
                await asyncio.sleep(4)
                meta = server.asked("tools/call")[-1]["_meta"]
                assert isinstance(meta, dict)
                progress = {"progressToken": meta["progressToken"], "progress": value}
                server.notify("notifications/progress", progress)
            await asyncio.sleep(4)
            held[-1].answer(text("late"))
        assert (call.result().content[0].fields["text"], seen) == ("late", [1, 2, 3])


@jumping
async def test_resources_prompts_and_the_rest_of_the_protocol_are_plain_values() -> None:
    server = FakeServer(
        "a",
        resources={"x:1": "one"},
        prompts={"greet": lambda name: f"Greet {name}."},
        capabilities={
            "resources": {"subscribe": True},
            "prompts": {},
            "logging": {},
            "completions": {},
            "tools": {},
        },
    )
    server.answers["completion/complete"] = lambda params: {"completion": {"values": ["Ann"], "x": 1}}
    async with compositor(server) as made, Client(made) as client:
        await client.list_tools()
        assert await client.read_resource("x:1") == {"contents": [{"uri": "x:1", "text": "one"}]}
        prompt = await client.get_prompt("a__greet", {"name": "Ann"})
        assert prompt["messages"] == [{"role": "user", "content": {"type": "text", "text": "Greet Ann."}}]
        reference = {"type": "ref/prompt", "name": "a__greet"}
        completed = await client.complete(reference, "name", "A", {"other": "B"})
        assert completed == {"completion": {"values": ["Ann"], "x": 1}}
        asked = server.asked("completion/complete")[0]
        assert asked["argument"] == {"name": "name", "value": "A"}
        assert asked["context"] == {"arguments": {"other": "B"}}
        await client.subscribe_resource("x:1")
        await client.unsubscribe_resource("x:1")
        await client.set_logging_level("warning")
        await quiet()
        methods = [method for method, _ in server.requests]
        assert {"resources/subscribe", "resources/unsubscribe", "logging/setLevel"} <= set(methods)


@jumping
async def test_any_request_can_be_made_and_an_error_is_raised_with_its_code() -> None:
    async with compositor(FakeServer("a", tools=["t"])) as made, Client(made) as client:
        listed = await client.request("tools/list", {})
        assert isinstance(listed, dict)
        assert listed["tools"][0]["name"] == "a__t"
        with pytest.raises(UpstreamRefused) as refused:
            await client.request("no/such", {"x": 1})
        assert refused.value.code == -32601


# ---- questions


@jumping
async def test_a_server_can_ask_in_the_middle_of_a_call() -> None:
    async def think(about: str) -> str:
        sampled = await server.question("sampling/createMessage", {"messages": [about], "maxTokens": 9})
        roots = await server.question("roots/list")
        failed = await server.question("elicitation/create", {"message": "m", "requestedSchema": {}})
        return f"{sampled['result']} {roots['result']} {failed['error']}"

    def broken(params: Params) -> Params:
        raise ZeroDivisionError

    server = FakeServer("a", tools=[think])
    async with (
        compositor(server) as made,
        Client(
            made,
            sampling=lambda params: {"about": params["messages"]},
            elicitation=broken,
            roots=["file:///a"],
        ) as client,
    ):
        said = await client.execute("a__think", {"about": "hair"})
        assert "{'about': ['hair']}" in said
        assert "{'roots': [{'uri': 'file:///a'}]}" in said
        assert "the client's handler failed (ZeroDivisionError)" in said
        declared = server.asked("initialize")[0]["capabilities"]
        assert declared == {"elicitation": {}, "roots": {"listChanged": True}, "sampling": {}}
        client.roots_changed()
        await quiet()
        assert server.told("notifications/roots/list_changed") == [{}]


# ---- notifications


@jumping
async def test_log_messages_progress_and_notifications_reach_their_handlers() -> None:
    logged: list[Params] = []
    heard: list[str] = []
    progress: list[object] = []

    async def work(context: ToolContext) -> str:
        context.progress(1, 2, "half")
        return "done"

    server = FakeServer("a", tools=[work])
    async with (
        compositor(server) as made,
        Client(
            made,
            logging=logged.append,
            listener=lambda method, params: heard.append(method),
            progress=lambda *told: progress.append(told),
        ) as client,
    ):
        await client.call_tool("a__work")
        assert progress == [(1, 2, "half")]
        server.notify("notifications/message", {"level": "info", "data": "x"})
        server.change(Kind.TOOLS, ["u"])
        await asyncio.sleep(1)
        assert logged == [{"level": "info", "data": "x", "logger": "a"}]
        assert heard == ["notifications/message", "notifications/tools/list_changed"]


@pytest.mark.requirement("BD-32")
@jumping
async def test_changes_are_gathered_per_server_those_before_the_client_came_as_well() -> None:
    a, b = FakeServer("a", resources=["x:1"]), FakeServer("b", resources=["y:1"], tools=["t"])
    async with compositor(a, b) as made:
        async with Client(made) as first:
            await first.list_resources()
            assert first.notifications.poll() == {}, "the lists of a start are new, not changed"
        a.updated("x:1")
        b.change(Kind.TOOLS, ["t", "u"])
        await asyncio.sleep(1)
        async with Client(made) as second:
            assert second.notifications.poll() == {
                "a": Notices(frozenset({"x:1"})),
                "b": Notices(list_changed=True),
            }
            a.updated("x:2")
            await quiet()
            rendered = second.notifications.render()
            assert rendered == '<notifications>\n{"a": {"updated": ["x:2"]}}\n</notifications>'
            assert second.notifications.render() == ""
        assert made.changes.pop_recent_list_changes() == ["b"]


@pytest.mark.requirement("BD-32")
@jumping
async def test_on_another_transport_changes_are_gathered_from_what_the_server_tells() -> None:
    server = FakeServer("a", resources=["x:1"], capabilities={"resources": {"subscribe": True}})
    async with compositor(server) as made, Client(made.transport()) as client:
        await client.list_resources()
        await client.subscribe_resource("x:1")
        server.updated("x:1")
        server.change(Kind.RESOURCES, ["x:1", "x:2"])
        await asyncio.sleep(1)
        assert client.notifications.poll() == {"": Notices(frozenset({"x:1"}), list_changed=True)}


# ---- for agent loops


@pytest.mark.requirement("S3-03")
@jumping
async def test_a_model_sees_the_names_that_the_prefixes_make_and_calls_by_them() -> None:
    def read(path: str) -> str:
        """Read a file."""
        return f"what is in {path}"

    fs = MountPrefix("fs")
    async with compositor(FakeServer("fs", tools=[read])) as made, Client(made) as client:
        [openai] = await client.schemas("openai")
        [anthropic] = await client.schemas("anthropic")
        name = made.tool_name(fs, "read")
        assert (openai["type"], openai["function"]["name"]) == ("function", name)  # type: ignore[index]
        assert (anthropic["name"], anthropic["description"]) == (name, "Read a file.")
        assert anthropic["input_schema"] == openai["function"]["parameters"]  # type: ignore[index]
        assert await client.execute(name, {"path": "x"}) == "what is in x"
        assert await client.execute(name, '{"path": "x"}') == "what is in x"


@jumping
async def test_a_name_that_the_api_would_refuse_is_called_by_the_one_it_was_given() -> None:
    async with compositor() as made:
        await mount(made, "", FakeServer("bare", tools=["as it is"]))
        async with Client(made) as client:
            [shape] = await client.schemas("anthropic")
            assert shape["name"] == "as_it_is_f5c9477a"
            assert await client.execute("as_it_is_f5c9477a") == "bare: as it is {}"
            assert await client.execute("as it is") == "bare: as it is {}"


@jumping
async def test_whatever_goes_wrong_is_words_for_the_model() -> None:
    server = FakeServer("a", tools={"t": CallToolResult.error("out of ink").wire(), "u": "fine"})
    async with compositor(server) as made, Client(made) as client:
        await client.list_tools()
        cases: list[tuple[str, str | Message, str]] = [
            ("a__t", {}, "out of ink"),
            ("a__x", {}, "unknown tool 'a__x'"),
            ("a__u", '{"x": ', "the arguments are not one JSON object"),
            ("a__u", "[]", "the arguments are not one JSON object"),
        ]
        for name, arguments, said in cases:
            failed = await client.execute(name, arguments)
            assert failed.is_error
            assert said in failed
        server.hang("tools/call")
        late = await client.execute("a__u", timeout=5)
        assert (late.is_error, "did not answer" in late) == (True, True)


@jumping
async def test_an_answer_that_nobody_can_read_is_the_servers_fault() -> None:
    server = FakeServer("a", tools=["t"])
    server.answers["tools/call"] = lambda params: Raw(b'{"content":[],"x":1e999}')
    async with compositor(server) as made, Client(made) as client:
        with pytest.raises(UpstreamBroken, match="tools/call was answered with something unreadable"):
            await client.call_tool("a__t")
        assert (await client.execute("a__t")).is_error


# ---- a plain transport


@jumping
async def test_a_client_works_on_any_transport() -> None:
    transport = MockTransport([GREETING, {"tools": [{"name": "t"}, {"no": "name"}]}, text("x")])
    async with Client(transport) as client:
        assert [tool.name for tool in await client.list_tools()] == ["t"]
        assert (await client.call_tool("t")).content[0].fields["text"] == "x"
    assert transport.sent == ["initialize", "notifications/initialized", "tools/list", "tools/call"]
