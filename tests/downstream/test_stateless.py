"""The modern era at /mcp: every POST on its own, and what a client may and may not do with one."""

import asyncio

import pytest
from msgspec import Raw

from asgi import HttpClient, StatelessClient, Visit, closing
from clients import compositor
from clock import jumping, quiet
from fakes import FakeServer, Message, Refusal, words
from fronts import CALL, DONE, OPEN, Front, front
from modern_fakes import ModernServer
from plait.downstream.access import Access
from plait.downstream.http import HttpApp
from plait.downstream.http_limits import HttpLimits
from plait.downstream.sources import Sources
from plait.pipeline.grants import Identity
from plait.wire.modern import LEVEL_KEY, SUBSCRIPTION_KEY, VERSION_KEY
from plait.wire.spec import Kind

LISTEN = "subscriptions/listen"
TOOLS_CHANGE = {"notifications": {"toolsListChanged": True}}


async def failed(visit: Visit) -> tuple[int, object]:
    """The status, and the code of the error."""
    error = (await visit.json())["error"]
    assert isinstance(error, dict)
    return visit.status, error["code"]


@jumping
async def test_a_request_needs_no_session_and_gets_none() -> None:
    async with front() as at:
        visit = at.modern().begin("tools/call", CALL)
        answer = await visit.json()
        assert (visit.status, visit.headers["content-type"]) == (200, "application/json")
        assert words(answer["result"]) == "fs: t {}"
        assert "mcp-session-id" not in visit.headers
        assert at.app.sessions == 0


@jumping
async def test_discover_says_what_we_are() -> None:
    async with front() as at:
        found = (await at.modern().request("server/discover"))["result"]
        assert isinstance(found, dict)
        assert found["supportedVersions"] == ["2026-07-28"]
        assert "tools" in found["capabilities"]


@jumping
async def test_both_eras_are_served_at_one_path_at_once() -> None:
    async with front() as at:
        held = at.hold()
        old = await at.client()
        calls = [old.begin("tools/call", CALL), at.modern().begin("tools/call", CALL)]
        await quiet()
        for each in held:
            each.answer(DONE)
        results = [(await call.json())["result"] for call in calls]
        assert all(isinstance(result, dict) for result in results)
        assert ["resultType" in result for result in results if isinstance(result, dict)] == [False, True]


@jumping
async def test_two_clients_may_use_the_same_id_at_once() -> None:
    async with front() as at:
        held = at.hold()
        calls = [at.modern().begin("tools/call", CALL, id=7) for _ in range(2)]
        await quiet()
        for place, each in enumerate(held):
            each.answer({"content": [{"type": "text", "text": str(place)}]})
        assert [words((await call.json())["result"]) for call in calls] == ["0", "1"]


@jumping
async def test_what_comes_before_the_answer_makes_it_a_stream_without_ids() -> None:
    async with front() as at:
        held = at.hold()
        visit = at.modern().begin("tools/call", CALL, meta={"progressToken": "p"})
        await quiet()
        at.progress(1)
        event = await visit.event()
        assert (visit.status, visit.headers["content-type"]) == (200, "text/event-stream")
        assert visit.headers["x-accel-buffering"] == "no"
        assert set(event) == {"event", "data"}
        assert '"progressToken":"p"' in event["data"]
        held[0].answer(DONE)
        assert words((await visit.message())["result"]) == "done"
        assert await visit.event() == {}


@jumping
async def test_silence_for_a_while_makes_it_a_stream_with_signs_of_life() -> None:
    async with front() as at:
        held = at.hold()
        visit = at.modern().begin("tools/call", CALL)
        assert await visit.block() == ": ping"
        held[0].answer(DONE)
        assert words((await visit.message())["result"]) == "done"


@jumping
async def test_closing_the_stream_cancels_the_call_at_the_server() -> None:
    for streaming in (False, True):
        async with front() as at:
            at.hold()
            visit = at.modern().begin("tools/call", CALL, meta={"progressToken": 1})
            await quiet()
            if streaming:
                at.progress(1)
                await visit.message()
            await visit.close()
            await quiet()
            [cancelled] = at.server.told("notifications/cancelled")
            assert cancelled["reason"] == "the client cancelled the request"


@jumping
async def test_log_messages_come_on_the_stream_of_the_request_that_asked_for_them() -> None:
    async with front() as at:
        held = at.hold()
        visit = at.modern().begin("tools/call", CALL, meta={LEVEL_KEY: "info"})
        await quiet()
        at.server.notify("notifications/message", {"level": "info", "data": "x"})
        assert (await visit.message())["method"] == "notifications/message"
        held[0].answer(DONE)
        await visit.message()


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        (b"{", 400, -32700),
        (b"[]", 400, -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400, -32600),
        (b"7", 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"tools/list","params":{}}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"tools/list","params":{}}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', 400, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":7}}', 400, -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}', 400, -32602),
    ],
)
@jumping
async def test_what_is_no_modern_request_is_refused_with_the_status_of_its_code(
    message: bytes, status: int, code: int
) -> None:
    async with front() as at:
        visit = at.modern().post(message, {"mcp-protocol-version": "2026-07-28"})
        assert await failed(visit) == (status, code)


