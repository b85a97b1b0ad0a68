"""POST at /mcp: what becomes of a message, as the specification of each revision says."""

import asyncio
import json

import pytest

from asgi import HttpClient
from clock import jumping, now, quiet
from fakes import Message, words
from fronts import CALL, DONE, front
from plait.downstream.http_limits import HttpLimits

PING: Message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
OLDER = ["2024-11-05", "2025-03-26", "2025-06-18"]


@jumping
async def test_a_request_of_which_only_the_reply_comes_is_answered_with_json() -> None:
    async with front() as at:
        client = await at.client()
        visit = client.begin("tools/call", CALL)
        answer = await visit.json()
        assert (visit.status, visit.headers["content-type"]) == (200, "application/json")
        assert words(answer["result"]) == "fs: t {}"


@jumping
async def test_a_session_begins_with_initialize_and_its_id_cannot_be_guessed() -> None:
    async with front() as at:
        ids = {(await at.client()).session["mcp-session-id"] for _ in range(20)}
        assert len(ids) == 20
        assert all(len(id) >= 32 and id.isascii() and id.isprintable() for id in ids)


@jumping
async def test_an_initialize_whose_head_names_a_later_revision_opens_a_session() -> None:
    async with front() as at:
        client = HttpClient(at.app)
        visit = client.post(
            {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}},
            mcp_protocol_version="2026-07-28",
        )
        assert await visit.json()
        assert visit.status == 200


@jumping
async def test_notifications_and_replies_are_accepted_without_a_body() -> None:
    async with front() as at:
        client = await at.client()
        for message in (
            {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
            {"jsonrpc": "2.0", "id": 77, "result": {}},
        ):
            visit = client.post(message)
            assert await visit.body() == b""
            assert visit.status == 202


# ---- what is refused


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, -32700),
        (b"", 400, -32700),
        (b"\xff\xfe", 400, -32700),
        (b"[" * 100_000, 400, -32700),
        (b"7", 400, -32600),
        (b"[]", 400, -32600),
        (b'{"jsonrpc":"1.0","id":4,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":4,"method":"ping","params":[1]}', 400, -32602),
        (b'{"jsonrpc":"2.0","method":"notifications/x","params":[1]}', 400, -32602),
        (b'{"jsonrpc":"2.0","id":4}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":4,"method":"no/such"}', 200, -32601),
    ],
)
@jumping
async def test_what_is_no_message_is_an_error_of_http_too(body: bytes, status: int, code: int) -> None:
    async with front() as at:
        client = await at.client()
        visit = client.post(body)
        answer = await visit.json()
        error = answer["error"]
        assert isinstance(error, dict)
        assert (visit.status, error["code"]) == (status, code)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"accept": "application/json"}, 406),
        ({"accept": "text/event-stream"}, 406),
        ({"accept": "text/html"}, 406),
        ({"accept": "*/*"}, 200),
        ({"accept": "application/*;q=0.5, text/*"}, 200),
        ({"accept": "TEXT/event-stream; q=1, Application/JSON"}, 200),
        ({"content_type": "text/plain"}, 415),
        ({"content_type": ""}, 415),
        ({"content_type": "application/json; charset=utf-8"}, 200),
        ({"content_type": "application/jsonx"}, 415),
        ({"content_encoding": "gzip"}, 415),
        ({"mcp_protocol_version": "1999-01-01"}, 400),
        ({"mcp_protocol_version": ""}, 400),
        ({"mcp_protocol_version": "2025-06-18"}, 200),
        ({"mcp_session_id": "unknown"}, 404),
        ({"mcp_session_id": ""}, 404),
        ({"content_length": "4194305"}, 413),
        ({"content_length": "-1"}, 413),
        ({"content_length": "many"}, 413),
    ],
)
@jumping
async def test_the_head_of_a_request_is_judged(headers: dict[str, str], status: int) -> None:
    async with front() as at:
        visit = (await at.client()).post(PING, **headers)
        await visit.body()
        assert visit.status == status


@jumping
async def test_without_a_session_only_initialize_is_served() -> None:
    async with front() as at:
        client = HttpClient(at.app)
        for message in (PING, {"jsonrpc": "2.0", "method": "notifications/initialized"}):
            visit = client.post(message)
            await visit.body()
            assert visit.status == 400
        visit = client.post({"jsonrpc": "2.0", "method": "initialize", "params": {}})
        await visit.body()
        assert visit.status == 400
        assert at.app.sessions == 0


