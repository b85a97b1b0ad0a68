from hypothesis import given
from hypothesis import strategies as st

from plait.providers.pinned.uris import ResourceTemplate

STATE = ResourceTemplate("compositor://{server}/state")


def test_a_template_makes_the_uri_of_a_server_and_knows_it_again() -> None:
    assert STATE.uri(server="fs") == "compositor://fs/state"
    assert STATE.match("compositor://fs/state") == "fs"
    assert str(STATE) == "compositor://{server}/state"


def test_what_is_no_uri_of_the_template_does_not_match() -> None:
    for uri in (
        "compositor://servers",
        "compositor:///state",
        "compositor://a/b/state",
        "x://fs/state",
        "compositor://state",
    ):
        assert STATE.match(uri) is None


@given(st.text(min_size=1))
def test_any_name_survives_being_part_of_a_uri(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        return  # half a character is no part of any name that was read from JSON
    assert STATE.match(STATE.uri(server=name)) == name
