"""Tools that look as if they ran commands or fetched URLs, and whose arguments nobody judges."""

from collections.abc import Sequence

import pytest

from plait.cli.coverage import Uncovered, uncovered, warnings
from plait.config.model import ParameterSetting
from plait.outbound.urls import UrlPolicy
from plait.pipeline.commands import CommandPolicy
from plait.pipeline.compose import Layer
from plait.pipeline.permissions import PermissionFilter
from plait.pipeline.policy import Binding, SecurityGuard
from plait.pipeline.rules import Rule, Rules
from plait.routing.catalog import Route
from plait.wire.address import as_raw
from seams import FakeOffer

BOTH = SecurityGuard(CommandPolicy(), UrlPolicy())
OURS_ONLY = SecurityGuard(CommandPolicy(), UrlPolicy(), commands_of=["builtin"], urls_of=["builtin"])


def tool(name: str, *parameters: str, server: str = "s", schema: object = None) -> Route:
    if schema is None:
        schema = {"type": "object", "properties": {each: {"type": "string"} for each in parameters}}
    return Route(FakeOffer(server), as_raw(name), f"{server}__{name}", server, schema=as_raw(schema))


def found(route: Route, *guards: Layer, declared: Sequence[ParameterSetting] = ()) -> list[tuple[str, str]]:
    """Kind and parameter."""
    return [(each.kind, each.parameter) for each in uncovered([route], guards, declared)]


# ---- what looks so


@pytest.mark.parametrize("parameter", ["command", "cmd", "argv", "script", "code", "Command"])
def test_a_parameter_that_is_called_like_a_command_looks_executable(parameter: str) -> None:
    assert found(tool("build", "where", parameter)) == [("command", parameter)]


@pytest.mark.parametrize("parameter", ["url", "uri", "endpoint", "URL"])
def test_a_parameter_that_is_called_like_an_address_looks_networked(parameter: str) -> None:
    assert found(tool("read", parameter)) == [("url", parameter)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("exec", "command"),
        ("execute_query", "command"),
        ("run-tests", "command"),
        ("openShell", "command"),
        ("HTTPGet", "url"),
        ("git_fetch", "url"),
        ("fetch2", "url"),
    ],
)
def test_a_word_in_a_name_is_enough_where_there_are_parameters(name: str, kind: str) -> None:
    assert found(tool(name, "what")) == [(kind, "")]


@pytest.mark.parametrize(
    "name", ["prune", "executive_summary", "prefetcher", "trunk", "nutshell", "rerunning"]
)
def test_a_part_of_a_word_is_none(name: str) -> None:
    assert found(tool(name, "what")) == []


def test_both_kinds_are_told_of_one_tool_and_the_first_parameter_of_each() -> None:
    assert sorted(found(tool("job", "cmd", "script", "url"))) == [("command", "cmd"), ("url", "url")]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"step": {"type": "object", "properties": {"argv": {}}}}},
        {"properties": {"steps": {"type": "array", "items": {"properties": {"argv": {}}}}}},
        {"properties": {"step": {"anyOf": [{"type": "null"}, {"properties": {"argv": {}}}]}}},
        {"properties": {"step": {"$ref": "#/$defs/S"}}, "$defs": {"S": {"properties": {"argv": {}}}}},
    ],
)
def test_parameters_are_found_at_any_depth(schema: object) -> None:
    assert found(tool("job", schema=schema)) == [("command", "argv")]


def test_a_tool_without_parameters_has_nothing_to_judge() -> None:
    assert found(tool("run_tests")) == []


@pytest.mark.parametrize("schema", [{"type": "object"}, {}, True, [], {"properties": 3}])
def test_a_schema_that_says_nothing_excuses_nobody(schema: object) -> None:
    assert found(tool("run", schema=schema)) == [("command", "")]


# ---- what is covered


@pytest.mark.requirement("K-04")
def test_a_policy_that_the_user_wrote_covers_every_server() -> None:
    assert found(tool("job", "cmd", "url"), BOTH) == []
    assert found(tool("run", "command"), BOTH) == []


def test_the_policies_we_ship_cover_our_own_tools_only() -> None:
    assert found(tool("exec_shell", "argv", "command", server="builtin"), OURS_ONLY) == []
    assert found(tool("web_fetch", "url", server="builtin"), OURS_ONLY) == []
    assert found(tool("exec_shell", "argv", "command"), OURS_ONLY) == [("command", "argv")]


def test_a_policy_of_commands_is_none_of_urls() -> None:
    assert found(tool("job", "cmd", "url"), SecurityGuard(CommandPolicy())) == [("url", "url")]


def test_a_parameter_that_no_policy_knows_by_its_name_is_told_also_where_there_is_one() -> None:
    assert found(tool("python", "code"), BOTH) == [("command", "code")]
    assert found(tool("run", "line"), BOTH) == [("command", "")]


def test_what_the_user_declared_is_settled() -> None:
    judged = ParameterSetting(tool="s__*", parameter="code", kind="command")
    free = ParameterSetting(tool="s__python", parameter="*", kind="none")
    guard = SecurityGuard(CommandPolicy(), bindings=[Binding("s__*", "code", "command")])
    assert found(tool("python", "code"), guard, declared=[judged]) == []
    assert found(tool("python", "code"), declared=[free]) == []
    assert (
        found(
            tool("run", "line"), guard, declared=[ParameterSetting(tool="*", parameter="line", kind="none")]
        )
        == []
    )


def test_a_declaration_without_a_policy_settles_nothing() -> None:
    declared = ParameterSetting(tool="*", parameter="code", kind="command")
    assert found(tool("python", "code"), declared=[declared]) == [("command", "code")]


def test_a_server_may_declare_a_parameter_and_cannot_excuse_one() -> None:
    more = {"properties": {"line": {"type": "string", "x-plait-policy": "command"}}}
    less = {"properties": {"command": {"type": "string", "x-plait-policy": "none"}}}
    assert found(tool("run", schema=more), BOTH) == []
    assert found(tool("run", schema=less), BOTH) == [("command", "command")]


# ---- what nobody may call


def test_what_is_hidden_from_everybody_is_not_told() -> None:
    rules = Rules([Rule("deny", "s__run")])
    assert found(tool("run", "command"), PermissionFilter(rules=rules)) == []


def test_what_one_identity_may_call_is() -> None:
    some = Rules([Rule("allow", "s__run", identity="admin-*"), Rule("deny", "*")])
    others = Rules([Rule("deny", "*", identity="guest-*")])
    for rules in (some, others):
        assert found(tool("run", "command"), PermissionFilter(rules=rules)) == [("command", "command")]


# ---- the words


def test_a_warning_for_each_kind_names_all_and_says_what_to_write() -> None:
    told = warnings(
        [
            Uncovered("s__run", "command", "command"),
            Uncovered("s__get", "url", "url"),
            Uncovered("s__eval", "command"),
        ],
        "s",
        None,
    )
    assert [problem.code for problem in told] == ["W210", "W211"]
    assert told[0].message == (
        "s__run (command), s__eval (by its name) look as if they ran commands, "
        "and no policy judges the arguments"
    )
    assert '"policy": {"commands": {}, "parameters": {"s__run": {"command": "command"}}}' in told[0].hints[0]
    assert told[1].message.startswith("s__get (url) looks as if it reached URLs")
    assert all(problem.severity == "warning" and problem.server == "s" for problem in told)
