"""The serving side of a conversation without a handshake, line by line."""

import json
from typing import ClassVar

import pytest
from msgspec import Raw
from msgspec.json import decode

from plait.session.exchange import Abandon, Count, Dispatch, Exchange, Reply, Send, refuse
from plait.session.serving import ServingSession, State
from plait.wire.envelope import Fields
from talk import Talk

P = "io.modelcontextprotocol/"
STAMP = {f"{P}protocolVersion": "2026-07-28", f"{P}clientCapabilities": {"roots": {}}}
US = {f"{P}serverInfo": {"name": "plait"}}


class Client:
    identity = "test"
    revision = ""
    capabilities: ClassVar[Fields] = {}

    def __init__(self) -> None:
        self.told: list[str] = []

    def notify(self, method: str, params: Fields | None, within: bytes | None = None) -> None:
        self.told.append(method)

    async def ask(
        self,
        method: str,
        params: Fields | None,
        on_progress: object = None,
        within: bytes | None = None,
    ) -> Reply:
        raise AssertionError("nothing is asked of a modern client")


def welcome(revision: str) -> Raw:
    return Raw(b'{"supportedVersions":["%b"]}' % revision.encode())


def new_session() -> ServingSession[str]:
    return ServingSession(welcome, Client(), Raw(b'{"name":"plait"}'))


def line(method: str, id: object = 1, meta: object = STAMP, **params: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": meta}})


def serve(session: ServingSession[str], text: str) -> Exchange:
    (effect,) = session.receive(text.encode())
    assert isinstance(effect, Dispatch), effect
    return effect.exchange


def said(session: ServingSession[str], text: str) -> dict[str, object]:
    (effect,) = session.receive(text.encode())
    assert isinstance(effect, Send), effect
    message: dict[str, object] = decode(effect.data)
    return message


def code(session: ServingSession[str], text: str) -> object:
    error = said(session, text)["error"]
    assert isinstance(error, dict)
    return error["code"]


def test_discovery_needs_no_handshake() -> None:
    session = new_session()
    assert said(session, line("server/discover", id="d")) == {
        "jsonrpc": "2.0",
        "id": "d",
        "result": {
            "supportedVersions": ["2026-07-28"],
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": US,
        },
    }
    assert session.state is State.CONNECTED
    assert session.modern.visitor is not None


def test_a_request_is_served_with_what_it_says_of_its_client() -> None:
    session = new_session()
    meta = {**STAMP, f"{P}clientInfo": {"name": "c"}, "progressToken": 7, "vendor/x": 1}
    exchange = serve(session, line("tools/call", id="7", meta=meta, name="t", odd=[1]))
    assert (exchange.address, exchange.caller.revision) == ("t", "2026-07-28")
    assert list(exchange.caller.capabilities) == ["roots"]
    assert exchange.meta == {"progressToken": Raw(b"7"), "vendor/x": Raw(b"1")}
    assert decode(exchange.params["_meta"]) == {"progressToken": 7, "vendor/x": 1}
    assert bytes(exchange.params["odd"]) == b"[1]"


def test_two_requests_on_one_connection_may_differ_in_what_they_can_do() -> None:
    session = new_session()
    able = serve(session, line("tools/list", id=1))
    other = {**STAMP, f"{P}clientCapabilities": {}}
    unable = serve(session, line("tools/list", id=2, meta=other))
    assert list(able.caller.capabilities) == ["roots"]
    assert list(unable.caller.capabilities) == []


def test_the_answer_is_a_complete_result() -> None:
    session = new_session()
    serve(session, line("tools/call", name="t"))
    data = session.answer(b"1", Reply(result=Raw(b'{"content":[]}')))
    assert data is not None
    assert decode(data)["result"] == {"content": [], "resultType": "complete", "_meta": US}
    assert session.answer(b"1", Reply()) is None


def test_a_question_of_a_server_is_no_complete_result() -> None:
    session = new_session()
    serve(session, line("tools/call", name="t"))
    data = session.answer(b"1", Reply(result=Raw(b'{"requestState":"s"}'), asks=True))
    assert data is not None
    assert decode(data)["result"]["resultType"] == "input_required"


def test_an_error_is_told_in_the_clients_own_era() -> None:
    session = new_session()
    serve(session, line("resources/read", uri="x:"))
    data = session.answer(b"1", refuse(-32002, "Resource not found"))
    assert data is not None
    assert decode(data)["error"]["code"] == -32602


@pytest.mark.requirement("X-07")
@pytest.mark.parametrize(
    "method",
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"],
)
def test_what_the_modern_era_has_no_more_is_unknown_there(method: str) -> None:
    assert code(new_session(), line(method, uri="x:")) == -32601


@pytest.mark.requirement("X-09")
def test_another_revision_is_told_which_there_are() -> None:
    meta = {**STAMP, f"{P}protocolVersion": "2027-01-01"}
    error = said(new_session(), line("ping", meta=meta))["error"]
    assert isinstance(error, dict)
    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2027-01-01"}


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":1,"method":"server/discover"}',
        '{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{}}}',
        line("tools/list", meta={f"{P}protocolVersion": "2026-07-28"}),
        line("tools/list", meta={**STAMP, f"{P}logLevel": "loud"}),
        line("tools/list", meta={**STAMP, "progressToken": 1.5}),
        line("tools/call"),
    ],
    ids=["discover", "listen", "no capabilities", "level", "token", "no name"],
)
def test_a_request_that_claims_the_era_and_lacks_what_it_needs_is_refused(text: str) -> None:
    assert code(new_session(), text) == -32602


