"""Streamable HTTP: what POST, GET and DELETE at `/mcp` mean. Here the eras part, by what a message says.

The answer to a request is one JSON object where nothing comes before it, and a stream of events where
something does: which of them it is, is decided as late as possible, since a status cannot be taken back.
"""

from msgspec import Raw

from plait.downstream.asgi import JSON, Answer, Request, refusal
from plait.downstream.events import EventStream, Form, pour, priming
from plait.downstream.http_limits import HttpLimits
from plait.downstream.http_session import HttpSession
from plait.downstream.sessions import Sessions
from plait.downstream.stateless import Stateless
from plait.errors import RemoteProtocolError
from plait.pipeline.grants import Identity
from plait.session.negotiation import era_of, fields_of
from plait.wire.envelope import Envelope, error_body, failure, legal_id, open_envelope
from plait.wire.modern import SPOKEN
from plait.wire.spec import LATEST_HANDSHAKE, REVISIONS, WITH_BATCHES, Era

DOOR = "/mcp"
ACCEPTED = Answer(202)
# "GET and DELETE: 405 Method Not Allowed" (2026-07-28): there is no session that they could be about.
POST_ONLY = refusal(405, "the modern era has POST only", ((b"allow", b"POST"),))
_HANDSHAKE = [revision for revision, era in REVISIONS.items() if era is Era.HANDSHAKE]


class StreamableHttp:
    def __init__(self, sessions: Sessions, stateless: Stateless, limits: HttpLimits) -> None:
        self._sessions = sessions
        self._stateless = stateless
        self._limits = limits

    # ---- POST

    async def post(self, request: Request, identity: Identity) -> Answer | None:
        body = _misfit(request) or await request.body(self._limits.body_bytes, self._limits.body_time)
        if isinstance(body, Answer):
            return body
        try:
            message = open_envelope(body)
        except RemoteProtocolError as problem:
            return await self._post_unopened(request, identity, body, problem)
        if _is_modern(request, message):
            return await self._stateless.post(request, identity, body, message)
        if self._sessions.closing and is_request(message):  # answers to our own questions are still taken
            return refusal(503, "plait is shutting down", ((b"retry-after", b"5"),))
        if message.method == "initialize" and request.header(b"mcp-session-id") is None:
            return self._initialize(identity, body, message)
        session = self._session(request, identity)
        return session if isinstance(session, Answer) else await self._take(request, session, body, message)

    async def _post_unopened(
        self, request: Request, identity: Identity, body: bytes, problem: RemoteProtocolError
    ) -> Answer | None:
        """No single message: a batch, where the session's revision has them, or somebody's mistake."""
        if body.lstrip()[:1] == b"[" and request.header(b"mcp-session-id") is not None:
            session = self._session(request, identity)
            if isinstance(session, Answer):
                return session
            if session.connection.revision == WITH_BATCHES:
                return await self._take(request, session, body, None)
        id = None if problem.id is None else bytes(problem.id)
        return Answer(400, failure(id, error_body(problem.code, str(problem))), (JSON,))

    def _initialize(self, identity: Identity, body: bytes, message: Envelope) -> Answer:
        if not is_request(message):
            return refusal(400, "initialize is a request: it has an id, a string or an integer")
        session = self._sessions.open(identity, DOOR)
        if isinstance(session, Answer):
            return session
        answers: list[bytes] = []
        session.connection.receive(body, message, answers.append)
        named = (b"mcp-session-id", session.id.encode())
        return Answer(200, answers[0], (JSON, named))

    async def _take(
        self, request: Request, session: HttpSession, body: bytes, message: Envelope | None
    ) -> Answer | None:
        """Give the session what came, and the client what comes of it."""
        if session.running >= self._limits.running:
            return refusal(429, f"{session.running} requests of this session are still running")
        answers: list[bytes] = []
        started = session.connection.receive(body, message, answers.append)
        if message is None or message.method == "notifications/cancelled":
            session.end_cancelled()
        if started:
            return await self._reply(request, session, session.begin(started))
        if not answers:
            return ACCEPTED
        # "If the server cannot accept the input, it MUST return an HTTP error status code" (transports).
        fine = message is None or is_request(message)
        return Answer(200 if fine else 400, answers[0], (JSON,))

    async def _reply(self, request: Request, session: HttpSession, stream: EventStream) -> Answer | None:
        if not stream.ended and not stream.events:
            await stream.changed(self._limits.ping)
        if stream.ended and len(stream.events) == 1:
            return Answer(200, stream.events[0].data, (JSON,))
        session.publish(stream)
        await pour(stream, request, _form(session, stream), ping=self._limits.ping)
        return None

    # ---- GET and DELETE

    async def get(self, request: Request, identity: Identity) -> Answer | None:
        """The standing stream, or one that broke, from where it broke."""
        if _names_modern(request):
            return POST_ONLY
        if not request.accepts("text/event-stream"):
            return refusal(406, "a GET here gives a stream: Accept: text/event-stream")
        session = self._session(request, identity)
        if isinstance(session, Answer):
            return session
        seen = request.header(b"last-event-id")
        if not seen:
            if session.standing.reader is not None:
                return refusal(409, "this session's stream is open already; go on with Last-Event-ID")
            form = _form(session, session.standing)
            await pour(session.standing, request, form, ping=self._limits.ping)
            return None
        found = session.resumed(seen)
        if found is None:
            return refusal(400, "nothing is known of the event that Last-Event-ID names, or not any more")
        await pour(found[0], request, Form(), ping=self._limits.ping, after=found[1])
        return None

    async def delete(self, request: Request, identity: Identity) -> Answer:
        if _names_modern(request):
            return POST_ONLY
        session = self._session(request, identity)
        if isinstance(session, Answer):
            return session
        await self._sessions.end(session)
        return Answer(204)

    def _session(self, request: Request, identity: Identity) -> HttpSession | Answer:
        revision = request.header(b"mcp-protocol-version")
        twice = request.repeats({b"mcp-protocol-version"})
        if twice or (revision is not None and revision not in _HANDSHAKE):
            # "[...] an invalid or unsupported MCP-Protocol-Version, it MUST respond with 400 Bad Request".
            return refusal(400, f"MCP-Protocol-Version must be one of {', '.join(_HANDSHAKE)}")
        id = request.header(b"mcp-session-id")
        if id is None:
            return refusal(400, "Mcp-Session-Id is missing: send initialize first")
        session = self._sessions.find(id, identity, DOOR)
        return session or refusal(404, "there is no such session, or not any more: send initialize again")


