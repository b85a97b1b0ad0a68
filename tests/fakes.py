"""Servers in memory, with scripted lists and answers, for tests."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.json import decode

from plait.errors import PlaitError
from plait.upstream.base import Link, Receiver
from plait.upstream.client import Listener, McpClient
from plait.upstream.handshake import McpSession
from plait.upstream.opening import Behalf
from plait.wire.envelope import encode
from plait.wire.spec import LATEST_HANDSHAKE, LISTS, METHOD_NOT_FOUND, Kind

Message = dict[str, object]


class Refusal(Struct, frozen=True):
    """A JSON-RPC error, where an answer is expected."""

    code: int = -32000
    message: str = "no"


class Held:
    """An answer that the test gives later, by `answer`."""

    def __init__(self) -> None:
        self.answer: Callable[[object], None] = lambda result: None


Answer = Callable[[Message], object]
"""From the params of a request to its result, a Refusal or a Held."""


def item(kind: Kind, key: str | Message) -> Message:
    """An entry of a list, from what identifies it or as it is given."""
    if not isinstance(key, str):
        return key
    extra: Message = {"inputSchema": {"type": "object"}} if kind is Kind.TOOLS else {}
    return {kind.key: key, "name": key, **extra}


def text(words: str) -> Message:
    return {"content": [{"type": "text", "text": words}]}


def words(result: object) -> str:
    """The text of a tool's result."""
    assert isinstance(result, dict)
    return "".join(str(block["text"]) for block in result["content"])


class FakeServer:
    """An MCP server in memory. It is its own Opener, and may be opened, ended and opened again."""

    def __init__(
        self,
        name: str = "fake",
        *,
        tools: Sequence[str | Message] = (),
        prompts: Sequence[str | Message] = (),
        resources: Sequence[str | Message] = (),
        templates: Sequence[str | Message] = (),
        capabilities: Mapping[str, object] | None = None,
        instructions: str = "",
        revision: str = LATEST_HANDSHAKE,
    ) -> None:
        self.name = name
        self.lists: dict[Kind, Sequence[str | Message]] = {
            Kind.TOOLS: tools,
            Kind.PROMPTS: prompts,
            Kind.RESOURCES: resources,
            Kind.TEMPLATES: templates,
        }
        self.capabilities = capabilities
        self.instructions = ""
        """What it is remembered to have said last time."""
        self.words = instructions
        self.revision = revision
        self.timeout = 60.0
        self.answers: dict[str, Answer] = {}
        """What to answer a method with, instead of the usual."""
        self.requests: list[tuple[str, Message]] = []
        self.notifications: list[tuple[str, Message]] = []
        self.behalf: list[Behalf] = []
        """On whose behalf it was greeted, each time."""
        self.failures: list[PlaitError] = []
        """What its next starts fail with."""
        self.wires: list[Wire] = []
        """One for every start that got so far."""

    async def open(self, listener: Listener, behalf: Awaitable[Behalf]) -> Link:
        if self.failures:
            raise self.failures.pop(0)
        wire = Wire(self)
        self.wires.append(wire)
        client = McpClient(wire, name=self.name, timeout=self.timeout, listener=listener)
        await wire.open(client)
        try:
            known = await behalf
            self.behalf.append(known)
            return await McpSession.greet(client, known.capabilities, known.revision, 60)
        except BaseException:
            await wire.aclose()
            raise

    # ---- what it was asked

    def asked(self, method: str) -> list[Message]:
        """The params of every such request, in order."""
        return [params for asked, params in self.requests if asked == method]

    def told(self, method: str) -> list[Message]:
        return [params for told, params in self.notifications if told == method]

    # ---- what it says of itself

    @property
    def wire(self) -> "Wire":
        return self.wires[-1]

    def notify(self, method: str, params: Mapping[str, object] | None = None) -> None:
        message: Message = {"jsonrpc": "2.0", "method": method}
        self.wire.say(message if params is None else {**message, "params": params})

    def ask(self, id: object, method: str, params: Mapping[str, object] | None = None) -> None:
        """Put a question to the client; the answer comes to `wire.replies`."""
        self.wire.say({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})

    def end(self, reason: str = "it exited with code 1") -> None:
        self.wire.abort(reason)

    # ---- answering

    def answer(self, method: str, params: Message) -> object:
        special = self.answers.get(method)
        if special is not None:
            return special(params)
        if method in LISTS:
            kind = LISTS[method]
            return {kind.value: [item(kind, key) for key in self.lists[kind]]}
        return self._usual(method, params)

    def _usual(self, method: str, params: Message) -> object:
        match method:
            case "initialize":
                return self.greeting()
            case "tools/call":
                return text(f"{self.name}: {params['name']} {encode(params.get('arguments')).decode()}")
            case "prompts/get":
                return {"messages": [], "description": f"{self.name}: {params['name']}"}
            case "resources/read":
                return {"contents": [{"uri": params["uri"], "text": self.name}]}
            case "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" | "ping":
                return {}
        return Refusal(METHOD_NOT_FOUND, f"Method not found: {method}")

    def greeting(self) -> Message:
        declared = self.capabilities
        if declared is None:
            declared = {kind.capability: {} for kind in Kind if self.lists[kind]}
        return {
            "protocolVersion": self.revision,
            "capabilities": declared,
            "serverInfo": {"name": self.name, "version": "1"},
            "instructions": self.words,
        }


class HangingServer(FakeServer):
    """A server that does not answer one method until it is told to."""

    def __init__(self, name: str, method: str = "initialize") -> None:
        super().__init__(name, tools=["t"])
        self.held = Held()
        self.answers[method] = lambda params: self.held

    def go_on(self) -> None:
        self.held.answer(self.greeting())


class Wire:
    """The transport of one life of a FakeServer."""

    lagging = False
    stuck: str | None = None

    def __init__(self, server: FakeServer) -> None:
        self._server = server
        self._receiver: Receiver | None = None
        self.closed = False
        self.replies: dict[object, Message] = {}
        """The answers to the server's own questions, by their ids."""

    async def open(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def write(self, message: bytes) -> None:
        if self.closed:
            return
        decoded: Message = decode(message)
        params = decoded.get("params", {})
        assert isinstance(params, dict)
        if "method" not in decoded:
            self.replies[decoded["id"]] = decoded
        elif "id" not in decoded:
            self._server.notifications.append((str(decoded["method"]), params))
        else:
            self._server.requests.append((str(decoded["method"]), params))
            self._reply(decoded["id"], self._server.answer(str(decoded["method"]), params))

    def _reply(self, id: object, answer: object) -> None:
        if isinstance(answer, Held):
            answer.answer = lambda result: self._reply(id, result)
        elif isinstance(answer, Refusal):
            self.say({"jsonrpc": "2.0", "id": id, "error": answer})
        else:
            self.say({"jsonrpc": "2.0", "id": id, "result": answer})

    def say(self, message: object) -> None:
        asyncio.get_running_loop().call_soon(self._deliver, encode(message))

    def _deliver(self, line: bytes) -> None:
        if self._receiver is not None and not self.closed:
            self._receiver.received(line)

    def drained(self) -> "asyncio.Future[None]":
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def abort(self, reason: str) -> None:
        if self._receiver is not None and not self.closed:
            self.closed = True
            self._receiver.closed(reason)

    async def aclose(self) -> None:
        self.abort("closed")