def test_an_id_that_runs_is_taken_in_both_eras() -> None:
    session = new_session()
    serve(session, line("tools/list", id=5))
    assert code(session, line("tools/list", id=5)) == -32600
    said(session, hello())
    assert code(session, '{"jsonrpc":"2.0","id":5,"method":"tools/list"}') == -32600
    assert serve(session, '{"jsonrpc":"2.0","id":6,"method":"tools/list"}').caller.revision == ""
    assert code(session, line("tools/list", id=6)) == -32600


def hello(revision: str = "2025-11-25") -> str:
    return json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 0,
            "method": "initialize",
            "params": {"protocolVersion": revision, "capabilities": {}},
        }
    )


def test_both_eras_on_one_connection_do_not_disturb_each_other() -> None:
    session = new_session()
    serve(session, line("tools/list", id=1))
    assert code(session, '{"jsonrpc":"2.0","id":2,"method":"tools/list"}') == -32002
    said(session, hello())
    assert session.state is State.READY
    assert session.capabilities == {}
    handshake = serve(session, '{"jsonrpc":"2.0","id":3,"method":"tools/list"}')
    data = session.answer(handshake.id, Reply(result=Raw(b'{"tools":[]}')))
    assert data == b'{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}'
    modern = session.answer(b"1", Reply(result=Raw(b'{"tools":[]}')))
    assert modern is not None
    assert b"resultType" in modern


def test_a_modern_request_is_no_part_of_a_batch() -> None:
    session = new_session()
    said(session, hello("2025-03-26"))
    (effect,) = session.receive(f"[{line('tools/list')}]".encode())
    assert isinstance(effect, Send)
    assert decode(effect.data)[0]["error"]["code"] == -32600


def test_a_cancelled_request_is_never_answered() -> None:
    session = new_session()
    serve(session, line("tools/list", id="x"))
    cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}'
    assert Talk(session) >> cancel << Abandon(b'"x"')
    assert session.forget(b'"x"') is None
    assert session.answer(b'"x"', Reply()) is None
    assert Talk(session) >> cancel << Count("cancellation of an unknown request")


def test_the_end_of_a_stream_is_its_answer() -> None:
    session = new_session()
    serve(session, line("tools/list", id=1))
    serve(session, line("subscriptions/listen", id="L", notifications={}))
    assert session.listening() == [b'"L"']
    data = session.answer(b'"L"', Reply(result=Raw(b"{}")))
    assert data is not None
    assert decode(data)["result"]["_meta"] == {**US, f"{P}subscriptionId": "L"}
    assert session.listening() == []


def test_a_request_hears_its_progress_and_the_log_it_asked_for() -> None:
    client = Client()
    session: ServingSession[str] = ServingSession(welcome, client)
    loud = {**STAMP, f"{P}logLevel": "warning"}
    listener = serve(session, line("tools/call", id=1, meta=loud, name="t")).caller
    silent = serve(session, line("tools/call", id=2, name="t")).caller
    for caller in (listener, silent):
        caller.notify("notifications/message", {"level": Raw(b'"error"')})
        caller.notify("notifications/message", {"level": Raw(b'"info"')})
        caller.notify("notifications/tools/list_changed", None)
    assert client.told == ["notifications/message"]
    silent.notify("notifications/progress", {"progressToken": Raw(b"1")})
    assert client.told[1:] == ["notifications/progress"]


async def test_nothing_can_be_asked_of_a_modern_client() -> None:
    caller = serve(new_session(), line("tools/call", name="t")).caller
    reply = await caller.ask("sampling/createMessage", {})
    assert reply.error is not None
    error = decode(reply.error)
    assert error["code"] == -32601
    assert "input_required" in error["message"]
