"""Pages of our own lists."""

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.json import decode

from fakes import Message
from plait.errors import RemoteProtocolError
from plait.routing.catalog import Listing, build
from plait.routing.naming import Naming
from plait.routing.pages import Pager
from plait.wire.address import as_raw
from plait.wire.spec import INVALID_PARAMS, Kind
from seams import FakeOffer


def tools(count: int) -> Listing:
    return build([FakeOffer("a", tools=[f"t{number}" for number in range(count)])], Naming()).tools


def cut(pager: Pager, listing: Listing, cursor: object = None, kind: Kind = Kind.TOOLS) -> Message:
    page: Message = decode(pager.cut(kind, listing, None if cursor is None else as_raw(cursor)))
    return page


def walk(pager: Pager, listing: Listing) -> list[list[str]]:
    """The names on every page, from the first to the last."""
    pages = [cut(pager, listing)]
    while "nextCursor" in pages[-1]:
        assert len(pages) <= len(listing.items), "there is no end"
        pages.append(cut(pager, listing, pages[-1]["nextCursor"]))
    return [[item["name"] for item in page["tools"]] for page in pages]  # type: ignore[attr-defined]


def refused(pager: Pager, listing: Listing, cursor: object, kind: Kind = Kind.TOOLS) -> None:
    with pytest.raises(RemoteProtocolError, match="list again from the start") as caught:
        cut(pager, listing, cursor, kind)
    assert caught.value.code == INVALID_PARAMS


@given(st.integers(0, 40), st.one_of(st.none(), st.integers(1, 45)))
@settings(deadline=None)
@pytest.mark.requirement("X-45")
def test_walking_all_pages_gives_all_items_once_and_in_order(count: int, size: int | None) -> None:
    pages = walk(Pager(size), tools(count))
    assert [name for names in pages for name in names] == [f"a__t{number}" for number in range(count)]
    assert all(len(names) <= (size or count) for names in pages)


@pytest.mark.requirement("K-20")
@pytest.mark.parametrize(("count", "size"), [(6, 3), (6, 6), (6, 1), (1, 1), (100, 50)])
def test_there_is_no_empty_page_after_an_exact_multiple(count: int, size: int) -> None:
    assert [len(names) for names in walk(Pager(size), tools(count))] == [size] * (count // size)


@pytest.mark.parametrize("size", [None, 1, 10])
def test_an_empty_list_is_one_empty_page(size: int | None) -> None:
    assert cut(Pager(size), tools(0)) == {"tools": []}


@pytest.mark.requirement("X-45")
def test_without_a_size_everything_is_on_one_page() -> None:
    listing = tools(500)
    assert Pager(None).cut(Kind.TOOLS, listing, None) is listing.whole


# ---- cursors that are not ours


@pytest.mark.requirement("X-45")
@pytest.mark.parametrize(
    "cursor", ["", "0", "3", "nonsense", "=", "é", "A" * 100_000, 3, None, True, {}, ["x"], 0.5]
)
@pytest.mark.parametrize("size", [None, 2])
def test_a_cursor_that_we_never_made_is_refused(cursor: object, size: int | None) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        Pager(size).cut(Kind.TOOLS, tools(5), as_raw(cursor))
    assert caught.value.code == INVALID_PARAMS


@given(st.data())
@settings(deadline=None)
def test_a_cursor_that_somebody_changed_is_refused(data: st.DataObject) -> None:
    pager, listing = Pager(2), tools(9)
    cursor = str(cut(pager, listing)["nextCursor"])
    place = data.draw(st.integers(0, len(cursor)))
    cut_off = data.draw(st.integers(0, 2))
    put_in = data.draw(st.text("ABCabc019-_= !\n", max_size=2))
    changed = cursor[:place] + put_in + cursor[place + cut_off :]
    if changed != cursor:
        refused(pager, listing, changed)


def test_the_offset_in_a_cursor_cannot_be_forged() -> None:
    pager, listing = Pager(2), tools(9)
    sealed = base64.urlsafe_b64decode(str(cut(pager, listing)["nextCursor"]))
    assert b",2]" in sealed
    refused(pager, listing, base64.urlsafe_b64encode(sealed.replace(b",2]", b",4]")).decode())


def test_a_cursor_of_another_process_is_refused() -> None:
    listing = tools(9)
    refused(Pager(2), listing, cut(Pager(2), listing)["nextCursor"])


def test_a_cursor_of_another_list_is_refused() -> None:
    pager = Pager(2)
    offer = FakeOffer("a", tools=["1", "2", "3"], prompts=["1", "2", "3"])
    catalog = build([offer], Naming())
    cursor = cut(pager, catalog.tools)["nextCursor"]
    refused(pager, catalog.prompts, cursor, Kind.PROMPTS)


@pytest.mark.requirement("X-45")
def test_a_cursor_of_a_list_that_has_changed_since_is_refused() -> None:
    pager = Pager(2)
    cursor = cut(pager, tools(9))["nextCursor"]
    refused(pager, tools(8), cursor)
    assert cut(pager, tools(9), cursor)
