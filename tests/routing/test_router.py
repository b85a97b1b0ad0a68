"""The innermost handler: finds the owner of a request and hands it over."""

from collections.abc import Callable, Sequence
from typing import Self

import pytest

from fakes import Message, words
from plait.errors import UpstreamUnavailable
from plait.routing.catalog import Catalog, Offer, build
from plait.routing.naming import Naming
from plait.routing.notifications import Audience
from plait.routing.pages import Pager
from plait.routing.router import Router
from plait.routing.subscriptions import Subscriptions
from plait.session.eras.results import Freshness
from plait.session.exchange import Caller, Reply, refuse
from plait.wire.address import as_raw
from plait.wire.spec import INVALID_PARAMS, LEVELS, LISTS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND, Kind
from seams import FakeCaller, FakeOffer, error_of, result_of


class Behind:
    """What is mounted, in a router's eyes. Servers in `late` are there once somebody waited for them."""

    def __init__(self, offers: Sequence[FakeOffer], late: Sequence[FakeOffer], naming: Naming) -> None:
        self._naming = naming
        self._late = list(late)
        self._offers = list(offers)
        self.catalog: Catalog = build(self._offers, naming)
        self.waits = 0
        self.levels: list[str] = []
        self.audience = Audience()

    @property
    def offers(self) -> list[Offer]:
        return list(self._offers)

    def capable(self, capability: str) -> list[Offer]:
        return [offer for offer in self._offers if offer.supports(capability)]

    async def settled(self, enough: Callable[[], bool] | None = None) -> None:
        if enough is not None and enough():
            return
        self.waits += 1
        self._offers += self._late
        self._late.clear()
        self.catalog = build(self._offers, self._naming)

    def starting(self, name: str) -> str | None:
        return "server 'slow' is not up" if name.startswith("slow__") else None

    def view(self, caller: Caller) -> Self:
        return self

    def set_level(self, caller: Caller, level: str) -> None:
        self.levels.append(level)

    def freshness(self, kind: Kind) -> Freshness:
        return Freshness(5000, public=True)


class Desk:
    """A router, what is behind it, and one client that asks."""

    def __init__(
        self,
        *offers: FakeOffer,
        late: Sequence[FakeOffer] = (),
        separator: str = "__",
        page_size: int | None = None,
    ) -> None:
        naming = Naming(separator)
        self.behind = Behind(offers, late, naming)
        self.audience = self.behind.audience
        self.client = FakeCaller("ann")
        self.audience.join(self.client)
        self.subscriptions = Subscriptions()
        self._router = Router(self.behind, naming, Pager(page_size), self.subscriptions)

    async def ask(self, method: str, **params: object) -> Reply:
        return await self._router(self.client.exchange(method, **params))

    async def call(self, name: str, **params: object) -> Reply:
        return await self.ask("tools/call", name=name, **params)


def is_error(reply: Reply) -> bool:
    return result_of(reply).get("isError") is True


# ---- tools


@pytest.mark.requirement("S0-04", "S0-05")
async def test_a_call_goes_to_its_server_alone_and_under_its_own_name() -> None:
    alpha, beta = FakeOffer("alpha", tools=["t", "a__b"]), FakeOffer("beta", tools=["t"])
    desk = Desk(alpha, beta)
    assert result_of(await desk.call("beta__t", arguments={"x": 1})) == {}
    assert result_of(await desk.call("alpha__a__b", arguments={}, extra="kept")) == {}
    assert beta.requests == [("tools/call", {"name": "t", "arguments": {"x": 1}})]
    assert alpha.requests == [("tools/call", {"name": "a__b", "arguments": {}, "extra": "kept"})]


async def test_a_known_name_waits_for_nobody() -> None:
    desk = Desk(FakeOffer("a", tools=["t"]), late=[FakeOffer("b", tools=["t"])])
    await desk.call("a__t")
    assert desk.behind.waits == 0


async def test_an_unknown_name_waits_for_servers_that_are_still_starting() -> None:
    late = FakeOffer("b", tools=["t"])
    assert not is_error(await Desk(late=[late]).call("b__t"))
    assert late.requests


@pytest.mark.requirement("BC-02")
@pytest.mark.parametrize("given", [{}, {"arguments": None}])
async def test_missing_arguments_mean_none(given: Message) -> None:
    offer = FakeOffer("a", tools=["t"])
    await Desk(offer).call("a__t", **given)
    assert offer.requests == [("tools/call", {"name": "t", "arguments": {}})]


