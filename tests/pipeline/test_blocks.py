import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.json import decode

from plait.pipeline.blocks import open_block, open_blocks, open_object, repeats_a_key
from plait.wire.envelope import open_fields

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
MEMBERS = st.lists(st.tuples(st.sampled_from(["a", "b", 'q"', "\\", "ü"]), VALUES), max_size=5)
BLANKS = st.sampled_from(["", " ", "\n\t "])


def spell(members: list[tuple[str, object]], blank: str, escape: bool) -> Raw:
    each = (f"{json.dumps(k, ensure_ascii=escape)}{blank}:{blank}{json.dumps(v)}" for k, v in members)
    return Raw(("{" + blank + f"{blank},{blank}".join(each) + blank + "}").encode())


@given(MEMBERS, BLANKS, st.booleans())
def test_an_object_that_says_something_twice_is_noticed_and_no_other(
    members: list[tuple[str, object]], blank: str, escape: bool
) -> None:
    raw = spell(members, blank, escape)
    assert repeats_a_key(raw, open_fields(raw)) is (len({key for key, _ in members}) < len(members))


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "text", "text": "hello"}, "hello"),
        ("bare", "bare"),
        ({"type": "resource", "resource": {"uri": "a:b", "text": "inside"}}, "inside"),
        ({"type": "something new", "text": "counts"}, "counts"),
        ({"type": "image", "data": "AAAA", "mimeType": "image/png"}, None),
        ({"type": "resource", "resource": {"uri": "a:b", "blob": "AAAA"}}, None),
        ({"type": "resource", "resource": None}, None),
        ({"type": "text", "text": 7}, None),
        (7, None),
        (None, None),
    ],
)
def test_whatever_has_a_text_is_text(block: object, text: str | None) -> None:
    assert open_block(Raw(json.dumps(block).encode())).text == text


def test_another_text_changes_nothing_else_of_a_block() -> None:
    raw = Raw(b'{"type" : "text","text":"a","annotations": {"x" : 1.50e3},"new":[ ]}')
    assert bytes(open_block(raw).with_text("b")) == (
        b'{"type":"text","text":"b","annotations":{"x" : 1.50e3},"new":[ ]}'
    )
    inside = Raw(b'{"type":"resource","resource":{"uri":"a:b","text":"a","_meta":{"k": 1}},"k":2}')
    assert bytes(open_block(inside).with_text("b")) == (
        b'{"type":"resource","resource":{"uri":"a:b","text":"b","_meta":{"k": 1}},"k":2}'
    )
    assert bytes(open_block(Raw(b'"a"')).with_text("b")) == b'"b"'


def test_of_a_block_that_says_its_text_twice_only_the_one_we_read_goes_on() -> None:
    block = open_block(Raw(b'{"type":"text","text":"first","text":"second"}'))
    assert (block.text, block.mended) == ("second", True)
    assert decode(block.raw) == {"type": "text", "text": "second"}
    assert b"first" not in bytes(block.raw)
    deep = open_block(Raw(b'{"type":"resource","resource":{"text":"first","text":"second"}}'))
    assert (deep.text, deep.mended) == ("second", True)
    assert b"first" not in bytes(deep.raw)


def test_what_is_no_list_has_no_blocks_and_what_is_no_object_no_fields() -> None:
    assert open_blocks(Raw(b'{"a":1}')) is None
    assert open_blocks(None) is None
    assert open_blocks(Raw(b"[]")) == []
    assert open_object(Raw(b"[1]")) is None
    assert open_object(None) is None
