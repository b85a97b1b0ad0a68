"""Seed 000: many providers behind one object."""

import pytest

from plait.errors import ExecutionFailed, NotFound, PermissionDenied, ToolError
from plait.providers.composite import CompositeToolProvider
from plait.providers.context import ToolContext
from plait.providers.function import FunctionProvider
from plait.wire.tools import CallToolResult, ToolDefinition


class Provider:
    """Tools that say who they are, or fail as they are told to."""

    def __init__(self, namespace: str, *tools: str, failing: ToolError | None = None) -> None:
        self.namespace = namespace
        self._tools = tools
        self._failing = failing
        self.calls: list[str] = []

    async def list_tools(self) -> list[ToolDefinition]:
        return [ToolDefinition(tool, f"{tool} of {self.namespace}") for tool in self._tools]

    async def call_tool(self, name: str, arguments: dict[str, object]) -> CallToolResult:
        self.calls.append(name)
        if self._failing is not None:
            raise self._failing
        if name not in self._tools:
            raise NotFound(name)
        return CallToolResult.text(f"{self.namespace}:{name}:{arguments}")


def composite(*providers: Provider) -> CompositeToolProvider:
    made = CompositeToolProvider()
    for provider in providers:
        made.register(provider)
    return made


def said(result: CallToolResult) -> object:
    return result.content[0].fields["text"]


@pytest.mark.requirement("S0-01", "S0-T01", "S1-E7")
async def test_default_is_empty() -> None:
    assert await CompositeToolProvider().list_tools_all() == []
    with pytest.raises(NotFound, match="unknown namespace 'a'"):
        await CompositeToolProvider().call_tool("a__b", {})


@pytest.mark.requirement("S0-02", "S0-T02", "S1-T7.5")
async def test_list_tools_all_prefixes_names_in_registration_order() -> None:
    both = composite(Provider("b", "tool2"), Provider("a", "tool1"))
    assert [tool.name for tool in await both.list_tools_all()] == ["b__tool2", "a__tool1"]


@pytest.mark.requirement("S0-03", "S0-T03")
async def test_list_tools_all_preserves_descriptions() -> None:
    (tool,) = await composite(Provider("a", "x")).list_tools_all()
    assert tool.description == "x of a"


@pytest.mark.requirement("S0-04", "S0-05", "S0-T04", "S1-T7.6", "S1-AC14")
async def test_call_tool_routes_by_namespace() -> None:
    alpha, beta = Provider("alpha", "go"), Provider("beta", "go")
    both = composite(alpha, beta)
    assert said(await both.call_tool("beta__go", {"n": 1})) == "beta:go:{'n': 1}"
    assert said(await both.call_tool("alpha__go", {})) == "alpha:go:{}"
    assert (alpha.calls, beta.calls) == (["go"], ["go"])


async def test_a_tool_may_have_the_separator_in_its_own_name() -> None:
    assert said(await composite(Provider("a", "b__c")).call_tool("a__b__c", {})) == "a:b__c:{}"


@pytest.mark.requirement("S0-06", "S0-T05", "S1-T7.7")
async def test_call_tool_unknown_namespace_returns_not_found() -> None:
    with pytest.raises(NotFound, match="'nowhere'"):
        await composite(Provider("a", "x")).call_tool("nowhere__x", {})


@pytest.mark.requirement("S0-07", "S0-T06")
async def test_call_tool_unknown_tool_in_namespace_returns_not_found() -> None:
    other = Provider("b", "y")
    with pytest.raises(NotFound):
        await composite(Provider("a", "x"), other).call_tool("a__y", {})
    assert other.calls == []


@pytest.mark.requirement("S0-08", "S0-T07")
async def test_call_tool_without_namespace_goes_to_the_first_that_lists_it() -> None:
    first, second, third = Provider("a", "x"), Provider("b", "y"), Provider("c", "y")
    assert said(await composite(first, second, third).call_tool("y", {})) == "b:y:{}"
    assert first.calls == third.calls == [], "nobody is called to find out whether it has a tool"


@pytest.mark.requirement("S0-10", "S0-T08")
async def test_call_tool_without_namespace_not_found() -> None:
    with pytest.raises(NotFound, match="nothing"):
        await composite(Provider("a", "x")).call_tool("nothing", {})


@pytest.mark.requirement("S0-11", "S0-T09")
def test_provider_count() -> None:
    made = CompositeToolProvider()
    counts = [made.provider_count()]
    for namespace in ("a", "b"):
        made.register(Provider(namespace))
        counts.append(made.provider_count())
    made.unregister("a")
    assert [*counts, made.provider_count()] == [0, 1, 2, 1]


@pytest.mark.requirement("S0-09", "S0-T10")
@pytest.mark.parametrize("problem", [ExecutionFailed("boom"), PermissionDenied("x", "no")])
@pytest.mark.parametrize("name", ["a__x", "x"])
async def test_call_tool_propagates_non_not_found_errors(problem: ToolError, name: str) -> None:
    second = Provider("b", "x")
    with pytest.raises(type(problem)):
        await composite(Provider("a", "x", failing=problem), second).call_tool(name, {})
    assert second.calls == []


async def test_a_provider_that_lists_a_tool_and_then_has_none_is_passed_over() -> None:
    liar = Provider("a", "x", failing=NotFound("x"))
    assert said(await composite(liar, Provider("b", "x")).call_tool("x", {})) == "b:x:{}"


@pytest.mark.requirement("S1-039")
def test_whoever_serves_it_hears_of_every_change() -> None:
    made, heard = CompositeToolProvider(), []
    made.on_change(lambda: heard.append(made.provider_count()))
    made.register(Provider("a"))
    made.unregister("a")
    assert heard == [1, 0]
    with pytest.raises(NotFound, match="namespace 'a'"):
        made.unregister("a")


@pytest.mark.parametrize("name", ["jobs__count", "count"])
async def test_a_tool_behind_it_reports_progress_like_any_other(name: str) -> None:
    async def count(context: ToolContext) -> str:
        context.progress(1)
        return "counted"

    reported: list[float] = []
    made = CompositeToolProvider()
    made.register(FunctionProvider("jobs", [count]))
    context = ToolContext(lambda value, total, message: reported.append(value))
    assert said(await made.call_with(name, {}, context)) == "counted"
    assert reported == [1]
