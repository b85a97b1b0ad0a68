"""The serving side of a conversation, line by line."""

import json
from typing import ClassVar

import pytest
from msgspec import Raw

from plait.session.exchange import (
    Abandon,
    Advance,
    Count,
    Dispatch,
    Exchange,
    Hear,
    Reply,
    Send,
    Settle,
    refuse,
)
from plait.session.serving import ServingSession, State
from plait.wire.envelope import Fields
from talk import Talk


class Client:
    """Stands where a connection stands; sessions never call it."""

    identity = "test"
    revision = ""
    capabilities: ClassVar[Fields] = {}

    def notify(self, method: str, params: Fields | None, within: bytes | None = None) -> None:
        raise AssertionError("a session writes nothing by itself")

    async def ask(
        self,
        method: str,
        params: Fields | None,
        on_progress: object = None,
        within: bytes | None = None,
    ) -> Reply:
        raise AssertionError("a session asks nothing by itself")


CLIENT = Client()


def welcome(revision: str) -> Raw:
    return Raw(b'{"protocolVersion":"%b"}' % revision.encode())


def new_session() -> ServingSession[str]:
    return ServingSession(welcome, CLIENT)


def ready(revision: str = "2025-11-25") -> ServingSession[str]:
    session = new_session()
    assert (
        Talk(session)
        >> hello(revision)
        << Send(b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"%b"}}' % revision.encode())
    )
    return session


def hello(revision: str = "2025-11-25", capabilities: str = "{}") -> str:
    return (
        '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"%s","capabilities":%s,'
        '"clientInfo":{"name":"t","version":"1"}}}' % (revision, capabilities)
    )


def error(id: str, code: int, message: str) -> Send:
    return Send(
        b'{"jsonrpc":"2.0","id":%b,"error":{"code":%d,"message":%b}}'
        % (id.encode(), code, json.dumps(message).encode())
    )


# ---- the handshake


@pytest.mark.requirement("S0-16", "S0-T12", "S1-T7.14", "S1-AC18")
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "no/such/method", "tasks/get"])
def test_a_request_before_initialize_is_refused(method: str) -> None:
    session = new_session()
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "x"}})
    assert Talk(session) >> line << error("1", -32002, "not initialized")
    assert session.state is State.CONNECTED


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_revision_we_know_is_agreed_to(revision: str) -> None:
    assert ready(revision).revision == revision


@pytest.mark.parametrize("revision", ["2026-07-28", "1999-01-01", "", "latest"])
def test_any_other_revision_is_answered_with_our_latest_of_the_handshake(revision: str) -> None:
    assert (
        Talk(new_session())
        >> hello(revision)
        << Send(b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}')
    )


@pytest.mark.parametrize(
    "params", ["", ',"params":{}', ',"params":null', ',"params":{"protocolVersion":7,"capabilities":[]}']
)
def test_an_odd_hello_is_a_hello(params: str) -> None:
    line = '{"jsonrpc":"2.0","id":0,"method":"initialize"%s}' % params
    assert (
        Talk(new_session())
        >> line
        << Send(b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}')
    )


def test_what_the_client_declares_is_remembered_unread() -> None:
    session = new_session()
    session.receive(hello(capabilities='{"sampling":{ "x": 1.0 },"tools":{}}').encode())
    assert session.capabilities == {"sampling": Raw(b'{ "x": 1.0 }'), "tools": Raw(b"{}")}


def test_initialize_happens_once() -> None:
    session = ready()
    assert Talk(session) >> hello("2024-11-05") << error("0", -32600, "already initialized")
    assert session.revision == "2025-11-25"


@pytest.mark.requirement("S0-15")
def test_requests_are_served_before_and_after_initialized() -> None:
    session = ready()
    talk = Talk(session) >> '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    talk << Dispatch(Exchange(b"1", "tools/list", {}, "", CLIENT))
    talk >> '{"jsonrpc":"2.0","method":"notifications/initialized"}' << Hear("notifications/initialized", {})
    assert talk


def test_ping_is_always_answered() -> None:
    ping, pong = '{"jsonrpc":"2.0","id":"p","method":"ping"}', Send(b'{"jsonrpc":"2.0","id":"p","result":{}}')
    assert Talk(new_session()) >> ping << pong
    assert Talk(ready()) >> ping << pong


# ---- requests


def test_a_call_is_dispatched_under_its_name_with_unread_arguments() -> None:
    line = '{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"fs","arguments":{ "x": 1.0}}}'
    params = {"name": Raw(b'"fs"'), "arguments": Raw(b'{ "x": 1.0}')}
    assert Talk(ready()) >> line << Dispatch(Exchange(b'"x"', "tools/call", params, "fs", CLIENT))