@jumping
async def test_errors_have_the_status_of_their_code() -> None:
    async with front() as at:
        client = at.modern()
        assert await failed(client.begin("no/such")) == (404, -32601)
        for gone in ("initialize", "ping", "logging/setLevel", "resources/subscribe"):
            assert await failed(client.begin(gone)) == (404, -32601)
        assert await failed(client.begin("resources/read", {"uri": "no:where"})) == (400, -32602)
        assert await failed(client.begin("tools/call", {})) == (400, -32602)
        assert await failed(client.begin("tools/list", meta={LEVEL_KEY: "loud"})) == (400, -32602)
        future = client.begin("tools/list", meta={VERSION_KEY: "2027-01-01"})
        assert await failed(future) == (400, -32022)
        at.server.fail("tools/call", -32000)
        assert await failed(client.begin("tools/call", CALL)) == (200, -32603)


@jumping
async def test_a_server_may_use_any_number_for_an_error() -> None:
    async with front() as at:
        at.server.answers["tools/call"] = lambda params: Refusal(2**70, "odd")
        visit = at.modern().begin("tools/call", CALL)
        assert "error" in await visit.json()
        assert visit.status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp-protocol-version": "2025-11-25"},
        {"mcp-method": "tools/list"},
        {"mcp-method": "TOOLS/CALL"},
        {"mcp-name": "fs__other"},
        {"mcp-name": "=?base64?ZnNfX3Q?="},
        {"mcp-name": "=?base64?!?="},
        {"mcp-name": "fs__\u00fc"},
    ],
)
@jumping
async def test_headers_that_contradict_the_body_are_refused_and_nothing_is_called(
    headers: dict[str, str],
) -> None:
    async with front() as at:
        assert await failed(at.modern().begin("tools/call", CALL, headers)) == (400, -32020)
        assert at.server.asked("tools/call") == []


@jumping
async def test_headers_that_are_missing_or_there_twice_are_refused() -> None:
    async with front() as at:
        client = at.modern()
        params = {**CALL, "_meta": client.stamp}
        message = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
        right = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "=?base64?ZnNfX3Q=?="),
        ]
        for place in range(3):
            assert await failed(client.post(message, right[:place] + right[place + 1 :])) == (400, -32020)
            visit = client.post(message, [*right, right[place]])
            assert await failed(visit) == (400, -32020)
        assert at.server.asked("tools/call") == []
        assert "result" in await client.post(message, right).json()


@jumping
async def test_a_client_that_takes_no_events_or_sends_no_json_is_refused() -> None:
    async with front() as at:
        for headers, status in (({"accept": "application/json"}, 406), ({"content-type": "text/plain"}, 415)):
            visit = StatelessClient(at.app, headers).begin("tools/list")
            await visit.body()
            assert visit.status == status


@jumping
async def test_notifications_are_accepted_and_change_nothing() -> None:
    async with front() as at:
        held = at.hold()
        client = at.modern()
        call = client.begin("tools/call", CALL, id=1)
        await quiet()
        head = {"mcp-protocol-version": "2026-07-28", "mcp-method": "notifications/cancelled"}
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        visit = client.post(message, head)
        assert (await visit.body(), visit.status) == (b"", 202)
        held[0].answer(DONE)
        assert words((await call.json())["result"]) == "done"
        assert await failed(client.post(message, {**head, "mcp-method": "x"})) == (400, -32020)
        visit = client.post(message, {"mcp-protocol-version": "2031-01-01"})
        assert await failed(visit) == (400, -32022)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@jumping
async def test_the_modern_era_has_no_other_method(method: str) -> None:
    async with front() as at:
        old = await at.client()
        for session in ({}, old.session):
            headers = {**session, "mcp-protocol-version": "2026-07-28", "last-event-id": "0-0"}
            visit, _ = await at.modern().ask(method, "/mcp", b"", headers)
            assert (visit.status, visit.headers["allow"]) == (405, "POST")
        assert at.app.sessions == 1


@jumping
async def test_a_session_id_on_a_modern_request_means_nothing() -> None:
    async with front() as at:
        for id in ("nobodys", (await at.client()).session["mcp-session-id"]):
            visit = at.modern().begin("tools/list", {}, {"mcp-session-id": id})
            assert "result" in await visit.json()


