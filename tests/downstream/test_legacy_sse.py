"""HTTP+SSE of 2024-11-05: a stream, and messages posted beside it."""

import json

from asgi import Browser
from clock import jumping, quiet
from fakes import Message
from fronts import CALL, DONE, Front, front
from plait.downstream.http_limits import HttpLimits

HELLO: Message = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2024-11-05", "capabilities": {}},
}


class Old:
    """A client of that transport."""

    def __init__(self, at: Front, root: str = "") -> None:
        self.browser = Browser(at.app, {"content-type": "application/json"}, root)
        self.stream = self.browser.open("GET", "/sse", b"", {"accept": "text/event-stream"})
        self._root = root

    async def endpoint(self) -> str:
        event = await self.stream.event()
        assert event["event"] == "endpoint"
        self.address = event["data"]
        return self.address

    async def say(self, message: object) -> int:
        path = self.address.removeprefix(self._root)
        visit, _ = await self.browser.ask("POST", path, json.dumps(message).encode())
        return visit.status

    async def hear(self) -> Message:
        return await self.stream.message()


@jumping
async def test_a_conversation_over_the_old_transport() -> None:
    async with front() as at:
        old = Old(at)
        assert (await old.endpoint()).startswith("/messages?sessionId=")
        assert old.stream.headers["content-type"] == "text/event-stream"
        assert await old.say(HELLO) == 202
        answer = await old.hear()
        assert isinstance(answer["result"], dict)
        assert answer["result"]["protocolVersion"] == "2024-11-05"
        held = at.hold()
        call = {**CALL, "_meta": {"progressToken": 1}}
        assert await old.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}) == 202
        await quiet()
        at.progress(1)
        event = await old.stream.event()
        assert "id" not in event
        assert json.loads(event["data"])["method"] == "notifications/progress"
        held[0].answer(DONE)
        assert (await old.hear())["result"] == DONE
        await old.stream.close()


@jumping
async def test_when_the_stream_ends_the_session_and_its_calls_end_too() -> None:
    async with front() as at:
        old = Old(at)
        await old.endpoint()
        await old.say(HELLO)
        await old.hear()
        at.hold()
        await old.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALL})
        await quiet()
        await old.stream.close()
        assert at.app.sessions == 0
        assert len(at.server.told("notifications/cancelled")) == 1
        assert await old.say(HELLO) == 404


@jumping
async def test_what_is_no_message_is_told_on_the_stream() -> None:
    async with front() as at:
        old = Old(at)
        await old.endpoint()
        visit, _ = await old.browser.ask("POST", old.address, b"{")
        assert visit.status == 202
        error = (await old.hear())["error"]
        assert isinstance(error, dict)
        assert error["code"] == -32700
        await old.stream.close()


@jumping
async def test_sessions_of_the_two_transports_are_unknown_to_each_other() -> None:
    async with front() as at:
        old, new = Old(at), await at.client()
        id = (await old.endpoint()).partition("=")[2]
        visit, _ = await new.ask("DELETE", "/mcp", b"", {"mcp-session-id": id})
        assert visit.status == 404
        for query in (f"?sessionId={new.session['mcp-session-id']}", "", f"?sessionId={id}&sessionId={id}"):
            visit, _ = await old.browser.ask("POST", f"/messages{query}", b"{}")
            assert visit.status == 404
        await old.stream.close()


@jumping
async def test_the_limits_hold_here_too() -> None:
    async with front(HttpLimits(running=1, body_bytes=300, sessions=1)) as at:
        old = Old(at)
        await old.endpoint()
        second = Old(at).stream
        await second.body()
        assert second.status == 503
        await old.say(HELLO)
        at.hold()
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALL}
        assert await old.say(call) == 202
        assert await old.say({**call, "id": 2}) == 429
        assert await old.say({**call, "more": "x" * 400}) == 413
        visit, _ = await old.browser.ask("GET", "/sse", b"", {"accept": "text/html"})
        assert visit.status == 406
        await old.stream.close()


@jumping
async def test_mounted_below_another_application_it_names_its_whole_path() -> None:
    async with front() as at:
        old = Old(at, root="/tools")
        assert (await old.endpoint()).startswith("/tools/messages?sessionId=")
        assert await old.say(HELLO) == 202
        await old.hear()
        await old.stream.close()
