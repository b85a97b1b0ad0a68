"""Everything we expose, as one immutable snapshot."""

import pytest
from msgspec import Raw
from msgspec.json import decode

from fakes import Message
from plait.routing.catalog import Catalog, Item, build, matches, page, read_items
from plait.routing.naming import Naming
from plait.wire.spec import Kind
from seams import FakeOffer


def listed(catalog: Catalog, kind: Kind) -> list[str]:
    items: list[Message] = [decode(item) for item in catalog.listing(kind).items]
    return [str(item[kind.key]) for item in items]


@pytest.mark.requirement("S0-02")
def test_the_order_is_that_of_the_mounts_and_then_of_each_server() -> None:
    catalog = build([FakeOffer("b", tools=["z", "a"]), FakeOffer("a", tools=["m"])], Naming())
    assert listed(catalog, Kind.TOOLS) == ["b__z", "b__a", "a__m"]


@pytest.mark.requirement("S0-03")
def test_only_the_name_of_a_tool_changes_and_all_the_rest_is_byte_for_byte_the_servers() -> None:
    entry = (
        b'{"title":"T", "name" : "t","inputSchema":{"type":"object", "x": 1.0e5,"x":"\\u00e9"},"new":[1 ,2]}'
    )

    class Verbatim(FakeOffer):
        def listed(self, kind: Kind) -> list[Item]:
            return read_items([Raw(entry)], kind)[0] if kind is Kind.TOOLS else []

    [item] = build([Verbatim("p")], Naming()).tools.items
    assert bytes(item) == (
        b'{"title":"T","name":"p__t","inputSchema":{"type":"object", "x": 1.0e5,"x":"\\u00e9"},"new":[1 ,2]}'
    )


def test_a_route_leads_to_the_server_under_its_own_name() -> None:
    offer = FakeOffer("files", tools=["read file"])
    [(exposed, route)] = build([offer], Naming()).tools.routes.items()
    assert exposed == route.exposed == "files__read_file_bbd14d49"
    assert (route.upstream, bytes(route.native)) == (offer, b'"read file"')


def test_prompts_are_named_like_tools_and_resources_keep_their_uris() -> None:
    offer = FakeOffer("p", prompts=["ask"], resources=["file:///a"], resourceTemplates=["file:///{x}"])
    catalog = build([offer], Naming())
    assert listed(catalog, Kind.PROMPTS) == ["p__ask"]
    assert listed(catalog, Kind.RESOURCES) == ["file:///a"]
    assert listed(catalog, Kind.TEMPLATES) == ["file:///{x}"]


@pytest.mark.parametrize("kind", [Kind.RESOURCES, Kind.TEMPLATES])
def test_a_uri_that_two_servers_have_stays_with_the_first_and_is_reported(kind: Kind) -> None:
    first, second = FakeOffer("a", **{kind.value: ["x:1"]}), FakeOffer("b", **{kind.value: ["x:1", "x:2"]})
    catalog = build([first, second], Naming())
    assert catalog.listing(kind).routes["x:1"].upstream is first
    assert listed(catalog, kind) == ["x:1", "x:2"]
    [withheld] = catalog.withheld
    assert (withheld.prefix, withheld.name, withheld.reason) == ("b", "x:1", "x:1 is taken by a")


def test_a_name_listed_twice_by_one_server_is_exposed_once() -> None:
    catalog = build([FakeOffer("a", tools=["t", "t"])], Naming())
    assert listed(catalog, Kind.TOOLS) == ["a__t"]
    assert [withheld.name for withheld in catalog.withheld] == ["t"]


def test_without_a_prefix_a_name_that_collides_is_withheld_from_the_later_mount() -> None:
    prefixed, bare = FakeOffer("a", tools=["t"]), FakeOffer("", tools=["a__t", "u"])
    assert listed(build([prefixed, bare], Naming()), Kind.TOOLS) == ["a__t", "u"]
    reversed_order = build([bare, prefixed], Naming())
    assert listed(reversed_order, Kind.TOOLS) == ["a__t", "u"]
    [withheld] = reversed_order.withheld
    assert withheld.reason == "a__t is taken by a server without a prefix"