@jumping
async def test_a_second_initialize_in_a_session_is_refused() -> None:
    async with front() as at:
        client = await at.client()
        assert (await client.request("initialize"))["error"] == {
            "code": -32600,
            "message": "already initialized",
        }


@jumping
async def test_a_body_that_is_too_long_is_not_read_to_its_end() -> None:
    async with front(HttpLimits(body_bytes=1000)) as at:
        client = await at.client()
        visit = client.open("POST", "/mcp", [b"x" * 600] * 100, client.session)
        await visit.body()
        assert (visit.status, visit.headers["connection"], visit.asked) == (413, "close", 2)


@jumping
async def test_a_body_that_never_ends_is_given_up() -> None:
    async with front(HttpLimits(body_time=30)) as at:
        client = await at.client()
        started = now()
        visit = client.open("POST", "/mcp", b"{", client.session, endless=True)
        await visit.body()
        assert (visit.status, now() - started) == (408, 30)


# ---- streams


@jumping
async def test_progress_makes_the_answer_a_stream_that_ends_with_the_reply() -> None:
    async with front() as at:
        held, client = at.hold(), await at.client()
        visit = client.begin("tools/call", {**CALL, "_meta": {"progressToken": "mine"}})
        await quiet()
        at.progress(1)
        await visit.head()
        assert visit.headers["content-type"] == "text/event-stream"
        first = await visit.event()
        assert (first["id"], first["data"].strip(), int(first["retry"]) > 0) == ("1-0", "", True)
        progress = await visit.event()
        assert progress["id"] == "1-1"
        assert json.loads(progress["data"])["params"] == {"progressToken": "mine", "progress": 1}
        held[0].answer(DONE)
        assert (await visit.message())["result"] == DONE
        assert await visit.event() == {}


@pytest.mark.parametrize("revision", OLDER)
@jumping
async def test_clients_of_older_revisions_get_no_empty_event(revision: str) -> None:
    async with front() as at:
        held, client = at.hold(), await at.client(revision)
        visit = client.begin("tools/call", {**CALL, "_meta": {"progressToken": 1}})
        await quiet()
        at.progress(1)
        assert json.loads((await visit.event())["data"])["method"] == "notifications/progress"
        held[0].answer(DONE)
        assert (await visit.message())["result"] == DONE


@jumping
async def test_an_answer_that_takes_long_becomes_a_stream_with_signs_of_life() -> None:
    async with front() as at:
        held, client = at.hold(), await at.client()
        visit = client.begin("tools/call", CALL)
        started = now()
        await visit.head()
        assert now() - started == 15
        assert (await visit.event())["data"].strip() == ""
        assert await visit.block() == ": ping"
        assert now() - started == 30
        held[0].answer(DONE)
        assert (await visit.message())["result"] == DONE


@pytest.mark.requirement("K-18")
@jumping
async def test_a_servers_question_goes_on_the_stream_of_the_call_it_belongs_to() -> None:
    async with front() as at:
        held, client = at.hold(), await at.client(elicitation={})
        visit = client.begin("tools/call", CALL)
        await quiet()
        at.server.ask("q", "elicitation/create", {"message": "really?"})
        question = await visit.message()
        assert question["method"] == "elicitation/create"
        reply = client.post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}})
        await reply.body()
        assert reply.status == 202
        await quiet()
        assert at.server.wire.replies["q"]["result"] == {"action": "accept"}
        held[0].answer(DONE)
        assert (await visit.message())["result"] == DONE


@pytest.mark.requirement("K-18")
@jumping
async def test_each_of_two_clients_gets_what_is_its_own() -> None:
    """Both have a call with the same id and the same token under way."""
    async with front() as at:
        held, one, other = at.hold(), await at.client(), await at.client()
        visits = [
            each.begin("tools/call", {**CALL, "_meta": {"progressToken": 1}}, 9) for each in (one, other)
        ]
        await quiet()
        for place in (0, 1):
            at.progress(place + 10, place)
        for place, visit in enumerate(visits):
            note = (await visit.message())["params"]
            assert isinstance(note, dict)
            assert note["progress"] == place + 10
            held[place].answer({"content": [], "n": place})
            assert (await visit.message())["result"] == {"content": [], "n": place}


@jumping
async def test_payloads_with_newlines_are_one_line_of_an_event() -> None:
    async with front() as at:
        held, client = at.hold(), await at.client()
        visit = client.begin("tools/call", CALL)
        await visit.head()
        await visit.event()
        held[0].answer({"content": [{"type": "text", "text": "a\nb\r\n\ndata: x"}]})
        assert words((await visit.message())["result"]) == "a\nb\r\n\ndata: x"


