"""Who may do what where: every route, method, kind of caller and tool, each with the answer it must get."""

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import AsyncIterator

import pytest

from asgi import BOTH, Browser, HttpClient, StatelessClient, closing
from clients import ALONE
from clock import jumping
from fakes import FakeServer, Message
from plait.compositor import Compositor
from plait.config.access import TokenSetting
from plait.downstream.access import Access
from plait.downstream.asgi import as_json
from plait.downstream.health import ServerHealth
from plait.downstream.http import HttpApp
from plait.downstream.sources import Sources
from plait.downstream.token_file import digest_of
from plait.downstream.tokens import TokenBook
from plait.pipeline.grants import Grant, GrantFilter, Identity
from plait.providers.function import FunctionProvider
from plait.providers.tools.builtin import READ_ONLY
from plait.routing.naming import MountPrefix

METADATA = "/.well-known/oauth-protected-resource"
WORKS = {
    "/mcp": {"POST": 400, "GET": 400, "DELETE": 400},  # somebody known, and no session yet
    "/sse": {"GET": 200},
    "/messages": {"POST": 404},
    "/healthz": {"GET": 200},
    "/readyz": {"GET": 200},
    METADATA: {"GET": 200},
    "/": {},
    "/admin": {},
}
"""What each route answers to somebody who may come in; a method that is not here is 405, a path without
methods 404."""
MODERN = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
WORKS_MODERN = {**WORKS, "/mcp": {"POST": 200, "GET": 405, "DELETE": 405}}
BODIES = {
    "handshake": b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
    "modern": b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{'
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientCapabilities":{}}}}',
}
ERAS = list(BODIES)
FOR_ANYBODY = {"/healthz", "/readyz", METADATA}
METHODS = ["GET", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"]
CALLERS: dict[str, list[tuple[str, str]]] = {
    "alice": [("authorization", "Bearer all")],
    "reader": [("authorization", "bearer some")],
    "nobody": [],
    "unknown token": [("authorization", "Bearer what")],
    "expired token": [("authorization", "Bearer late")],
    "no token": [("authorization", "Bearer ")],
    "other scheme": [("authorization", "Basic YWxpY2U6YWxs")],
    "name for a token": [("authorization", "Bearer alice")],
    "anonymous by name": [("authorization", "Bearer anonymous")],
    "two tokens": [("authorization", "Bearer all"), ("authorization", "Bearer some")],
}
KNOWN = {"alice", "reader"}
TOKENS = [
    TokenSetting(name="alice", sha256=digest_of("all")),
    TokenSetting(
        name="reader", sha256=digest_of("some"), tools=("fs__read_*", "builtin__read_file", "memo:*")
    ),
    TokenSetting(name="late", sha256=digest_of("late"), expires=time.time() - 1),
]
TOOLS = [
    "fs__read_a",
    "fs__write_a",
    "git__log",
    "builtin__read_file",
    "builtin__exec_shell",
    "builtin__echo",
]
GRANTED = {
    "alice": set(TOOLS),
    "reader": {"fs__read_a", "builtin__read_file"},
    "anonymous": {"fs__read_a", "fs__write_a", "git__log", "builtin__read_file", "builtin__echo"},
}


async def read_file() -> str:
    return "read"


async def exec_shell() -> str:
    return "ran"


async def echo() -> str:
    return "said"


@contextlib.asynccontextmanager
async def gateway(*, guarded: bool) -> AsyncIterator[HttpApp]:
    book = TokenBook(TOKENS)
    anonymous = None if guarded else Identity("anonymous", Grant(builtin=READ_ONLY))
    access = Access(Sources(), [book], anonymous)
    async with Compositor(ALONE, [GrantFilter()]) as compositor:
        for server in (
            FakeServer("fs", tools=["read_a", "write_a"], resources=["memo:1", "file:2"], prompts=["p"]),
            FakeServer("git", tools=["log"]),
        ):
            await compositor.mount(MountPrefix(server.name), server, wait=False)
        await compositor.mount_provider(FunctionProvider("builtin", [read_file, exec_shell, echo]))
        servers = [ServerHealth("fs", "active", True)]
        documents = {METADATA: as_json(200, {})}
        app = HttpApp(compositor, access, servers=lambda: servers, documents=documents)
        async with closing(app):
            yield app


def expected(path: str, method: str, caller: str, era: str, *, guarded: bool) -> int:
    if caller == "two tokens":
        return 400
    allowed = (WORKS_MODERN if era == "modern" else WORKS)[path]
    if not allowed:
        return 404
    if method not in allowed:
        return 405
    welcome = caller in KNOWN or (caller == "nobody" and (not guarded or path in FOR_ANYBODY))
    if welcome or path in FOR_ANYBODY - {"/readyz"}:
        return allowed[method]
    return 401


CELLS = list(itertools.product(WORKS, METHODS, CALLERS, (True, False), ERAS))


def test_the_matrix_is_as_large_as_it_should_be() -> None:
    assert len(CELLS) >= 300


@jumping
async def test_the_matrix_has_every_route_of_the_application() -> None:
    async with gateway(guarded=True) as app:
        assert set(app.routes) == {path for path, methods in WORKS.items() if methods}
        for path, route in app.routes.items():
            assert {*route.methods, *route.open_methods} == set(WORKS[path])


@pytest.mark.parametrize("guarded", [True, False], ids=["tokens", "loopback"])
@jumping
async def test_every_route_answers_every_caller_as_it_must(guarded: bool) -> None:
    wrong: list[object] = []
    async with gateway(guarded=guarded) as app:
        for path, method, caller, guards, era in CELLS:
            if guards is not guarded:
                continue
            headers = {
                "accept": BOTH,
                "content-type": "application/json",
                **(MODERN if era == "modern" else {}),
            }
            body = BODIES[era] if method == "POST" else b""
            visit = Browser(app, headers).open(method, path, body, CALLERS[caller])
            await visit.head()
            status = expected(path, method, caller, era, guarded=guarded)
            if visit.status != status:
                wrong.append((path, method, caller, era, visit.status, status))
            if visit.status == 401 and "Bearer" not in visit.headers["www-authenticate"]:
                wrong.append((path, method, caller, visit.headers))
            await visit.close()
    assert wrong == []


async def client_of(app: HttpApp, caller: str, era: str) -> HttpClient | StatelessClient:
    if era == "modern":
        return StatelessClient(app, dict(CALLERS.get(caller, [])))
    client = HttpClient(app, dict(CALLERS.get(caller, [])))
    await client.shake_hands()
    return client


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("caller", GRANTED)
@jumping
async def test_a_tool_is_listed_called_and_found_by_those_it_was_granted_to(caller: str, era: str) -> None:
    async with gateway(guarded=caller != "anonymous") as app:
        client = await client_of(app, caller, era)
        listed = (await client.request("tools/list"))["result"]
        assert isinstance(listed, dict)
        assert {tool["name"] for tool in listed["tools"]} == GRANTED[caller]
        for tool in TOOLS:
            answer = (await client.request("tools/call", name=tool, arguments={}))["result"]
            assert isinstance(answer, dict)
            refused = answer.get("isError", False)
            assert refused is (tool not in GRANTED[caller]), tool
            if refused:
                unknown = (await client.request("tools/call", name=f"{tool}x", arguments={}))["result"]
                assert isinstance(unknown, dict)
                told, other = answer["content"][0]["text"], unknown["content"][0]["text"]
                assert told == other.replace(f"{tool}x", tool), "as a name that does not exist"


@pytest.mark.parametrize("era", ERAS)
@jumping
async def test_resources_and_prompts_are_granted_by_the_same_patterns(era: str) -> None:
    async with gateway(guarded=True) as app:
        reader = await client_of(app, "reader", era)

        async def keys(kind: str, key: str) -> list[object]:
            listed = (await reader.request(f"{kind}/list"))["result"]
            assert isinstance(listed, dict)
            return [item[key] for item in listed[kind]]

        assert await keys("resources", "uri") == ["memo:1"]
        assert await keys("prompts", "name") == []
        assert "result" in await reader.request("resources/read", uri="memo:1")
        assert "error" in await reader.request("resources/read", uri="file:2")
        assert "error" in await reader.request("prompts/get", name="fs__p")


@jumping
async def test_every_request_proves_itself_and_a_session_proves_nothing() -> None:
    async with gateway(guarded=True) as app:
        alice = HttpClient(app, dict(CALLERS["alice"]))
        await alice.shake_hands()
        for caller, pairs in CALLERS.items():
            if caller in (*KNOWN, "two tokens"):
                continue
            thief = HttpClient(app, dict(pairs))
            for method in ("POST", "GET", "DELETE"):
                visit, _ = await thief.ask(method, "/mcp", b"{}", alice.session)
                assert visit.status == 401, caller
        assert "result" in await alice.request("ping")


@pytest.mark.parametrize(("caller", "shown"), [("alice", True), ("reader", False), ("nobody", False)])
@jumping
async def test_which_servers_there_are_is_told_to_those_who_may_use_all_of_them(
    caller: str, shown: bool
) -> None:
    async with gateway(guarded=True) as app:
        _, body = await Browser(app).ask("GET", "/readyz", b"", CALLERS[caller])
        assert ("servers" in json.loads(body)) is shown


@jumping
async def test_tokens_in_the_query_count_for_nothing() -> None:
    async with gateway(guarded=True) as app:
        for query in ("access_token=all", "token=all", "authorization=Bearer%20all"):
            visit, _ = await Browser(app, {"accept": BOTH}).ask("GET", f"/sse?{query}")
            assert visit.status == 401


@pytest.mark.requirement("K-16")
@jumping
async def test_what_a_client_puts_into_the_query_reaches_no_tool() -> None:
    """A seed put the parameters of the query into every tool's arguments, as `_connection`."""
    server = FakeServer("fs", tools=["t"])
    access = Access(Sources(), anonymous=Identity("anonymous"))
    async with Compositor(ALONE) as compositor, closing(HttpApp(compositor, access)) as app:
        await compositor.mount(MountPrefix("fs"), server, wait=False)
        client = HttpClient(app)
        await client.shake_hands()
        call: Message = {"name": "fs__t", "arguments": {"a": 1}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
        visit, _ = await client.ask("POST", "/mcp?_connection=evil&user=root", body, client.session)
        assert visit.status == 200
        await asyncio.sleep(0)
        assert server.asked("tools/call") == [{"name": "t", "arguments": {"a": 1}}]