def test_a_tool_called_like_the_hashed_name_of_another_is_withheld_and_nothing_else() -> None:
    catalog = build([FakeOffer("files", tools=["read file", "read_file_bbd14d49", "ok"])], Naming())
    assert listed(catalog, Kind.TOOLS) == ["files__read_file_bbd14d49", "files__ok"]
    assert [withheld.name for withheld in catalog.withheld] == ["read_file_bbd14d49"]


def test_a_tool_that_the_settings_hide_is_withheld_with_that_reason() -> None:
    offer = FakeOffer("a", tools=["shown", "hidden"], prompts=["hidden"])
    offer.hidden = {"hidden"}
    catalog = build([offer], Naming())
    assert listed(catalog, Kind.TOOLS) == ["a__shown"]
    assert listed(catalog, Kind.PROMPTS) == ["a__hidden"]
    assert [withheld.reason for withheld in catalog.withheld] == ["left out by the server's own settings"]


def test_the_whole_list_is_ready_made() -> None:
    catalog = build([FakeOffer("a", tools=[{"name": "t"}])], Naming())
    assert bytes(catalog.tools.whole) == b'{"tools":[{"name":"a__t"}]}'
    assert bytes(catalog.templates.whole) == b'{"resourceTemplates":[]}'


def test_templates_are_tried_most_literal_first() -> None:
    offer = FakeOffer("a", resourceTemplates=["x://{+all}", "x://deep/er/{id}", "x://deep/{+rest}"])
    patterns = build([offer], Naming()).patterns
    assert [template.text for template, _ in patterns] == [
        "x://deep/er/{id}",
        "x://deep/{+rest}",
        "x://{+all}",
    ]


# ---- what changed


def test_two_catalogs_of_the_same_lists_do_not_differ() -> None:
    offers = [FakeOffer("a", tools=["t"], resources=["x:1"])]
    assert build(offers, Naming()).changes(build(offers, Naming())) == []


@pytest.mark.parametrize("kind", list(Kind))
def test_only_the_lists_that_differ_have_changed(kind: Kind) -> None:
    older = build([FakeOffer("a")], Naming())
    assert build([FakeOffer("a", **{kind.value: ["one"]})], Naming()).changes(older) == [kind]


def test_another_description_is_a_change() -> None:
    older = build([FakeOffer("a", tools=[{"name": "t", "description": "old"}])], Naming())
    newer = build([FakeOffer("a", tools=[{"name": "t", "description": "new"}])], Naming())
    assert newer.changes(older) == [Kind.TOOLS]


# ---- reading a server's list


@pytest.mark.parametrize("entry", [b"7", b'"t"', b"[]", b"null", b"{}", b'{"name":7}', b'{"name":null}'])
def test_an_entry_without_a_usable_name_is_counted_and_the_rest_is_kept(entry: bytes) -> None:
    items, unusable = read_items([Raw(entry), Raw(b'{"name":"good"}')], Kind.TOOLS)
    assert [item.key for item in items] == ["good"]
    assert unusable == 1


def test_items_are_copied_out_of_the_message_they_came_in() -> None:
    message = bytearray(b'{"name":"good"}')
    items, _ = read_items([Raw(message)], Kind.TOOLS)
    message[:] = b"x" * len(message)
    assert bytes(items[0].fields["name"]) == b'"good"'


# ---- the small ones


def test_a_page_has_a_next_cursor_only_if_there_is_one() -> None:
    assert bytes(page(Kind.TOOLS, [Raw(b"1")])) == b'{"tools":[1]}'
    assert bytes(page(Kind.TOOLS, [Raw(b"1")], "more")) == b'{"tools":[1],"nextCursor":"more"}'


def test_patterns_are_globs_that_mind_the_case() -> None:
    assert matches(["read_*", "x"], "read_file")
    assert not matches(["READ_*"], "read_file")
    assert not matches([], "read_file")