@jumping
async def test_an_unknown_revision_within_a_session_is_that_sessions_mistake() -> None:
    async with front() as at:
        old = await at.client()
        old.session["mcp-protocol-version"] = "1999-01-01"
        visit = old.begin("ping")
        body = await visit.body()
        assert (visit.status, b"must be one of" in body) == (400, True)


# ---- listening


@jumping
async def test_a_stream_begins_with_its_acknowledgement_and_tells_what_was_asked_for() -> None:
    async with front() as at:
        client = at.modern()
        visit = client.begin(LISTEN, TOOLS_CHANGE, id="L1")
        acknowledged = await visit.message()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"] == {**TOOLS_CHANGE, "_meta": {SUBSCRIPTION_KEY: "L1"}}
        await client.request("tools/list")
        at.server.change(Kind.TOOLS, ["t", "u"])
        changed = await visit.message()
        assert changed["method"] == "notifications/tools/list_changed"
        assert changed["params"] == {"_meta": {SUBSCRIPTION_KEY: "L1"}}
        await visit.close()


@jumping
async def test_a_resource_is_watched_until_its_listener_leaves() -> None:
    server = FakeServer(
        "fs", tools=["t"], resources=["memo:1"], capabilities={"resources": {"subscribe": True}}
    )
    async with front(server=server) as at:
        visit = at.modern().begin(LISTEN, {"notifications": {"resourceSubscriptions": ["memo:1"]}})
        acknowledged = await visit.message()
        assert acknowledged["params"] == {
            "notifications": {"resourceSubscriptions": ["memo:1"]},
            "_meta": {SUBSCRIPTION_KEY: 1},
        }
        server.updated("memo:1")
        assert (await visit.message())["method"] == "notifications/resources/updated"
        await visit.close()
        await quiet()
        assert server.asked("resources/unsubscribe") == [{"uri": "memo:1"}]


@jumping
async def test_a_filter_that_is_none_is_refused_without_a_stream() -> None:
    async with front() as at:
        assert await failed(at.modern().begin(LISTEN, {"notifications": 7})) == (400, -32602)


@jumping
async def test_what_a_listener_has_read_is_not_kept() -> None:
    async with front() as at:
        client = at.modern()
        visit = client.begin(LISTEN, TOOLS_CHANGE)
        await visit.message()
        [stream] = [each.stream for each in at.app._stateless._visits]
        for count in range(20):
            at.server.change(Kind.TOOLS, ["t", f"u{count}"])
            await visit.message()
        assert len(stream.events) <= 1
        await visit.close()


@jumping
async def test_a_listener_that_does_not_read_is_ended_and_costs_a_bounded_amount() -> None:
    server = ModernServer("fs", tools=["t"], resources=["memo:1"])
    async with front(server=server) as at:
        visit = at.modern().begin(LISTEN, {"notifications": {"resourceSubscriptions": ["memo:1"]}})
        await visit.message()
        visit.reads.clear()
        [stream] = [each.stream for each in at.app._stateless._visits]
        for _ in range(100):
            server.tell(
                server.stream_of("resourceSubscriptions"),
                "notifications/resources/updated",
                uri="memo:1",
                x="y" * 100_000,
            )
        await quiet()
        assert stream.ended
        assert stream.held < 6 * 1024 * 1024
        await visit.close()


# ---- the end


@jumping
async def test_nothing_is_left_of_requests_that_are_over() -> None:
    server = FakeServer("fs", tools=["t"])
    async with compositor(server) as made, closing(HttpApp(made, OPEN)) as app:
        at = Front(app, server)
        for round in range(50):
            client = at.modern(sampling={"n": round})
            await client.request("tools/call", **CALL)
            await client.begin("no/such").body()
            await client.begin("tools/call", CALL, {"mcp-name": "x"}).body()
            listener = client.begin(LISTEN, TOOLS_CHANGE)
            await listener.message()
            await listener.close()
        assert len(app._stateless) == 0
        assert not made._connections
        assert not app._stateless._running
        assert len(made.registry._views) <= 2, "whatever each request declares"


@jumping
async def test_shutting_down_ends_streams_with_their_result_and_lets_calls_finish() -> None:
    async with front() as at:
        held = at.hold()
        client = at.modern()
        await client.request("tools/list")
        listener, call = client.begin(LISTEN, TOOLS_CHANGE, id="L"), client.begin("tools/call", CALL)
        await listener.message()
        await quiet()
        async with asyncio.TaskGroup() as group:
            group.create_task(at.app.drain(5))
            ended = await listener.message()
            assert ended["id"] == "L"
            assert isinstance(ended["result"], dict)
            assert ended["result"]["resultType"] == "complete"
            assert ended["result"]["_meta"][SUBSCRIPTION_KEY] == "L"
            assert await listener.event() == {}
            refused = client.begin("tools/list")
            await refused.body()
            assert refused.status == 503
            held[0].answer(DONE)
        assert words((await call.json())["result"]) == "done"


