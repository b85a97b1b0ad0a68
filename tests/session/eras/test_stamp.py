"""The stamp of a modern request, read and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.json import decode

from plait.session.eras.stamp import Stamp, read_stamp, severity, stamped, unstamped
from plait.wire.address import as_raw
from plait.wire.envelope import Fields
from plait.wire.modern import CAPABILITIES_KEY, CLIENT_KEY, LEVEL_KEY, TASK_KEY, VERSION_KEY

CLIENT = as_raw({"name": "c", "version": "1"})


def meta(**more: object) -> Fields:
    return {
        VERSION_KEY: as_raw("2026-07-28"),
        CAPABILITIES_KEY: as_raw({"roots": {}}),
        **{key: as_raw(value) for key, value in more.items()},
    }


def code_of(found: Stamp | Raw) -> object:
    assert isinstance(found, Raw)
    return decode(found)["code"]


def test_a_stamp_says_who_asks() -> None:
    found = read_stamp("tools/list", {**meta(), CLIENT_KEY: CLIENT, LEVEL_KEY: as_raw("warning")})
    assert isinstance(found, Stamp)
    assert (found.revision, list(found.capabilities), found.level) == ("2026-07-28", ["roots"], 3)
    assert bytes(found.info["name"]) == b'"c"'


def test_nobody_has_to_say_its_name() -> None:
    found = read_stamp("tools/list", meta())
    assert isinstance(found, Stamp)
    assert found.info == {}
    assert found.level is None


@pytest.mark.parametrize(
    "broken",
    [
        None,
        {},
        {VERSION_KEY: as_raw("2026-07-28")},
        {VERSION_KEY: as_raw("2026-07-28"), CAPABILITIES_KEY: as_raw([])},
        {VERSION_KEY: as_raw(7), CAPABILITIES_KEY: as_raw({})},
        {CAPABILITIES_KEY: as_raw({})},
        {**meta(), LEVEL_KEY: as_raw("loud")},
        {**meta(), LEVEL_KEY: as_raw(None)},
    ],
)
def test_a_request_without_its_stamp_is_refused(broken: Fields | None) -> None:
    assert code_of(read_stamp("tools/list", broken)) == -32602


@pytest.mark.parametrize("revision", ["2025-11-25", "2027-01-01", ""])
def test_another_revision_is_told_which_we_speak(revision: str) -> None:
    found = read_stamp("tools/list", {**meta(), VERSION_KEY: as_raw(revision)})
    assert isinstance(found, Raw)
    error = decode(found)
    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": revision}


def test_what_is_no_stamp_stays_when_the_stamp_goes() -> None:
    rest = {"progressToken": as_raw(1), "traceparent": as_raw("00-1"), TASK_KEY: as_raw({"taskId": "t"})}
    params, left = unstamped({"name": as_raw("x"), "_meta": as_raw({})}, {**meta(), **rest})
    assert left == rest
    assert decode(params["_meta"]) == {key: decode(value) for key, value in rest.items()}
    params, left = unstamped({"name": as_raw("x"), "_meta": as_raw({})}, meta())
    assert (list(params), left) == (["name"], None)


@given(st.dictionaries(st.text(max_size=8), st.integers()), st.none() | st.integers(0, 7))
def test_putting_a_stamp_on_and_taking_it_off_leaves_the_rest(
    rest: dict[str, int], level: int | None
) -> None:
    given = {key: as_raw(value) for key, value in rest.items()}
    put_on = stamped(given, {"roots": as_raw({})}, CLIENT, level)
    found = read_stamp("x", put_on)
    assert isinstance(found, Stamp)
    assert found.level == level
    assert (unstamped({}, put_on)[1] or {}) == given


def test_a_stamp_of_another_hop_does_not_go_on() -> None:
    put_on = stamped({LEVEL_KEY: as_raw("debug"), "vendor/x": as_raw(1)}, {}, CLIENT)
    assert set(put_on) == {VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY, "vendor/x"}


def test_a_message_without_a_level_is_nobodys_to_suppress() -> None:
    assert severity(as_raw("info")) == 1
    assert severity(as_raw("loud")) == severity(None) == severity(as_raw(5)) == 8
