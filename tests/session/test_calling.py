"""Our side of a conversation with a server, line by line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from plait.session.calling import CallingSession
from plait.session.exchange import Abandon, Advance, Consult, Count, Fail, Hear, Reply, Send, Settle
from talk import Talk


def asked(count: int = 1) -> CallingSession[str]:
    """A session in which requests 1, 2 … of waiters w1, w2 … are on their way."""
    session: CallingSession[str] = CallingSession()
    for number in range(1, count + 1):
        session.request("tools/call", {"name": Raw(b'"x"')}, f"w{number}")
    return session


@pytest.mark.requirement("S1-032")
def test_ids_are_ours_and_count_from_one() -> None:
    session: CallingSession[str] = CallingSession()
    assert session.request("ping", None, "a") == (b"1", b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert session.request("ping", None, "b") == (b"2", b'{"jsonrpc":"2.0","id":2,"method":"ping"}')


def test_replies_find_their_requests_in_any_order() -> None:
    talk = Talk(asked(2)) >> '{"jsonrpc":"2.0","id":2,"result":{"n": 1.0}}'
    talk << Settle("w2", Reply(result=Raw(b'{"n": 1.0}')))
    talk >> '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","data":[ ]}}'
    assert talk << Settle("w1", Reply(error=Raw(b'{"code":-1,"message":"no","data":[ ]}')))


def test_the_first_reply_counts_and_the_second_is_counted() -> None:
    line = '{"jsonrpc":"2.0","id":1,"result":{}}'
    assert (
        Talk(asked())
        >> line
        << Settle("w1", Reply(result=Raw(b"{}")))
        >> line
        << Count("reply to nobody", "1")
    )


@pytest.mark.parametrize("id", ['"1"', "1.0"])
def test_an_id_of_another_type_does_not_answer_but_its_call_does_not_wait_either(id: str) -> None:
    session = asked()
    (effect,) = session.receive(b'{"jsonrpc":"2.0","id":%b,"result":{}}' % id.encode())
    assert isinstance(effect, Fail)
    assert "wrong type" in effect.what


@pytest.mark.parametrize("id", ["null", "true", "99", "[1]", '"99"', '"x"', "1.5"])
def test_an_id_that_is_not_ours_is_nobodys(id: str) -> None:
    session = asked()
    (effect,) = session.receive(b'{"jsonrpc":"2.0","id":%b,"result":{}}' % id.encode())
    assert isinstance(effect, Count)
    assert len(session) == 1


@pytest.mark.requirement("S1-033")
@pytest.mark.parametrize(
    ("rest", "what"),
    [
        ('"result":null', "no object"),
        ('"result":3', "no object"),
        ('"result":[]', "no object"),
        ('"error":{"message":"no code"}', "without a code"),
        ('"error":"text"', "without a code"),
        ('"error":{"code":"x","message":"y"}', "without a code"),
        ('"result":{},"error":{"code":1,"message":"x"}', "both"),
        ('"x":1', "neither"),
    ],
)
def test_a_reply_that_is_none_fails_its_call_at_once(rest: str, what: str) -> None:
    (effect,) = asked().receive(b'{"jsonrpc":"2.0","id":1,%b}' % rest.encode())
    assert isinstance(effect, Fail)
    assert effect.waiter == "w1"
    assert what in effect.what


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"1.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"result":' + b'{"a":' * 1500 + b"1" + b"}" * 1501,
        b'{"jsonrpc":"2.0","id":1,"result":{"x":',
        b'[{"jsonrpc":"2.0","id":1,"result":{}}]',
        b'{"jsonrpc":"2.0","id":1,"params":[],"result":{}}',
    ],
)
def test_a_broken_line_with_a_readable_id_fails_that_call_and_is_counted(line: bytes) -> None:
    counted, failed = asked(2).receive(line)
    assert isinstance(counted, Count)
    assert isinstance(failed, Fail)
    assert failed.waiter == "w1"


@pytest.mark.parametrize(
    ("line", "result"),
    [
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"result":{}}', b"{}"),
        (rb'{"jsonrpc":"2.0","id":1,"result":{"t":"\ud83d"}}', rb'{"t":"\ufffd"}'),
        (b'{"jsonrpc":"2.0","id":1,"result":{"t":"\xff"}}', '{"t":"\ufffd"}'.encode()),
    ],
)
def test_what_can_be_mended_is_mended(line: bytes, result: bytes) -> None:
    assert asked().receive(line)[-1] == Settle("w1", Reply(result=Raw(result)))


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_line_of_a_server_raises(line: bytes) -> None:
    session = asked(3)
    session.receive(line)
    assert len(session) >= 0


def test_garbage_is_counted_and_nobody_is_harmed() -> None:
    session = asked()
    (effect,) = session.receive(b"Listening on stdio...")
    assert isinstance(effect, Count)
    assert len(session) == 1


def test_a_reply_that_is_too_long_fails_its_call() -> None:
    _, failed = asked().oversized(b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"xxxx', 16)
    assert failed == Fail("w1", "a message longer than 16 bytes")


def test_batches_of_a_server_that_may_send_them_are_read() -> None:
    session = asked(2)
    session.revision = "2025-03-26"
    line = '[{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]'
    assert (
        Talk(session)
        >> line
        << Settle("w2", Reply(result=Raw(b"{}")))
        << Settle("w1", Reply(result=Raw(b"{}")))
    )


def test_a_servers_ping_is_answered_here() -> None:
    ping = '{"jsonrpc":"2.0","id":"s1","method":"ping"}'
    assert Talk(asked()) >> ping << Send(b'{"jsonrpc":"2.0","id":"s1","result":{}}')


def test_a_servers_question_is_handed_on_and_its_answer_sent_back() -> None:
    session = asked()
    line = '{"jsonrpc":"2.0","id":0,"method":"roots/list","params":{"x":1}}'
    assert Talk(session) >> line << Consult(b"0", "roots/list", {"x": Raw(b"1")})
    assert (
        session.answer(b"0", Reply(result=Raw(b'{"roots":[]}')))
        == b'{"jsonrpc":"2.0","id":0,"result":{"roots":[]}}'
    )


def test_a_server_takes_its_question_back() -> None:
    line = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}'
    assert Talk(asked()) >> line << Abandon(b'"q"')


def test_notifications_are_heard() -> None:
    line = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    assert Talk(asked()) >> line << Hear("notifications/tools/list_changed", {})


def test_progress_has_a_token_of_our_own_and_only_increases() -> None:
    session: CallingSession[str] = CallingSession()
    meta = {"progressToken": Raw(b'"theirs"'), "x": Raw(b"1")}
    _, data = session.request("tools/call", {"_meta": Raw(b"{}")}, "w", meta)
    assert json.loads(data)["params"]["_meta"] == {"progressToken": 1, "x": 1}

    def progress(value: str, token: str = "1") -> str:
        return (
            '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%s}}'
            % (token, value)
        )

    talk = Talk(session)
    for value in ("0", "0.5", "1e3"):
        talk >> progress(value) << Advance("w", {"progressToken": Raw(b"1"), "progress": Raw(value.encode())})
    talk >> progress("1000") << Count("progress that does not increase")
    talk >> progress("9999", '"1"') << Count("progress for nobody", '"1"')
    talk >> progress('"x"') << Count("malformed progress")
    talk >> '{"jsonrpc":"2.0","id":1,"result":{}}' << Settle("w", Reply(result=Raw(b"{}")))
    assert talk >> progress("5000") << Count("progress for nobody", "1")


def test_progress_nobody_asked_for_goes_nowhere() -> None:
    line = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}'
    assert Talk(asked()) >> line << Count("progress for nobody", "1")


def test_a_cancelled_call_is_told_to_the_server_and_its_late_reply_finds_nobody() -> None:
    session = asked()
    data = session.cancel(b"1", "why")
    assert (
        data
        == b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"why"}}'
    )
    assert session.cancel(b"1", "again") is None
    assert Talk(session) >> '{"jsonrpc":"2.0","id":1,"result":{}}' << Count("reply to nobody", "1")


def test_when_the_server_is_gone_everybody_who_waits_is_known() -> None:
    session = asked(2)
    assert session.waiting() == ["w1", "w2"]
    assert session.drain() == ["w1", "w2"]
    assert len(session) == 0