@pytest.mark.parametrize("arguments", [[], "x", 7, 0, False, True])
async def test_arguments_that_are_no_object_never_reach_the_server(arguments: object) -> None:
    offer = FakeOffer("a", tools=["t"])
    assert error_of(await Desk(offer).call("a__t", arguments=arguments))["code"] == INVALID_PARAMS
    assert offer.requests == []


@pytest.mark.requirement("X-01")
@pytest.mark.parametrize("name", ["write", "fs_write", "fs.write", "fs__write"])
async def test_other_spellings_route_too_when_only_one_route_fits(name: str) -> None:
    fs, notes = FakeOffer("fs", tools=["write"]), FakeOffer("notes", tools=["read"])
    assert not is_error(await Desk(fs, notes).call(name))
    assert fs.requests == [("tools/call", {"name": "write", "arguments": {}})]


@pytest.mark.requirement("X-05")
async def test_a_name_that_several_have_lists_the_candidates_and_calls_none() -> None:
    fs, notes = FakeOffer("fs", tools=["read"]), FakeOffer("notes", tools=["read"])
    reply = await Desk(fs, notes).call("read")
    assert is_error(reply)
    assert words(result_of(reply)) == "several tools are called 'read': call one of fs__read, notes__read"
    assert fs.requests == notes.requests == []


@pytest.mark.requirement("S0-06", "S0-07", "S0-19")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fs__raed", "Did you mean fs__read?"),
        ("gti__read", "unknown namespace 'gti'"),
        ("zzz", "1 tools are listed"),
        ("", "unknown tool ''"),
        ("slow__x", "server 'slow' is not up"),
    ],
)
async def test_an_unknown_tool_is_a_result_that_helps_and_calls_nobody(name: str, said: str) -> None:
    fs = FakeOffer("fs", tools=["read"])
    reply = await Desk(fs).call(name)
    assert is_error(reply)
    assert said in words(result_of(reply))
    assert fs.requests == []


async def test_a_hidden_tool_answers_exactly_like_one_that_does_not_exist() -> None:
    fs = FakeOffer("fs", tools=["read", "gone"])
    fs.hidden = {"gone"}
    hidden = await Desk(fs).call("fs__gone")
    absent = await Desk(FakeOffer("fs", tools=["read"])).call("fs__gone")
    assert result_of(hidden) == result_of(absent)


@pytest.mark.requirement("S4-06")
async def test_with_a_dot_as_separator_a_name_without_one_is_refused() -> None:
    fs = FakeOffer("fs", tools=["read"])
    desk = Desk(fs, separator=".")
    error = error_of(await desk.call("read"))
    assert (error["code"], error["message"]) == (INVALID_PARAMS, "Invalid tool name format: 'read'")
    assert not is_error(await desk.call("fs.read"))


async def test_with_a_dot_as_separator_a_server_without_a_prefix_keeps_its_names() -> None:
    bare = FakeOffer("", tools=["read"])
    assert not is_error(await Desk(bare, separator=".").call("read"))


@pytest.mark.requirement("S0-19")
async def test_a_server_that_fails_is_told_as_a_result() -> None:
    fs = FakeOffer("fs", tools=["read"])
    fs.replies = [UpstreamUnavailable("server 'fs' stopped")]
    reply = await Desk(fs).call("fs__read")
    assert (is_error(reply), words(result_of(reply))) == (True, "server 'fs' stopped")


async def test_a_servers_own_error_passes_as_it_is() -> None:
    fs = FakeOffer("fs", tools=["read"])
    fs.replies = [refuse(-32042, "login first", {"url": "https://x"})]
    assert error_of(await Desk(fs).call("fs__read")) == {
        "code": -32042,
        "message": "login first",
        "data": {"url": "https://x"},
    }


# ---- lists


@pytest.mark.parametrize("method", LISTS)
async def test_a_list_waits_for_servers_that_are_still_starting(method: str) -> None:
    field = LISTS[method].value
    desk = Desk(late=[FakeOffer("b", **{field: ["x"]})])
    entries = result_of(await desk.ask(method))[field]
    assert isinstance(entries, list)
    assert len(entries) == 1


async def test_who_has_listed_is_remembered() -> None:
    desk = Desk()
    await desk.ask("prompts/list")
    desk.audience.lists_changed([LISTS["prompts/list"], LISTS["tools/list"]], starting=True)
    assert desk.client.heard == [("notifications/prompts/list_changed", {})]


@pytest.mark.requirement("X-45")
async def test_a_list_is_paged_and_a_bad_cursor_refused() -> None:
    desk = Desk(FakeOffer("a", tools=["1", "2", "3"]), page_size=2)
    first = result_of(await desk.ask("tools/list"))
    second = result_of(await desk.ask("tools/list", cursor=first["nextCursor"]))
    assert "nextCursor" not in second
    assert error_of(await desk.ask("tools/list", cursor="x"))["code"] == INVALID_PARAMS


