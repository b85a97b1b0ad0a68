"""The application itself: its routes, its health, its life."""

import asyncio
import json

import pytest

from asgi import Browser, HttpClient, closing
from clients import compositor
from clock import jumping, quiet
from fronts import CALL, DONE, OPEN, front
from plait.downstream.access import Access
from plait.downstream.asgi import Message, as_json
from plait.downstream.health import ServerHealth
from plait.downstream.http import HttpApp
from plait.downstream.sources import Sources
from plait.pipeline.grants import Identity


@jumping
async def test_it_says_that_it_is_alive_and_when_all_servers_are_settled() -> None:
    servers = [ServerHealth("fs", "pending", False), ServerHealth("git", "failed", True, "no git")]
    async with compositor() as made, closing(HttpApp(made, OPEN, servers=lambda: servers)) as app:
        visit, body = await Browser(app).ask("GET", "/healthz")
        assert (visit.status, json.loads(body)) == (200, {"status": "ok"})
        visit, body = await Browser(app).ask("GET", "/readyz")
        assert (visit.status, json.loads(body)["status"]) == (503, "starting")
        servers[0] = ServerHealth("fs", "active", True)
        visit, body = await Browser(app).ask("GET", "/readyz")
        assert visit.status == 200
        assert json.loads(body)["servers"][1] == {"name": "git", "state": "failed", "reason": "no git"}


@pytest.mark.parametrize("path", ["/", "/mc", "/mcpx", "/mcp/x", "//mcp", "/MCP", "/healthz/x", "/../mcp"])
@jumping
async def test_other_paths_lead_nowhere(path: str) -> None:
    async with front() as at:
        visit, _ = await Browser(at.app).ask("GET", path)
        assert visit.status == 404


@jumping
async def test_a_slash_at_the_end_is_the_same_path() -> None:
    async with front() as at:
        visit, _ = await Browser(at.app).ask("GET", "/healthz/")
        assert visit.status == 200


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/mcp", "DELETE, GET, POST"),
        ("OPTIONS", "/mcp", "DELETE, GET, POST"),
        ("POST", "/sse", "GET"),
        ("GET", "/messages", "POST"),
        ("POST", "/healthz", "GET"),
    ],
)
@jumping
async def test_a_method_that_a_path_does_not_have_is_told_which_it_has(
    method: str, path: str, allowed: str
) -> None:
    async with front() as at:
        visit, _ = await Browser(at.app).ask(method, path)
        assert (visit.status, visit.headers["allow"]) == (405, allowed)


@jumping
async def test_documents_are_given_to_anybody() -> None:
    async with compositor() as made:
        app = HttpApp(made, OPEN, documents={"/.well-known/x": as_json(200, {"a": 1})})
        _, body = await Browser(app).ask("GET", "/.well-known/x")
        assert body == b'{"a":1}'


@jumping
async def test_pages_of_an_allowed_origin_may_read_the_answers() -> None:
    access = Access(Sources(allowed_origins=["https://app.example"]), anonymous=Identity("anonymous"))
    async with compositor() as made, closing(HttpApp(made, access)) as app:
        page = Browser(app, {"origin": "https://app.example"})
        visit, _ = await page.ask("OPTIONS", "/mcp")
        assert visit.status == 204
        assert "mcp-session-id" in visit.headers["access-control-allow-headers"]
        visit, _ = await page.ask("GET", "/healthz")
        assert visit.headers["access-control-allow-origin"] == "https://app.example"
        wanted = {"access-control-request-headers": "Mcp-Param-Region, x-other, mcp-param-\u00fc"}
        visit, _ = await page.ask("OPTIONS", "/mcp", b"", wanted)
        allowed = visit.headers["access-control-allow-headers"].split(", ")
        assert {"mcp-method", "mcp-name", "mcp-param-region"} <= set(allowed)
        assert not {"x-other", "mcp-param-\u00fc"} & set(allowed)
        visit, _ = await Browser(app, {"origin": "http://localhost:3000"}).ask("OPTIONS", "/mcp")
        assert (visit.status, "access-control-allow-origin" in visit.headers) == (405, False)


@jumping
async def test_draining_lets_running_calls_finish_and_takes_no_new_ones() -> None:
    async with front() as at:
        held, client = at.hold(), await at.client(elicitation={})
        visit = client.begin("tools/call", CALL)
        await quiet()
        draining = asyncio.get_running_loop().create_task(at.app.drain(5))
        await quiet()
        late = client.begin("tools/call", CALL)
        await late.body()
        assert late.status == 503
        assert await client.notify("notifications/roots/list_changed") == 202
        assert not draining.done()
        held[0].answer(DONE)
        await draining
        assert (await visit.json())["result"] == DONE


@jumping
async def test_closing_answers_what_is_still_running_and_ends_every_stream() -> None:
    async with front() as at:
        at.hold()
        client = await at.client()
        visit = client.begin("tools/call", CALL)
        standing = await client.listen().head()
        await at.app.drain(5)
        await at.app.aclose()
        error = (await visit.json())["error"]
        assert isinstance(error, dict)
        assert error["message"] == "plait is shutting down"
        await standing.event()
        assert await standing.event() == {}
        assert len(at.server.told("notifications/cancelled")) == 1


@jumping
async def test_as_part_of_another_server_it_ends_with_it() -> None:
    async with front() as at:
        client = await at.client()
        standing = await client.listen().head()
        said: list[Message] = []
        events = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])

        async def receive() -> Message:
            return dict(next(events))

        async def send(message: Message) -> None:
            said.append(message)

        await at.app({"type": "lifespan"}, receive, send)
        assert [each["type"] for each in said] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
        await standing.event()
        assert await standing.event() == {}


@jumping
async def test_other_protocols_are_left_alone() -> None:
    async with front() as at:

        async def unused(*_: object) -> Message:
            raise AssertionError("nobody asked")

        await at.app({"type": "websocket"}, unused, unused)  # type: ignore[arg-type]
        await HttpClient(at.app).shake_hands()