def test_a_call_without_a_name_is_the_clients_mistake() -> None:
    line = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}'
    assert Talk(ready()) >> line << error("1", -32602, "tools/call needs a string 'name'")


@pytest.mark.parametrize("id", ["0", "-1", '""', '"a\\u0041"', "9007199254740993", '"7"'])
def test_an_id_is_echoed_as_it_was_written(id: str) -> None:
    session = ready()
    session.receive(b'{"jsonrpc":"2.0","id":%b,"method":"tools/list"}' % id.encode())
    data = session.answer(id.encode(), Reply(result=Raw(b'{"tools":[]}')))
    assert data == b'{"jsonrpc":"2.0","id":%b,"result":{"tools":[]}}' % id.encode()


@pytest.mark.parametrize("id", ["null", "1.5", "1.0", "true", "[1]", "{}"])
def test_what_is_no_id_is_refused_and_not_taken_for_a_notification(id: str) -> None:
    line = '{"jsonrpc":"2.0","id":%s,"method":"tools/list"}' % id
    assert Talk(ready()) >> line << error("null", -32600, "the id of a request is a string or an integer")


def test_a_second_request_with_a_running_id_is_refused_and_the_first_goes_on() -> None:
    session = ready()
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    session.receive(line)
    assert Talk(session) >> line << error("1", -32600, "a request with this id is still running")
    assert session.answer(b"1", Reply(result=Raw(b"{}"))) is not None
    assert isinstance(session.receive(line)[0], Dispatch)


def test_an_error_is_sent_as_one() -> None:
    session = ready()
    session.receive(b'{"jsonrpc":"2.0","id":1,"method":"x"}')
    data = session.answer(b"1", refuse(-32601, "no", {"a": 1}))
    assert data == b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":{"a":1}}}'


@pytest.mark.requirement("S0-21", "S0-T18")
@pytest.mark.parametrize("line", ["{", "nonsense", '{"jsonrpc":"2.0","id":1,"method":"x"', '{"id":NaN}'])
def test_what_is_not_json_is_a_parse_error_with_a_null_id(line: str) -> None:
    (effect,) = ready().receive(line.encode())
    assert isinstance(effect, Send)
    answer = json.loads(effect.data)
    assert (answer["error"]["code"], answer["id"]) == (-32700, None)


def test_a_message_that_is_none_is_an_invalid_request_and_the_next_one_is_served() -> None:
    session = ready()
    talk = Talk(session) >> '{"jsonrpc":"2.0","id":5}'
    talk << error("5", -32600, "a message has a method, a result or an error")
    talk >> '{"foo":1}' << error("null", -32600, '"jsonrpc" must be "2.0"')
    talk >> '{"jsonrpc":"2.0","id":6,"method":"ping"}' << Send(b'{"jsonrpc":"2.0","id":6,"result":{}}')
    assert talk


def test_a_request_that_is_too_long_is_refused_under_its_id() -> None:
    (effect,) = ready().oversized(b'{"jsonrpc":"2.0","id":"big","method":"tools/call","params":{', 4194304)
    assert effect == error('"big"', -32600, "message longer than 4194304 bytes")


# ---- notifications


@pytest.mark.requirement("S0-22", "S0-T17")
@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","method":"no/such/thing"}',
        '{"jsonrpc":"2.0","method":"tools/call","params":[1]}',
        '{"jsonrpc":"1.0","method":"x"}',
        '{"jsonrpc":"2.0","method":"tools/list"}',
    ],
)
def test_a_message_without_an_id_is_never_answered(line: str) -> None:
    for session in (new_session(), ready()):
        assert not [
            effect for effect in session.receive(line.encode()) if not isinstance(effect, Hear | Count)
        ]


def test_a_cancelled_request_is_abandoned_and_never_answered() -> None:
    session = ready()
    session.receive(b'{"jsonrpc":"2.0","id":"a","method":"tools/list"}')
    cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a","reason":"x"}}'
    assert Talk(session) >> cancel << Abandon(b'"a"')
    assert session.forget(b'"a"') is None
    assert session.answer(b'"a"', Reply(result=Raw(b"{}"))) is None
    assert Talk(session) >> cancel << Count("cancellation of an unknown request")


def test_a_cancellation_matches_only_the_id_of_the_same_type() -> None:
    session = ready()
    session.receive(b'{"jsonrpc":"2.0","id":3,"method":"tools/list"}')
    line = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"3"}}'
    assert Talk(session) >> line << Count("cancellation of an unknown request")