def is_request(message: Envelope) -> bool:
    return isinstance(message.method, str) and _id_of(message) is not None


def _id_of(message: Envelope) -> bytes | None:
    id = message.id
    return bytes(id) if isinstance(id, Raw) and legal_id(id) else None


def _is_modern(request: Request, message: Envelope) -> bool:
    """ "initialize" opens a session of the handshake era whatever its head says, unless it is stamped."""
    if isinstance(message.method, str):
        meta = message.params.get("_meta") if isinstance(message.params, dict) else None
        if era_of(message.method, None if meta is None else fields_of(meta)) is Era.MODERN:
            return True
    return _names_modern(request) and message.method != "initialize"


def _names_modern(request: Request) -> bool:
    """A revision that is none of the handshake's is a later one. Within a session it is a mistake."""
    revision = request.header(b"mcp-protocol-version")
    if revision is None or revision in _HANDSHAKE:
        return False
    return revision in SPOKEN or request.header(b"mcp-session-id") is None


def _misfit(request: Request) -> Answer | None:
    """ "The client MUST include an Accept header, listing both application/json and text/event-stream"."""
    if not (request.accepts("application/json") and request.accepts("text/event-stream")):
        return refusal(406, "Accept must list both application/json and text/event-stream")
    kind = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/json" or request.header(b"content-encoding") is not None:
        return refusal(415, "the body must be application/json, not packed")
    return None


def _form(session: HttpSession, stream: EventStream) -> Form:
    newest = session.connection.revision == LATEST_HANDSHAKE
    return Form(first=priming(stream) if newest else b"")