# ---- cancelling


@jumping
async def test_closing_the_connection_does_not_cancel_the_call() -> None:
    async with front() as at:
        held, client = at.hold(), await at.client()
        visit = client.begin("tools/call", CALL)
        await quiet()
        await_closed = asyncio.get_running_loop().create_task(visit.close())
        await asyncio.sleep(60 - 1)
        assert at.server.told("notifications/cancelled") == []
        held[0].answer(DONE)
        await await_closed


@jumping
async def test_a_cancelled_request_ends_and_the_server_is_told() -> None:
    async with front() as at:
        at.hold()
        client = await at.client()
        visit = client.begin("tools/call", CALL, "x")
        await quiet()
        assert await client.notify("notifications/cancelled", requestId="x") == 202
        error = (await visit.json())["error"]
        assert error == {"code": -32800, "message": "Request cancelled"}
        await quiet()
        assert len(at.server.told("notifications/cancelled")) == 1


@jumping
async def test_the_end_of_a_session_cancels_its_calls_and_answers_them() -> None:
    async with front() as at:
        at.hold()
        client, other = await at.client(), await at.client()
        visit, others = client.begin("tools/call", CALL), other.begin("tools/call", CALL)
        standing = await client.listen().head()
        assert await client.leave() == 204
        error = (await visit.json())["error"]
        assert isinstance(error, dict)
        assert "ended" in error["message"]
        await standing.event()
        assert await standing.event() == {}
        assert len(at.server.told("notifications/cancelled")) == 1, "the other client's call goes on"
        gone = client.begin("ping")
        await gone.body()
        assert gone.status == 404
        await other.leave()
        await others.body()


# ---- batches


@jumping
async def test_a_batch_is_answered_with_an_array_where_the_revision_has_them() -> None:
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALL},
        {"jsonrpc": "2.0", "method": "notifications/x"},
        {"jsonrpc": "2.0", "id": 2, "method": "ping"},
        {"jsonrpc": "2.0", "id": 3, "method": "initialize"},
    ]
    async with front() as at:
        visit = (await at.client("2025-03-26")).post(batch)
        answers = json.loads(await visit.body())
        assert visit.status == 200
        assert {answer["id"]: "result" in answer for answer in answers} == {1: True, 2: True, 3: False}
        for revision in ("2024-11-05", "2025-06-18", "2025-11-25"):
            visit = (await at.client(revision)).post(batch)
            await visit.body()
            assert visit.status == 400


@jumping
async def test_a_batch_of_notifications_is_accepted_and_an_empty_one_is_not() -> None:
    async with front() as at:
        client = await at.client("2025-03-26")
        visit = client.post([{"jsonrpc": "2.0", "method": "notifications/x"}] * 3)
        assert (await visit.body(), visit.status) == (b"", 202)
        visit = client.post([])
        assert b"-32600" in await visit.body()
        visit = client.post([PING] * 101)
        assert b"-32600" in await visit.body()


@jumping
async def test_what_is_left_of_a_batch_is_answered_when_one_of_it_is_cancelled() -> None:
    async with front() as at:
        held, client = at.hold(), await at.client("2025-03-26")
        calls = [{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": CALL} for id in (1, 2, 3)]
        visit = client.post(calls)
        await quiet()
        held[0].answer(DONE)
        await quiet()
        await client.notify("notifications/cancelled", requestId=2)
        assert await client.notify("notifications/cancelled", requestId=3) == 202
        assert [answer["id"] for answer in json.loads(await visit.body())] == [1]
        visit = client.post(calls)
        await quiet()
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        await client.post([{**cancel, "params": {"requestId": id}} for id in (1, 2, 3)]).body()
        assert {answer["error"]["code"] for answer in json.loads(await visit.body())} == {-32800}


@jumping
async def test_more_requests_at_once_than_a_session_may_have_are_refused() -> None:
    async with front(HttpLimits(running=3)) as at:
        held, client = at.hold(), await at.client()
        visits = [client.begin("tools/call", CALL) for _ in range(3)]
        await quiet()
        fourth = client.begin("tools/call", CALL)
        await fourth.body()
        assert fourth.status == 429
        for each in held:
            each.answer(DONE)
        assert [(await visit.json())["result"] for visit in visits] == [DONE] * 3