# ---- prompts


@pytest.mark.parametrize("name", ["p__ask", "ask", "p.ask", "p_ask"])
async def test_a_prompt_is_found_like_a_tool(name: str) -> None:
    offer = FakeOffer("p", prompts=["ask"])
    await Desk(late=[offer]).ask("prompts/get", name=name, arguments={"x": "1"})
    assert offer.requests == [("prompts/get", {"name": "ask", "arguments": {"x": "1"}})]


async def test_an_unknown_or_ambiguous_prompt_is_an_error() -> None:
    desk = Desk(FakeOffer("a", prompts=["ask"]), FakeOffer("b", prompts=["ask"]))
    unknown, ambiguous = await desk.ask("prompts/get", name="x"), await desk.ask("prompts/get", name="ask")
    assert (error_of(unknown)["code"], error_of(ambiguous)["code"]) == (INVALID_PARAMS, INVALID_PARAMS)
    assert "a__ask, b__ask" in str(error_of(ambiguous)["message"])


# ---- resources


async def test_a_resource_is_read_from_its_owner_by_the_same_uri() -> None:
    a, b = FakeOffer("a", resources=["x:1"]), FakeOffer("b", resourceTemplates=["y:{id}"])
    desk = Desk(a, b)
    await desk.ask("resources/read", uri="x:1")
    await desk.ask("resources/read", uri="y:2")
    assert a.requests == [("resources/read", {"uri": "x:1"})]
    assert b.requests == [("resources/read", {"uri": "y:2"})]


async def test_an_unlisted_resource_is_asked_of_the_only_server_that_has_any() -> None:
    only = FakeOffer("a", ["resources"])
    await Desk(only, FakeOffer("b")).ask("resources/read", uri="z:1")
    assert only.requests == [("resources/read", {"uri": "z:1"})]


@pytest.mark.parametrize("method", ["resources/read", "resources/subscribe", "resources/unsubscribe"])
async def test_a_resource_of_nobody_is_not_found(method: str) -> None:
    desk = Desk(FakeOffer("a", ["resources"]), FakeOffer("b", ["resources"]))
    error = error_of(await desk.ask(method, uri="z:1"))
    assert (error["code"], error["data"]) == (RESOURCE_NOT_FOUND, {"uri": "z:1"})


async def test_a_server_that_fails_to_read_is_an_error_with_its_name() -> None:
    offer = FakeOffer("a", resources=["x:1"])
    offer.replies = [UpstreamUnavailable("server 'a' stopped")]
    error = error_of(await Desk(offer).ask("resources/read", uri="x:1"))
    assert (error["message"], error["data"]) == ("server 'a' stopped", {"kind": "unavailable", "server": "a"})


async def test_a_subscription_goes_through_the_book_of_subscriptions() -> None:
    offer = FakeOffer("a", ["resources", "resources.subscribe"], resources=["x:1"])
    desk = Desk(offer)
    assert result_of(await desk.ask("resources/subscribe", uri="x:1")) == {}
    assert desk.subscriptions.updated(offer, "x:1", {"uri": as_raw("x:1")})
    assert result_of(await desk.ask("resources/unsubscribe", uri="x:1")) == {}
    assert [method for method, _ in offer.requests] == ["resources/subscribe", "resources/unsubscribe"]


async def test_a_server_without_subscriptions_is_not_asked_for_one() -> None:
    offer = FakeOffer("a", ["resources"], resources=["x:1"])
    error = error_of(await Desk(offer).ask("resources/subscribe", uri="x:1"))
    assert (error["code"], error["data"]) == (INVALID_PARAMS, {"uri": "x:1", "server": "a"})
    assert offer.requests == []


# ---- completion


async def test_a_prompts_argument_is_completed_by_its_server_under_its_own_name() -> None:
    offer = FakeOffer("p", ["completions"], prompts=["ask"])
    offer.replies = [Reply(result=as_raw({"completion": {"values": ["a"]}, "kept": 1}))]
    reply = await Desk(offer).ask(
        "completion/complete", ref={"type": "ref/prompt", "name": "p__ask", "title": "kept"}, argument={}
    )
    assert result_of(reply) == {"completion": {"values": ["a"]}, "kept": 1}
    ref = {"type": "ref/prompt", "name": "ask", "title": "kept"}
    assert offer.requests == [("completion/complete", {"ref": ref, "argument": {}})]


