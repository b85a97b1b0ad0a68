"""The only place where a prefix meets a name."""

import itertools
import re
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.config.model import is_prefix
from plait.errors import ConfigError
from plait.routing.catalog import build
from plait.routing.naming import SEPARATORS, InvalidPrefix, MountPrefix, Naming, build_mcp_function
from plait.wire.spec import Kind
from seams import FakeOffer

LEGAL = {
    "__": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "_": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    ".": re.compile(r"[A-Za-z0-9_.-]{1,64}"),
}

prefixes = st.from_regex(r"[a-z](?:[a-z0-9_-]{0,48}[a-z0-9-])?", fullmatch=True).filter(is_prefix)
tools = st.one_of(st.from_regex(r"[A-Za-z0-9_.-]{1,80}", fullmatch=True), st.text(min_size=1, max_size=80))
separators = st.sampled_from(SEPARATORS)


# ---- exposed names


@given(prefixes, tools, separators, st.integers(0, 40))
@settings(deadline=None)
@pytest.mark.requirement("X-01")
def test_an_exposed_name_always_fits_the_strictest_readers(
    prefix: str, tool: str, separator: str, budget: int
) -> None:
    name = Naming(separator, budget).expose(MountPrefix(prefix), tool)
    assert LEGAL[separator].fullmatch(name)
    assert len(name) <= 64 - budget


@pytest.mark.parametrize("budget", [41, 54, 55, 56, 63, 64, 65, 1000])
def test_a_budget_that_leaves_no_room_makes_no_name_longer(budget: int) -> None:
    assert len(Naming("__", budget).expose(MountPrefix("a" * 50), "t" * 80)) <= max(9, 64 - budget)


@pytest.mark.requirement("S0-02", "S1-E10")
@given(prefixes, st.from_regex(r"[A-Za-z0-9_-]{1,12}", fullmatch=True), separators)
@settings(deadline=None)
def test_a_name_that_fits_is_prefix_separator_and_tool(prefix: str, tool: str, separator: str) -> None:
    assert Naming(separator).expose(MountPrefix(prefix), tool) == f"{prefix}{separator}{tool}"


@pytest.mark.requirement("S0-04", "S1-E10")
@pytest.mark.parametrize("separator", ["__", "."])
def test_no_two_of_all_short_pairs_of_prefix_and_tool_share_a_name(separator: str) -> None:
    short = ["".join(chars) for length in range(1, 5) for chars in itertools.product("a_-", repeat=length)]
    pairs = [(prefix, tool) for prefix in short if is_prefix(prefix) for tool in short]
    names = {Naming(separator).expose(MountPrefix(prefix), tool) for prefix, tool in pairs}
    assert len(names) == len(pairs) > 1000


@given(st.lists(st.tuples(prefixes, tools), unique=True, min_size=2, max_size=20))
@settings(deadline=None)
def test_distinct_pairs_have_distinct_names(pairs: list[tuple[str, str]]) -> None:
    names = {Naming().expose(MountPrefix(prefix), tool) for prefix, tool in pairs}
    assert len(names) == len(pairs)


def test_names_that_differ_only_where_they_are_cut_stay_distinct() -> None:
    naming, prefix = Naming(), MountPrefix("p")
    names = {naming.expose(prefix, "x" * 70 + ending) for ending in ("", "a", "b", "aa")}
    assert len(names) == 4


def test_a_name_that_does_not_fit_keeps_its_readable_part_and_its_hash_for_ever() -> None:
    # Written down: somebody's allow list holds these names, so they may never change.
    naming, prefix = Naming(), MountPrefix("files")
    assert naming.expose(prefix, "read file") == "files__read_file_bbd14d49"
    assert naming.expose(prefix, "x" * 80) == f"files__{'x' * 48}_192b35cd"


@given(
    prefixes,
    st.lists(tools, unique=True, max_size=4),
    st.lists(st.tuples(prefixes, tools), max_size=4),
    st.lists(st.tuples(prefixes, tools), max_size=4),
)
@settings(deadline=None, max_examples=50)
def test_names_are_the_same_whatever_else_is_mounted(
    prefix: str, own: list[str], before: list[tuple[str, str]], after: list[tuple[str, str]]
) -> None:
    offer = FakeOffer(prefix, tools=own)
    others = [
        [FakeOffer(other, tools=[tool]) for other, tool in side if other != prefix]
        for side in (before, after)
    ]
    alone = build([offer], Naming())
    together = build([*others[0], offer, *others[1]], Naming())
    assert set(alone.tools.routes) <= set(together.tools.routes)