@jumping
async def test_what_does_not_finish_is_told_why_and_cancelled() -> None:
    async with front() as at:
        at.hold()
        call = at.modern().begin("tools/call", CALL)
        listener = at.modern().begin(LISTEN, TOOLS_CHANGE)
        await listener.message()
        await at.app.drain(1)
        await at.app.aclose()
        error = (await call.json())["error"]
        assert isinstance(error, dict)
        assert "shutting down" in error["message"]
        assert len(at.server.told("notifications/cancelled")) == 1
        await listener.close()


@jumping
async def test_a_request_whose_tool_is_still_awaited_is_refused_when_we_stop() -> None:
    server = FakeServer("fs", tools=["t"])
    server.hang("tools/list")
    async with front(server=server) as at:
        call = at.modern().begin("tools/call", CALL)
        await quiet()
        await at.app.aclose()
        await call.body()
        assert call.status == 503


@jumping
async def test_a_revoked_token_ends_the_streams_that_it_has_open() -> None:
    known = [True]

    class Fickle(Access):
        def knows(self, identity: Identity) -> bool:
            return known[0]

    access = Fickle(Sources("127.0.0.1"), anonymous=Identity("ada"))
    async with front(access=access) as at:
        listener = at.modern().begin(LISTEN, TOOLS_CHANGE)
        await listener.message()
        await at.app.expel()
        known[0] = False
        await at.app.expel()
        assert "not valid any more" in str((await listener.message())["error"])
        assert await listener.event() == {}


@jumping
async def test_one_identity_has_so_many_requests_at_once_and_all_have_so_many() -> None:
    named = Access(Sources("127.0.0.1"), anonymous=Identity("ada"))
    for access, limits, status in (
        (named, HttpLimits(running=2), 429),
        (OPEN, HttpLimits(running=1, sessions=2), 503),
    ):
        async with front(limits, access=access) as at:
            held = at.hold()
            calls = [at.modern().begin("tools/call", CALL) for _ in range(2)]
            await quiet()
            more = at.modern().begin("tools/call", CALL)
            await more.body()
            assert more.status == status
            for each in held:
                each.answer(DONE)
            for call in calls:
                await call.json()
            assert "result" in await at.modern().request("tools/list")


# ---- what crosses


@jumping
async def test_a_modern_client_uses_a_modern_server_and_a_handshake_client_too() -> None:
    server = ModernServer("fs", tools=["t"], resources=["memo:1"], prompts=["p"])
    async with front(server=server) as at:
        client = at.modern()
        assert words((await client.request("tools/call", **CALL))["result"]) == "fs: t {}"
        assert "result" in await client.request("resources/read", uri="memo:1")
        assert "result" in await client.request("prompts/get", name="fs__p")
        reference = {"ref": {"type": "ref/prompt", "name": "fs__p"}, "argument": {"name": "a", "value": ""}}
        completed = (await client.request("completion/complete", **reference))["result"]
        assert isinstance(completed, dict)
        assert completed["completion"] == {"values": ["one"]}
        old = HttpClient(at.app)
        await old.shake_hands()
        assert words((await old.request("tools/call", **CALL))["result"]) == "fs: t {}"


@jumping
async def test_a_question_in_rounds_crosses_http() -> None:
    server = ModernServer("fs", tools=["t"])
    form = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
    asked: Message = {
        "resultType": "input_required",
        "inputRequests": {"q": {"method": "elicitation/create", "params": form}},
        "requestState": "s",
    }
    server.answers["tools/call"] = lambda params: DONE if "inputResponses" in params else asked
    async with compositor(server) as made, closing(HttpApp(made, OPEN)) as app:
        client = Front(app, server).modern(elicitation={"form": {}})
        first = (await client.request("tools/call", **CALL))["result"]
        assert isinstance(first, dict)
        assert first["resultType"] == "input_required"
        made.guard_with([])  # a configuration may change between two rounds
        answers = {"q": {"action": "decline"}}
        again = {**CALL, "inputResponses": answers, "requestState": first["requestState"]}
        assert words((await client.request("tools/call", **again))["result"]) == "done"


class Needing(Refusal, frozen=True):
    """The server says that it cannot do without something of the client's."""

    data: Raw = Raw(b'{"requiredCapabilities":{"sampling":{}}}')


@jumping
async def test_a_capability_that_the_server_needs_is_asked_for_with_400() -> None:
    server = ModernServer("fs", tools=["t"])
    server.answers["tools/call"] = lambda params: Needing(-32021, "sampling is needed")
    async with front(server=server) as at:
        assert await failed(at.modern().begin("tools/call", CALL)) == (400, -32021)
        able = at.modern(sampling={}).begin("tools/call", CALL)
        assert await failed(able) == (200, -32603)
