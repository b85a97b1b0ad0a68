import json

import pytest
from msgspec import Raw

from plait.errors import RemoteProtocolError
from plait.wire.address import as_raw, read_address, read_reference, readdress, rename_reference


def test_the_address_of_a_call_is_its_name_and_of_a_read_its_uri() -> None:
    assert read_address("tools/call", {"name": Raw(b'"a\\u0062"')}) == "ab"
    assert read_address("resources/read", {"uri": Raw(b'"x://y"')}) == "x://y"
    assert read_address("tools/list", {}) == ""


@pytest.mark.parametrize("params", [{}, {"name": Raw(b"3")}, {"name": Raw(b"null")}])
def test_a_call_without_a_name_is_the_clients_mistake(params: dict[str, Raw]) -> None:
    with pytest.raises(RemoteProtocolError, match="needs a string 'name'") as caught:
        read_address("tools/call", params)
    assert caught.value.code == -32602


def test_readdressing_keeps_unknown_fields_and_their_order() -> None:
    params = {"x": Raw(b"1"), "name": Raw(b'"fs__read"'), "y": Raw(b"[ ]")}
    assert list(readdress("tools/call", params, as_raw("read")).items()) == [
        ("x", Raw(b"1")),
        ("name", Raw(b'"read"')),
        ("y", Raw(b"[ ]")),
    ]


def test_a_reference_names_a_prompt_or_a_template() -> None:
    assert read_reference({"ref": Raw(b'{"type":"ref/prompt","name":"p"}')}).name == "p"
    assert read_reference({"ref": Raw(b'{"type":"ref/resource","uri":"a://{b}"}')}).uri == "a://{b}"


@pytest.mark.parametrize("ref", [b"{}", b"3", b'{"type":"ref/prompt"}', b'{"type":"ref/tool","name":"x"}'])
def test_any_other_reference_is_refused(ref: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        read_reference({"ref": Raw(ref)})
    with pytest.raises(RemoteProtocolError):
        read_reference({})


def test_renaming_a_reference_keeps_what_else_is_in_it() -> None:
    renamed = rename_reference({"ref": Raw(b'{"type":"ref/prompt","name":"a__p","title":"T"}')}, as_raw("p"))
    assert json.loads(bytes(renamed["ref"])) == {"type": "ref/prompt", "name": "p", "title": "T"}