@pytest.mark.parametrize("separator", SEPARATORS)
def test_without_a_prefix_a_name_is_exposed_as_it_is(separator: str) -> None:
    assert Naming(separator).expose(MountPrefix.none(), "any name, as it is") == "any name, as it is"


# ---- K-01: names that could be read in two ways


@pytest.mark.requirement("K-01")
@pytest.mark.parametrize("separator", SEPARATORS)
def test_compositor_meta_is_a_prefix_under_every_separator(separator: str) -> None:
    offer = FakeOffer("compositor_meta", tools=["list"])
    catalog = build([offer], Naming(separator))
    assert catalog.tools.routes[f"compositor_meta{separator}list"].upstream is offer


@pytest.mark.requirement("K-01")
def test_of_two_tools_with_one_name_exactly_one_is_withheld_with_a_reason() -> None:
    first = FakeOffer("compositor", tools=["meta_list", "other"])
    second = FakeOffer("compositor_meta", tools=["list", "state"])
    catalog = build([first, second], Naming("_"))
    assert list(catalog.tools.routes) == ["compositor_meta_list", "compositor_other", "compositor_meta_state"]
    assert catalog.tools.routes["compositor_meta_list"].upstream is first
    [withheld] = catalog.withheld
    assert (withheld.kind, withheld.prefix, withheld.name) == (Kind.TOOLS, "compositor_meta", "list")
    assert withheld.reason == "compositor_meta_list is taken by compositor"


# ---- prefixes


@pytest.mark.requirement("S3-01")
@pytest.mark.parametrize("text", ["a", "git", "compositor_meta", "my-server-2", "a" * 50, "a-"])
def test_a_prefix_is_a_checked_type(text: str) -> None:
    assert MountPrefix(text) == text


@pytest.mark.requirement("S3-01")
@pytest.mark.parametrize(
    "text", ["", "A", "1a", "-a", "_a", "a__b", "a_", "a b", "a.b", "ä", "a\n", "a" * 51, "a/b"]
)
def test_what_is_no_prefix_is_refused_with_the_rule(text: str) -> None:
    with pytest.raises(InvalidPrefix, match="at most 50 characters") as caught:
        MountPrefix(text)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, ConfigError)


@given(st.text(max_size=120))
@settings(deadline=None)
def test_every_server_name_has_a_prefix_and_always_the_same(name: str) -> None:
    prefix = MountPrefix.of(name)
    assert is_prefix(prefix)
    assert MountPrefix.of(name) == prefix


@given(prefixes)
@settings(deadline=None)
def test_a_server_name_that_is_a_prefix_stays_as_it_is(name: str) -> None:
    assert MountPrefix.of(name) == name


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("GitHub", "github"),
        ("My Server", "my-server"),
        ("@scope/server-name", "scope-server-name"),
        ("a__b", "a_b"),
        ("_private_", "private"),
        ("7zip", "s-7zip"),
        ("文件", "s-39932f24"),
        ("x" * 60, f"{'x' * 41}-42f2d973"),
    ],
)
def test_a_prefix_reads_like_the_name_it_is_made_of(name: str, prefix: str) -> None:
    assert MountPrefix.of(name) == prefix


# ---- the one way to make a name


@pytest.mark.requirement("S3-02")
def test_build_mcp_function_makes_the_name_that_clients_see() -> None:
    prefix = MountPrefix("compositor_meta")
    assert build_mcp_function(prefix, "list") == "compositor_meta__list"
    assert build_mcp_function(prefix, "list", Naming("_")) == "compositor_meta_list"
    catalog = build([FakeOffer("compositor_meta", tools=["list"])], Naming())
    assert build_mcp_function(prefix, "list") in catalog.tools.routes


@pytest.mark.requirement("S3-01", "S3-02")
def test_build_mcp_function_refuses_a_plain_string() -> None:
    with pytest.raises(InvalidPrefix, match="plain string"):
        build_mcp_function(cast(MountPrefix, "files"), "read")


@pytest.mark.requirement("S3-02")
def test_build_mcp_function_refuses_a_tool_without_a_name() -> None:
    with pytest.raises(ValueError, match="a tool has a name"):
        build_mcp_function(MountPrefix("files"), "")


# ---- other spellings


def test_the_spellings_are_the_bare_name_and_every_separators_form() -> None:
    assert Naming().spellings(MountPrefix("fs"), "read") == {"read", "fs__read", "fs_read", "fs.read"}


def test_without_a_prefix_there_is_only_the_name_itself() -> None:
    assert Naming().spellings(MountPrefix.none(), "read") == {"read"}
