"""Clients over HTTP, as a plain ASGI application: for `plait up`, or mounted in one of yours.

    app = HttpApp(compositor, Access(Sources("127.0.0.1"), anonymous=Identity("anonymous")))

Every request goes through the same door: where it comes from, whether there is such a route, who sent it.
Only then does anything look at what it wants.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from plait.downstream.access import Access
from plait.downstream.asgi import Answer, Receive, Request, Scope, Send, refusal
from plait.downstream.health import Servers, alive, ready
from plait.downstream.http_limits import HttpLimits
from plait.downstream.legacy_sse import DOOR as SSE
from plait.downstream.legacy_sse import MESSAGES, LegacySse
from plait.downstream.sessions import Gateway, Sessions
from plait.downstream.stateless import Stateless
from plait.downstream.streamable import DOOR as MCP
from plait.downstream.streamable import StreamableHttp
from plait.pipeline.grants import Identity

Handle = Callable[[Request, Identity], Awaitable[Answer | None]]
"""Answers a request of somebody known; None: it has been answered, piece by piece."""
OpenHandle = Callable[[Request], Awaitable[Answer]]
"""Answers anybody's request."""


class Route(Struct, frozen=True):
    """A path: who does what there."""

    methods: Mapping[str, Handle] = {}
    open_methods: Mapping[str, OpenHandle] = {}
    """For those who have shown no token too."""

    @property
    def allowed(self) -> str:
        return ", ".join(sorted({*self.methods, *self.open_methods}))


class HttpApp:
    def __init__(
        self,
        gateway: Gateway,
        access: Access,
        *,
        limits: HttpLimits | None = None,
        servers: Servers = tuple,
        documents: Mapping[str, Answer] | None = None,
    ) -> None:
        """`servers`: what is behind us, for `/readyz`; `documents`: fixed answers to a GET, by path."""
        limits = limits or HttpLimits()
        self._access = access
        self._servers = servers
        self._sessions = Sessions(gateway, limits)
        self._stateless = Stateless(gateway, limits)
        mcp = StreamableHttp(self._sessions, self._stateless, limits)
        sse = LegacySse(self._sessions, limits)
        self.routes: dict[str, Route] = {
            MCP: Route({"POST": mcp.post, "GET": mcp.get, "DELETE": mcp.delete}),
            SSE: Route({"GET": sse.get}),
            MESSAGES: Route({"POST": sse.post}),
            "/healthz": Route(open_methods={"GET": _alive}),
            "/readyz": Route(open_methods={"GET": self._ready}),
        }
        for path, document in (documents or {}).items():
            self.routes[path] = Route(open_methods={"GET": _fixed(document)})

    def __repr__(self) -> str:
        return f"<HttpApp with {len(self._sessions)} sessions, {len(self._stateless)} modern requests>"

    @property
    def sessions(self) -> int:
        return len(self._sessions)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        if scope["type"] != "http":
            return
        request = Request(scope, receive, send)
        answer = await self._answer(request)
        if answer is not None:
            await request.respond(answer)

    async def _answer(self, request: Request) -> Answer | None:
        sources = self._access.sources
        refused = sources.refusal(request)
        if refused is not None:
            return refused
        request.extra = sources.leave(request)
        route = self.routes.get(request.path)
        if route is None:
            return refusal(404, "there is nothing here; MCP is at /mcp")
        if request.method in route.open_methods:
            return await route.open_methods[request.method](request)
        handle = route.methods.get(request.method)
        if handle is None:
            preflight = sources.preflight(request) if request.method == "OPTIONS" else None
            return preflight or refusal(
                405, f"only {route.allowed} here", ((b"allow", route.allowed.encode()),)
            )
        identity = await self._access.identify(request)
        return identity if isinstance(identity, Answer) else await handle(request, identity)

    async def _ready(self, request: Request) -> Answer:
        """A wrong token is wrong here too; none at all is fine, and learns little."""
        identity = await self._access.identify(request)
        if isinstance(identity, Answer) and request.header(b"authorization") is not None:
            return identity
        return ready(self._servers(), identity)

    # ---- its end

    async def expel(self) -> None:
        """Requests with a token that was revoked are refused anyway; this ends the streams that are open."""
        await self._sessions.expel(self._access.knows)
        await self._stateless.expel(self._access.knows)

    async def drain(self, seconds: float) -> None:
        """Take no more requests, and let those that are running come to their answers, for so long."""
        self._sessions.closing = self._stateless.closing = True
        async with asyncio.TaskGroup() as group:
            group.create_task(self._sessions.finish(seconds))
            group.create_task(self._stateless.finish(seconds))

    async def aclose(self) -> None:
        """End every session and every stream."""
        await self._stateless.aclose("plait is shutting down")
        await self._sessions.aclose("plait is shutting down")

    async def _live(self, receive: Receive, send: Send) -> None:
        """As part of somebody's server we end our sessions when it says that it ends."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.aclose()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return


async def _alive(request: Request) -> Answer:
    return alive()


def _fixed(document: Answer) -> OpenHandle:
    async def give(request: Request) -> Answer:
        return document

    return give
