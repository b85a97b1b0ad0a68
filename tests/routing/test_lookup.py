"""From what a client calls something to the server that has it, or to words that help."""

import pytest

from plait.routing.catalog import Catalog, Route, build
from plait.routing.lookup import Aliases, Ambiguous, owner_of, unknown_tool
from plait.routing.naming import SEPARATORS, Naming
from seams import FakeOffer

FILES = FakeOffer("fs", tools=["read", "write"])
NOTES = FakeOffer("notes", tools=["read", "take_note"])
BOTH = build([FILES, NOTES], Naming())


def found(name: str, catalog: Catalog = BOTH, naming: Naming | None = None) -> str | tuple[str, ...] | None:
    """The exposed name that another spelling leads to, the candidates, or nothing."""
    match Aliases(catalog.tools, naming or Naming()).find(name):
        case Route(exposed=exposed):
            return exposed
        case Ambiguous(candidates=candidates):
            return candidates
    return None


# ---- other spellings


@pytest.mark.requirement("X-05")
def test_a_bare_name_that_one_server_has_leads_there() -> None:
    assert found("write") == "fs__write"
    assert found("take_note") == "notes__take_note"


@pytest.mark.requirement("X-05")
def test_a_bare_name_that_several_have_lists_the_candidates() -> None:
    assert found("read") == ("fs__read", "notes__read")


@pytest.mark.requirement("X-01")
@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("spelled", SEPARATORS)
def test_the_forms_of_all_seeds_work_under_every_separator(separator: str, spelled: str) -> None:
    naming = Naming(separator)
    assert found(f"fs{spelled}read", build([FILES, NOTES], naming), naming) == f"fs{separator}read"


def test_a_spelling_that_fits_two_routes_lists_both() -> None:
    catalog = build(
        [FakeOffer("compositor", tools=["meta_x"]), FakeOffer("compositor_meta", tools=["x"])], Naming()
    )
    assert found("compositor_meta_x", catalog) == ("compositor__meta_x", "compositor_meta__x")


def test_a_tool_under_a_hashed_name_is_found_by_its_own() -> None:
    catalog = build([FakeOffer("fs", tools=["read file"])], Naming())
    [exposed] = catalog.tools.routes
    assert found("read file", catalog) == found("fs__read file", catalog) == exposed


def test_a_withheld_tool_has_no_other_spelling_either() -> None:
    offer = FakeOffer("fs", tools=["read", "secret"])
    offer.hidden = {"secret"}
    catalog = build([offer], Naming())
    assert found("secret", catalog) is found("fs.secret", catalog) is None


@pytest.mark.parametrize("name", ["", "nothing", "fs", "fs__", "__read", "READ", "FS__read", "fs-read"])
def test_what_fits_nothing_finds_nothing(name: str) -> None:
    assert found(name) is None


# ---- resources


def test_a_listed_resource_is_its_servers_whatever_templates_say() -> None:
    greedy = FakeOffer("greedy", resourceTemplates=["x://{+all}"])
    owner = FakeOffer("owner", resources=["x://1"])
    assert owner_of(build([greedy, owner], Naming()), "x://1", []) is owner


def test_the_most_literal_template_that_matches_decides() -> None:
    greedy = FakeOffer("greedy", resourceTemplates=["x://{+all}"])
    exact = FakeOffer("exact", resourceTemplates=["x://notes/{id}"])
    catalog = build([greedy, exact], Naming())
    assert owner_of(catalog, "x://notes/7", []) is exact
    assert owner_of(catalog, "x://notes/7/more", []) is greedy


def test_an_unlisted_uri_goes_to_the_only_server_that_has_resources() -> None:
    assert owner_of(BOTH, "y:1", [FILES]) is FILES


def test_an_unlisted_uri_is_never_guessed_between_two_servers() -> None:
    assert owner_of(BOTH, "y:1", [FILES, NOTES]) is None
    assert owner_of(BOTH, "y:1", []) is None


def test_uris_are_compared_as_they_are() -> None:
    offer = FakeOffer("a", resources=["file:///A%20b"])
    catalog = build([offer], Naming())
    assert owner_of(catalog, "file:///A%20b", []) is offer
    assert owner_of(catalog, "file:///A b", []) is owner_of(catalog, "FILE:///A%20b", []) is None


# ---- words that help


def test_an_unknown_tool_is_told_with_names_that_are_close() -> None:
    words = unknown_tool("fs__wriet", BOTH.tools.routes, {"fs", "notes"})
    assert words == "unknown tool 'fs__wriet'. Did you mean fs__write or fs__read or notes__read?"


@pytest.mark.requirement("S0-07")
def test_an_unknown_tool_of_a_known_server_blames_no_namespace() -> None:
    words = unknown_tool("fs__zzzzzzzzzzzzzzzzzz", BOTH.tools.routes, {"fs", "notes"})
    assert words == "unknown tool 'fs__zzzzzzzzzzzzzzzzzz'. 4 tools are listed by tools/list."


@pytest.mark.requirement("S0-06")
@pytest.mark.parametrize("name", ["git__read", "git.read", "git__a__b"])
def test_a_left_part_that_is_no_mount_is_an_unknown_namespace(name: str) -> None:
    assert "unknown namespace 'git'" in unknown_tool(name, BOTH.tools.routes, {"fs", "notes"})


def test_a_single_underscore_is_too_common_to_mean_a_namespace() -> None:
    assert "namespace" not in unknown_tool("take_notes", BOTH.tools.routes, {"fs", "notes"})


@pytest.mark.requirement("S1-E7")
def test_with_nothing_mounted_every_namespace_is_unknown() -> None:
    words = unknown_tool("fs__read", {}, set())
    assert words == "unknown tool 'fs__read': unknown namespace 'fs'. 0 tools are listed by tools/list."


def test_a_very_long_name_is_not_repeated_in_full() -> None:
    assert len(unknown_tool("x" * 1_000_000, BOTH.tools.routes, {"fs"})) < 1000