@pytest.mark.parametrize("meta", ["3", '{"progressToken":1.5}', '{"progressToken":null}', "[]"])
def test_an_unusable_meta_is_the_clients_mistake(meta: str) -> None:
    (effect,) = ready().receive(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":%b}}' % meta.encode()
    )
    assert isinstance(effect, Send)
    assert json.loads(effect.data)["error"]["code"] == -32602


# ---- batches


def test_a_batch_is_answered_as_a_batch_at_the_revision_that_has_them() -> None:
    session = ready("2025-03-26")
    talk = Talk(session) >> (
        '[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":2,"method":"ping"},'
        '{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":3,"method":"prompts/list"},7]'
    )
    talk << Dispatch(Exchange(b"1", "tools/list", {}, "", CLIENT)) << Hear("notifications/initialized", {})
    talk << Dispatch(Exchange(b"3", "prompts/list", {}, "", CLIENT))
    assert talk
    assert session.answer(b"3", Reply(result=Raw(b"{}"))) is None
    whole = session.answer(b"1", Reply(result=Raw(b"{}")))
    assert whole is not None
    assert [answer["id"] for answer in json.loads(whole)] == [2, None, 3, 1]


def test_a_batch_that_needs_nobody_is_answered_at_once() -> None:
    line = '[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"}]'
    talk = Talk(ready("2025-03-26")) >> line << Hear("notifications/x", {})
    assert talk << Send(b'[{"jsonrpc":"2.0","id":2,"result":{}}]')


def test_a_cancelled_part_of_a_batch_does_not_hold_up_the_rest() -> None:
    session = ready("2025-03-26")
    session.receive(b'[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]')
    assert session.answer(b"1", Reply(result=Raw(b"{}"))) is None
    assert session.forget(b"2") == b'[{"jsonrpc":"2.0","id":1,"result":{}}]'


def test_initialize_is_not_part_of_a_batch() -> None:
    (effect,) = ready("2025-03-26").receive(b"[" + hello().encode() + b"]")
    assert isinstance(effect, Send)
    assert json.loads(effect.data)[0]["error"]["code"] == -32600


@pytest.mark.parametrize("line", ["[]", "[%s]" % ",".join(['{"jsonrpc":"2.0","method":"x"}'] * 101)])
def test_an_empty_or_endless_batch_is_refused(line: str) -> None:
    (effect,) = ready("2025-03-26").receive(line.encode())
    assert isinstance(effect, Send)
    assert json.loads(effect.data)["error"]["code"] == -32600


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_an_array_is_no_message_at_any_other_revision(revision: str) -> None:
    line = '[{"jsonrpc":"2.0","id":2,"method":"ping"}]'
    for session in (new_session(), ready(revision)):
        assert Talk(session) >> line << error("null", -32600, "a message is one JSON object")


# ---- questions to the client


def test_an_answer_settles_the_question_it_belongs_to() -> None:
    session = ready()
    id, data = session.ask("roots/list", None, "waiter")
    assert (id, data) == (b"1", b'{"jsonrpc":"2.0","id":1,"method":"roots/list"}')
    answer = '{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}'
    talk = Talk(session) >> answer << Settle("waiter", Reply(result=Raw(b'{"roots":[]}')))
    assert talk >> answer << Count("reply to nobody")


def test_a_broken_answer_is_an_error_for_whoever_asked() -> None:
    session = ready()
    session.ask("roots/list", None, "waiter")
    (effect,) = session.receive(b'{"jsonrpc":"2.0","id":1,"result":null}')
    assert isinstance(effect, Settle)
    assert effect.reply.error is not None


def test_a_question_that_is_withdrawn_is_cancelled_at_the_client() -> None:
    session = ready()
    id, _ = session.ask("sampling/createMessage", {}, "waiter")
    assert (
        session.withdraw(id)
        == b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    )
    assert session.withdraw(id) is None


def test_progress_on_a_question_comes_back_to_whoever_asked() -> None:
    session = ready()
    _, data = session.ask(
        "sampling/createMessage", {"_meta": Raw(b'{"progressToken":"theirs","x":1}')}, "waiter"
    )
    assert json.loads(data)["params"]["_meta"] == {"progressToken": 1, "x": 1}
    line = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":5}}'
    talk = Talk(session) >> line << Advance("waiter", {"progressToken": Raw(b"1"), "progress": Raw(b"5")})
    assert talk >> line << Count("progress that does not increase")


def test_when_the_client_is_gone_everybody_who_asked_is_known() -> None:
    session = ready()
    session.ask("roots/list", None, "a")
    session.ask("roots/list", None, "b")
    assert session.drain() == ["a", "b"]
    assert session.drain() == []
