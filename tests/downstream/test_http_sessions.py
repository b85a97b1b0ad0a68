"""Sessions: whose they are, how many there may be, and when they end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from asgi import HttpClient, closing
from clients import compositor
from clock import jumping, quiet
from fakes import FakeServer
from fronts import CALL, DONE, front
from plait.compositor import Compositor
from plait.downstream.access import Access
from plait.downstream.asgi import Answer
from plait.downstream.http import HttpApp
from plait.downstream.http_limits import HttpLimits
from plait.downstream.sources import Sources
from plait.pipeline.grants import Grant, Identity


class Named:
    """A proof that takes every token for a name; `name:pattern` has a grant."""

    async def identify(self, token: str) -> Identity | Answer | None:
        name, _, pattern = token.partition(":")
        grant = Grant((pattern,)) if pattern else Grant()
        return Identity(name, grant, sessions=2 if name == "small" else None)

    def knows(self, identity: Identity) -> bool:
        return identity != "bob"


@contextlib.asynccontextmanager
async def guarded(limits: HttpLimits | None = None) -> AsyncIterator[tuple[HttpApp, Compositor]]:
    access = Access(Sources(), [Named()], Identity("anonymous"))
    server = FakeServer("fs", tools=["t"])
    async with compositor(server) as made, closing(HttpApp(made, access, limits=limits)) as app:
        yield app, made


def by(app: HttpApp, name: str) -> HttpClient:
    return HttpClient(app, {"authorization": f"Bearer {name}"} if name else {})


async def status(client: HttpClient, method: str = "POST") -> int:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}' if method == "POST" else b""
    visit, _ = await client.ask(method, "/mcp", body, client.session)
    return visit.status


@jumping
async def test_a_session_of_somebody_else_is_as_unknown_as_one_that_never_was() -> None:
    async with guarded() as (app, _):
        alice, bob, nobody = by(app, "alice"), by(app, "bob"), by(app, "")
        await alice.shake_hands()
        for stranger in (bob, nobody, by(app, "alice:fs__*")):
            stranger.session = {"mcp-session-id": "never was"}
            never = await stranger.ask(
                "POST", "/mcp", b'{"jsonrpc":"2.0","id":1,"method":"ping"}', stranger.session
            )
            for method in ("POST", "GET", "DELETE"):
                stranger.session = alice.session
                assert await status(stranger, method) == 404
            theirs = await stranger.ask(
                "POST", "/mcp", b'{"jsonrpc":"2.0","id":1,"method":"ping"}', alice.session
            )
            assert (theirs[0].headers, theirs[1]) == (never[0].headers, never[1])
        assert await status(alice) == 200


@jumping
async def test_the_identity_of_a_session_is_that_of_its_connection() -> None:
    async with guarded() as (app, made):
        await by(app, "alice").shake_hands()
        await by(app, "").shake_hands()
        assert sorted(str(each.identity) for each in made._connections) == ["alice", "anonymous"]


@jumping
async def test_one_identity_cannot_take_all_sessions() -> None:
    async with guarded(HttpLimits(sessions_each=3)) as (app, _):
        for name, most in (("alice", 3), ("small", 2)):
            for _ in range(most):
                await by(app, name).shake_hands()
            visit = by(app, name).begin("initialize")
            await visit.body()
            assert visit.status == 429
        for _ in range(10):
            await by(app, "").shake_hands()


@jumping
async def test_a_session_that_ended_makes_room_for_another() -> None:
    async with guarded(HttpLimits(sessions_each=1)) as (app, _):
        for _ in range(3):
            client = by(app, "alice")
            await client.shake_hands()
            assert await client.leave() == 204
            assert await client.leave() == 404


@jumping
async def test_past_the_last_session_new_ones_are_refused_and_those_that_are_there_live() -> None:
    async with guarded(HttpLimits(sessions=5)) as (app, _):
        clients = [by(app, "") for _ in range(5)]
        for client in clients:
            await client.shake_hands()
        sixth = by(app, "alice").begin("initialize")
        await sixth.body()
        assert (sixth.status, sixth.headers["retry-after"]) == (503, "60")
        assert [await status(client) for client in clients] == [200] * 5


@jumping
async def test_a_session_that_nobody_uses_ends() -> None:
    async with front(HttpLimits(idle=30)) as at:
        used, idle, listening, working = [await at.client() for _ in range(4)]
        standing = await listening.listen().head()
        held = at.hold()
        visit = working.begin("tools/call", CALL)
        for _ in range(4):
            await asyncio.sleep(10)
            assert await status(used) == 200
        assert await status(idle) == 404
        assert at.app.sessions == 3
        held[0].answer(DONE)
        assert (await visit.message())["result"] == DONE
        await standing.close()
        await asyncio.sleep(61)
        await quiet()
        assert at.app.sessions == 0


@jumping
async def test_five_thousand_clients_that_never_come_back_leave_a_table_at_its_cap() -> None:
    async with guarded(HttpLimits(sessions=1000)) as (app, made):
        statuses = []
        for _ in range(5000):
            visit = by(app, "").begin("initialize")
            await visit.body()
            statuses.append(visit.status)
        assert (statuses.count(200), statuses.count(503)) == (1000, 4000)
        assert (app.sessions, len(made._connections)) == (1000, 1000)
        await asyncio.sleep(1801)
        await quiet()
        assert (app.sessions, len(made._connections)) == (0, 0)
        assert made.registry.clients == 0
        await by(app, "").shake_hands()


@jumping
async def test_five_thousand_sessions_one_after_the_other_leave_nothing_behind() -> None:
    async with guarded() as (app, made):
        for _ in range(5000):
            client = by(app, "alice")
            visit = client.begin("initialize")
            await visit.body()
            client.session = {"mcp-session-id": visit.headers["mcp-session-id"]}
            await client.leave()
        assert (app.sessions, len(made._connections), made.registry.clients) == (0, 0, 0)
        assert not app._sessions._owned


@jumping
async def test_a_thousand_sessions_with_open_streams_all_hear_of_a_change() -> None:
    async with front() as at:
        clients = [await at.client() for _ in range(1000)]
        await clients[0].request("tools/list")
        standing = [await client.listen().head() for client in clients]
        at.server.notify("notifications/message", {"level": "error", "data": "x"})
        for stream in standing:
            assert (await stream.message())["method"] == "notifications/message"
        for stream in standing:
            await stream.close()


@jumping
async def test_the_streams_of_those_who_are_not_known_any_more_end() -> None:
    async with guarded() as (app, _):
        alice, bob, nobody = by(app, "alice"), by(app, "bob"), by(app, "")
        for client in (alice, bob, nobody):
            await client.shake_hands()
        standing = await bob.listen().head()
        await app.expel()
        await standing.event()
        assert await standing.event() == {}
        assert [await status(client) for client in (alice, bob, nobody)] == [200, 404, 200]


@jumping
async def test_who_sends_too_often_is_told_when_to_come_again() -> None:
    class Slow:
        async def identify(self, token: str) -> Identity | Answer | None:
            return Identity("slow", rate=3)

        def knows(self, identity: Identity) -> bool:
            return True

    access = Access(Sources(), [Slow()])
    async with compositor() as made, closing(HttpApp(made, access)) as app:
        client = by(app, "x")
        await client.shake_hands()
        assert await status(client) == 200
        refused = client.begin("ping")
        await refused.body()
        assert (refused.status, refused.headers["retry-after"]) == (429, "20")
        await asyncio.sleep(20)
        assert await status(client) == 200
        assert await status(client) == 429
        await asyncio.sleep(600)
        assert [await status(client) for _ in range(4)] == [200, 200, 200, 429]
