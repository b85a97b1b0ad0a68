"""A reverse proxy that takes a prefix off names and puts it on again, for clients whose names are fixed."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

_NAMED = {"tools/call", "prompts/get"}
_LISTS = ("tools", "prompts")
_OWN = {"content-length", "transfer-encoding", "connection", "keep-alive"}
"""Headers of one connection; each side has its own."""
_LONGEST_LINE = 1 << 24


class Shim:
    """Passes everything on as it came, the Host and the Origin too, but for the names."""

    def __init__(self, url: str, prefix: str, http: aiohttp.ClientSession) -> None:
        self._url = url
        self._prefix = prefix
        self._http = http

    async def pass_through(self, request: web.Request) -> web.StreamResponse:
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _OWN]
        body = self.outward(await request.read())
        method = request.headers.get("Mcp-Method", "").strip()
        if method in _NAMED:
            headers = [(name, self._named(name, value)) for name, value in headers]
        async with self._http.request(request.method, self._url, headers=headers, data=body) as answer:
            return await self._pass_on(request, answer)

    def _named(self, header: str, value: str) -> str:
        return self._prefix + value.strip() if header.lower() == "mcp-name" else value

    async def _pass_on(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        headers = [(name, value) for name, value in answer.headers.items() if name.lower() not in _OWN]
        if answer.content_type != "text/event-stream":
            body = self.inward(await answer.read())
            return web.Response(status=answer.status, headers=dict(headers), body=body)
        stream = web.StreamResponse(status=answer.status, headers=dict(headers))
        await stream.prepare(request)
        while line := await answer.content.readline():
            field, colon, data = line.partition(b"data: ")
            is_data = colon and not field
            await stream.write(b"data: " + self.inward(data.rstrip(b"\n")) + b"\n" if is_data else line)
        return stream

    def outward(self, body: bytes) -> bytes:
        """What a client sends, with the prefix on the names in it."""
        message = _message(body)
        params = message.get("params")
        if not isinstance(params, dict):
            return body
        owner = params.get("ref") if message.get("method") == "completion/complete" else None
        if message.get("method") in _NAMED:
            owner = params
        if not isinstance(owner, dict) or not isinstance(owner.get("name"), str):
            return body
        owner["name"] = self._prefix + owner["name"]
        return json.dumps(message).encode()

    def inward(self, body: bytes) -> bytes:
        """What it is answered, without the prefix."""
        message = _message(body)
        result = message.get("result")
        if not isinstance(result, dict):
            return body
        for entries in (result.get(name) for name in _LISTS):
            for entry in entries if isinstance(entries, list) else ():
                entry["name"] = entry["name"].removeprefix(self._prefix)
        return json.dumps(message).encode()


def _message(body: bytes) -> dict[str, object]:
    try:
        found: object = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


@asynccontextmanager
async def without_prefix(url: str, prefix: str) -> AsyncIterator[str]:
    """The address where the server at this one is met without the prefix."""
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        timeout=timeout, read_bufsize=_LONGEST_LINE, auto_decompress=True, raise_for_status=False
    ) as http:
        application = web.Application()
        application.router.add_route("*", "/mcp", Shim(url, prefix, http).pass_through)
        runner = web.AppRunner(application, handler_cancellation=True, access_log=None, shutdown_timeout=1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
        finally:
            await runner.cleanup()
