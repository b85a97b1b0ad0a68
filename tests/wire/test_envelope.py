import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from plait.errors import RemoteProtocolError
from plait.wire.envelope import (
    error_body,
    failure,
    legal_id,
    notification,
    open_envelope,
    repair,
    request,
    result,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def problem_of(line: bytes) -> RemoteProtocolError:
    with pytest.raises(RemoteProtocolError) as caught:
        open_envelope(line)
    return caught.value


@pytest.mark.parametrize(
    "payload",
    [b"[1,2,]", b"[" * 200_000, b'"\xff"', b'"a\nb"', b"NaN", b"-Infinity", b'{"a":tru}', b"01", b'"\\x"'],
)
def test_a_payload_nobody_reads_must_still_be_json(payload: bytes) -> None:
    assert problem_of(b'{"jsonrpc":"2.0","id":1,"result":%b}' % payload).code == -32700


@given(JSON)
def test_any_json_payload_is_kept_byte_for_byte(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps(value, indent=1)):
        payload = text.encode(errors="surrogatepass")
        try:
            payload.decode()
        except UnicodeDecodeError:
            continue  # a lone surrogate written out raw is not UTF-8, and rightly refused
        line = b'{"jsonrpc": "2.0", "id": 1, "result": %b}' % payload
        message = open_envelope(line)
        assert isinstance(message.result, Raw)
        if repair(line) == line:
            assert bytes(message.result) == payload


def test_numbers_keep_their_spelling_and_their_digits() -> None:
    payload = b'{"a":1.10,"b":1e0,"c":%b}' % (b"9" * 6000)
    message = open_envelope(b'{"jsonrpc":"2.0","id":1,"result":%b}' % payload)
    assert isinstance(message.result, Raw)
    assert bytes(message.result) == payload


def test_half_an_emoji_becomes_the_replacement_character_and_the_message_lives() -> None:
    message = open_envelope(rb'{"jsonrpc":"2.0","id":1,"result":{"t":"cut \ud83d"}}')
    assert isinstance(message.result, Raw)
    assert bytes(message.result) == rb'{"t":"cut \ufffd"}'


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        (rb"\ud83d\ude00", rb"\ud83d\ude00"),
        (rb"\ude00\ud83d", rb"\ufffd\ufffd"),
        (rb"\\ud83d", rb"\\ud83d"),
        (rb"\\\ud83d", rb"\\\ufffd"),
        (rb"\uD83Dx", rb"\ufffdx"),
        (rb"\ud83d\ud83d\ude00", rb"\ufffd\ud83d\ude00"),
        (b"\xef\xbb\xbf{}", b"{}"),
    ],
)
def test_only_what_is_broken_is_repaired(text: bytes, mended: bytes) -> None:
    assert repair(text) == mended


def test_a_byte_order_mark_is_tolerated() -> None:
    assert open_envelope(b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"ping"}').method == "ping"


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        (b"{", -32700, None),
        (b"[1", -32700, None),
        (b"[]", -32600, None),
        (b"3", -32600, None),
        (b"{}", -32600, None),
        (b'{"foo":1}', -32600, None),
        (b'{"id":5,"method":"x"}', -32600, b"5"),
        (b'{"jsonrpc":"1.0","id":"a","method":"x"}', -32600, b'"a"'),
        (b'{"jsonrpc":"2.0","id":7,"method":3}', -32600, b"7"),
        (b'{"jsonrpc":"2.0","id":7,"method":"x","params":[1]}', -32602, b"7"),
        (b'{"jsonrpc":"2.0","id":7,"method":"x","params":"y"}', -32602, b"7"),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"x","params":"y"}', -32602, None),
    ],
)
def test_what_is_no_message_says_what_is_wrong_and_whom_to_answer(
    line: bytes, code: int, id: bytes | None
) -> None:
    problem = problem_of(line)
    assert (problem.code, None if problem.id is None else bytes(problem.id)) == (code, id)


def test_a_broken_notification_is_marked_as_one_that_nobody_answers() -> None:
    assert problem_of(b'{"jsonrpc":"2.0","method":"x","params":[1]}').unanswerable
    assert not problem_of(b'{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}').unanswerable


def test_a_key_in_another_case_is_another_key() -> None:
    assert open_envelope(b'{"jsonrpc":"2.0","Method":"x","id":1}').method is UNSET


@pytest.mark.parametrize("id", [b"0", b"-5", b'""', b'"a"', b'"\\""', b"9223372036854775807"])
def test_strings_and_integers_are_ids(id: bytes) -> None:
    assert legal_id(id)


@pytest.mark.parametrize(
    "id", [b"1.5", b"1.0", b"1e3", b"true", b"null", b"{}", b"[1]", b"9" * 20, b'"' + b"x" * 300 + b'"']
)
def test_nothing_else_is_an_id(id: bytes) -> None:
    assert not legal_id(id)


def test_what_we_write_is_what_we_read() -> None:
    fields = {"a": Raw(b"1"), "b": Raw(b'{"c": 2}')}
    asked = open_envelope(request(b'"x"', "tools/call", fields))
    assert (bytes(asked.id), asked.method, asked.params) == (b'"x"', "tools/call", fields)  # type: ignore[arg-type]
    assert open_envelope(request(b"1", "ping", None)).params is UNSET
    assert open_envelope(notification("n", fields)).params == fields
    assert open_envelope(notification("n")).id is UNSET
    assert open_envelope(result(b"1", Raw(b"{}"))).result == Raw(b"{}")
    assert json.loads(failure(None, error_body(-1, "no", {"why": "x"}))) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -1, "message": "no", "data": {"why": "x"}},
    }