@pytest.mark.parametrize("uri", ["x:{id}", "x:7"])
async def test_a_templates_argument_is_completed_by_its_server(uri: str) -> None:
    offer = FakeOffer("p", ["completions"], resourceTemplates=["x:{id}"])
    await Desk(offer, FakeOffer("q")).ask("completion/complete", ref={"type": "ref/resource", "uri": uri})
    assert offer.requests == [("completion/complete", {"ref": {"type": "ref/resource", "uri": uri}})]


async def test_a_server_that_does_not_complete_has_no_completions() -> None:
    offer = FakeOffer("p", prompts=["ask"])
    reply = await Desk(offer).ask("completion/complete", ref={"type": "ref/prompt", "name": "p__ask"})
    assert result_of(reply) == {"completion": {"values": []}}
    assert offer.requests == []


async def test_more_than_a_hundred_completions_are_cut_and_the_client_is_told() -> None:
    offer = FakeOffer("p", ["completions"], prompts=["ask"])
    values = [str(number) for number in range(150)]
    offer.replies = [Reply(result=as_raw({"completion": {"values": values, "total": 150}}))]
    reply = await Desk(offer).ask("completion/complete", ref={"type": "ref/prompt", "name": "p__ask"})
    assert result_of(reply) == {"completion": {"values": values[:100], "total": 150, "hasMore": True}}


@pytest.mark.parametrize("odd", [{}, {"completion": 7}, {"completion": {"values": {}}}])
async def test_a_completion_that_we_do_not_understand_passes_as_it_is(odd: Message) -> None:
    offer = FakeOffer("p", ["completions"], prompts=["ask"])
    offer.replies = [Reply(result=as_raw(odd))]
    reply = await Desk(offer).ask("completion/complete", ref={"type": "ref/prompt", "name": "p__ask"})
    assert result_of(reply) == odd


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"ref": 7},
        {"ref": {"type": "ref/prompt"}},
        {"ref": {"type": "ref/resource", "name": "x"}},
        {"ref": {"type": "ref/other", "name": "x"}},
        {"ref": {"type": "ref/prompt", "name": "unknown"}},
        {"ref": {"type": "ref/resource", "uri": "unknown:1"}},
    ],
)
async def test_a_completion_of_nothing_is_refused(params: Message) -> None:
    assert error_of(await Desk().ask("completion/complete", **params))["code"] == INVALID_PARAMS


async def test_a_server_that_fails_to_complete_is_an_error() -> None:
    offer = FakeOffer("p", ["completions"], prompts=["ask"])
    offer.replies = [UpstreamUnavailable("gone"), refuse(-1, "no")]
    desk = Desk(offer)
    for expected in ("gone", "no"):
        reply = await desk.ask("completion/complete", ref={"type": "ref/prompt", "name": "p__ask"})
        assert error_of(reply)["message"] == expected


# ---- the rest


@pytest.mark.parametrize("level", LEVELS)
async def test_a_level_is_set_at_all_servers(level: str) -> None:
    desk = Desk()
    assert result_of(await desk.ask("logging/setLevel", level=level)) == {}
    assert desk.behind.levels == [level]


@pytest.mark.parametrize("params", [{}, {"level": "loud"}, {"level": 3}, {"level": None}, {"level": "DEBUG"}])
async def test_a_level_that_is_none_is_refused_with_those_there_are(params: Message) -> None:
    desk = Desk()
    error = error_of(await desk.ask("logging/setLevel", **params))
    assert error["code"] == INVALID_PARAMS
    assert "debug, info, notice" in str(error["message"])
    assert desk.behind.levels == []


@pytest.mark.requirement("S0-20")
@pytest.mark.parametrize("method", ["made/up", "tasks/list", "tools", "", "notifications/tools/list_changed"])
async def test_an_unknown_method_is_told_by_name(method: str) -> None:
    error = error_of(await Desk().ask(method))
    assert (error["code"], error["message"]) == (METHOD_NOT_FOUND, f"Method not found: {method}")


async def test_a_name_that_has_arrived_waits_for_nobody_else() -> None:
    """One server that hangs must not delay a call to another that came up meanwhile."""
    late = FakeOffer("b", tools=["t"])
    desk = Desk(late=[late])
    enough: list[bool] = []
    settled = desk.behind.settled

    async def watching(condition: Callable[[], bool] | None = None) -> None:
        assert condition is not None
        enough.append(condition())
        await settled()
        enough.append(condition())

    desk.behind.settled = watching  # type: ignore[assignment]
    await desk.call("b__t")
    assert enough == [False, True]
