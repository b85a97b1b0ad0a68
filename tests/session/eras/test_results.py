"""Results from one era to the other, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.json import decode

from plait.session.eras.results import (
    STALE,
    Freshness,
    completed,
    for_handshake,
    freshness_of,
    kind_of,
)
from plait.wire.address import as_raw
from plait.wire.envelope import open_fields
from plait.wire.modern import CACHEABLE, SERVER_KEY, SUBSCRIPTION_KEY

US = as_raw({"name": "plait"})
METHODS = st.sampled_from([*sorted(CACHEABLE), "tools/call", "prompts/get", "completion/complete"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
OURS = ("resultType", "ttlMs", "cacheScope", "_meta", "structuredContent", "content")
PAYLOADS = st.dictionaries(st.text(max_size=6).filter(lambda key: key not in OURS), JSON, max_size=4)


def done(method: str, payload: object, *, asks: bool = False) -> dict[str, object]:
    made: dict[str, object] = decode(completed(method, b'"L1"', as_raw(payload), US, asks=asks))
    return made


def test_a_handshake_servers_result_becomes_a_complete_one() -> None:
    assert done("tools/call", {"content": []}) == {
        "content": [],
        "resultType": "complete",
        "_meta": {SERVER_KEY: {"name": "plait"}},
    }


def test_what_may_be_kept_says_for_how_long() -> None:
    assert done("tools/list", {"tools": []})["ttlMs"] == 0
    assert done("resources/read", {"contents": []})["cacheScope"] == "private"
    kept = done("resources/read", {"contents": [], "ttlMs": 70, "cacheScope": "public"})
    assert (kept["ttlMs"], kept["cacheScope"]) == (70, "public")
    assert "ttlMs" not in done("tools/call", {"content": []})
    assert "ttlMs" not in done("resources/read", {"inputRequests": {}}, asks=True)


def test_the_server_named_on_a_result_is_us() -> None:
    theirs = {"_meta": {SERVER_KEY: {"name": "theirs"}, SUBSCRIPTION_KEY: 7, "vendor/x": 1}}
    assert done("tools/call", theirs)["_meta"] == {SERVER_KEY: {"name": "plait"}, "vendor/x": 1}


def test_the_end_of_a_stream_names_the_stream() -> None:
    assert done("subscriptions/listen", {})["_meta"] == {
        SERVER_KEY: {"name": "plait"},
        SUBSCRIPTION_KEY: "L1",
    }


@given(METHODS, PAYLOADS)
def test_from_handshake_to_modern_and_back_is_the_same(method: str, payload: dict[str, object]) -> None:
    assert decode(for_handshake(method, completed(method, b"1", as_raw(payload), US))) == payload


@given(METHODS, PAYLOADS, st.integers(0, 10**9), st.sampled_from(["public", "private"]))
def test_from_modern_to_modern_keeps_everything(
    method: str, payload: dict[str, object], milliseconds: int, scope: str
) -> None:
    cache = {"ttlMs": milliseconds, "cacheScope": scope} if method in CACHEABLE else {}
    sent = {**payload, "resultType": "complete", **cache, "_meta": {"vendor/x": [1]}}
    received = done(method, sent)
    meta = received.pop("_meta")
    assert received == {key: value for key, value in sent.items() if key != "_meta"}
    assert meta == {"vendor/x": [1], SERVER_KEY: {"name": "plait"}}


def test_the_modern_fields_are_not_for_handshake_clients() -> None:
    sent = {
        "contents": [{"uri": "x:", "text": "t", "odd": 1}],
        "resultType": "complete",
        "ttlMs": 5,
        "cacheScope": "public",
        "_meta": {SERVER_KEY: {}},
        "odd": 2,
    }
    assert decode(for_handshake("resources/read", as_raw(sent))) == {
        "contents": [{"uri": "x:", "text": "t", "odd": 1}],
        "odd": 2,
    }
    kept = {"content": [], "ttlMs": 5, "_meta": {"vendor/x": 1, SERVER_KEY: {}}}
    assert decode(for_handshake("tools/call", as_raw(kept))) == {
        "content": [],
        "ttlMs": 5,
        "_meta": {"vendor/x": 1},
    }


TEXT = {"type": "text", "text": "[1]"}


@pytest.mark.parametrize(
    ("value", "schema", "structured", "content"),
    [
        ({"a": 1}, {"type": "object"}, {"a": 1}, []),
        ({"a": 1}, None, {"a": 1}, []),
        ([1], None, None, [TEXT]),
        ([1], {"type": "array"}, {"result": [1]}, [TEXT]),
        ([1], {"type": "array", "$id": "x"}, None, [TEXT]),
        (None, {"type": "null"}, {"result": None}, [{"type": "text", "text": "null"}]),
    ],
)
def test_structured_content_is_an_object_for_handshake_clients(
    value: object, schema: object, structured: object, content: object
) -> None:
    sent = as_raw({"content": [], "structuredContent": value})
    got = decode(for_handshake("tools/call", sent, None if schema is None else as_raw(schema)))
    assert got["content"] == content
    assert got.get("structuredContent") == structured


def test_a_result_says_what_kind_it_is() -> None:
    assert kind_of(Raw(b"{}")) == "complete"
    assert kind_of(Raw(b'{"resultType":"input_required"}')) == "input_required"
    assert kind_of(Raw(b'{"resultType":7}')) == "7"
    assert kind_of(Raw(b"[]")) == ""


def test_of_several_the_freshest_promise_is_the_shortest() -> None:
    one, other = Freshness(50, public=True), Freshness(20)
    assert one & other == Freshness(20)
    assert one & one == one
    assert one & STALE == STALE


@pytest.mark.parametrize("ttl", [-5, "soon", None, 1.5])
def test_what_is_no_time_is_none(ttl: object) -> None:
    assert freshness_of(open_fields(as_raw({"ttlMs": ttl, "cacheScope": "shared"}))) == STALE
