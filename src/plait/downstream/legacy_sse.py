"""HTTP+SSE, the transport of revision 2024-11-05: one stream with everything, and messages posted beside it.

"The server MUST provide two endpoints: an SSE endpoint, for clients to establish a connection and receive
messages from the server; a regular HTTP POST endpoint for clients to send messages to the server. When a
client connects, the server MUST send an `endpoint` event containing a URI for the client to use".
Here the stream is the client: when it ends, so does the session.
"""

from urllib.parse import parse_qs

from plait.downstream.asgi import Answer, Request, refusal
from plait.downstream.events import Form, pour
from plait.downstream.http_limits import HttpLimits
from plait.downstream.sessions import Sessions
from plait.pipeline.grants import Identity

DOOR = "/sse"
MESSAGES = "/messages"


class LegacySse:
    def __init__(self, sessions: Sessions, limits: HttpLimits) -> None:
        self._sessions = sessions
        self._limits = limits

    async def get(self, request: Request, identity: Identity) -> Answer | None:
        if not request.accepts("text/event-stream"):
            return refusal(406, "a GET here gives a stream: Accept: text/event-stream")
        session = self._sessions.open(identity, DOOR)
        if isinstance(session, Answer):
            return session
        address = f"{request.root}{MESSAGES}?sessionId={session.id}"
        form = Form(ids=False, first=f"event: endpoint\ndata: {address}\n\n".encode())
        try:
            await pour(session.standing, request, form, ping=self._limits.ping)
        finally:
            await self._sessions.end(session)
        return None

    async def post(self, request: Request, identity: Identity) -> Answer:
        given = parse_qs(request.query, max_num_fields=10).get("sessionId", [])
        session = self._sessions.find(given[0], identity, DOOR) if len(given) == 1 else None
        if session is None:
            return refusal(404, "there is no such session, or not any more: GET /sse opens one")
        body = await request.body(self._limits.body_bytes, self._limits.body_time)
        if isinstance(body, Answer):
            return body
        if session.connection.running >= self._limits.running:
            return refusal(429, f"{session.connection.running} requests of this session are still running")
        session.connection.receive(body)
        return Answer(202)
