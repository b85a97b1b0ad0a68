"""An MCP server in memory that does what a test tells it to, and remembers what it was asked."""

from collections.abc import Awaitable, Mapping
from typing import Protocol

from plait.errors import PlaitError
from plait.session.eras.verdict import EraMemory
from plait.testing.script import Answer, Entries, Held, Message, Refusal, body_of, listed, played
from plait.testing.wire import Reported, Wire
from plait.upstream.base import Link
from plait.upstream.client import Listener, McpClient
from plait.upstream.greeting import greet
from plait.wire.content import text_result
from plait.wire.envelope import Fields, encode
from plait.wire.spec import ADDRESS_FIELD, CHANGED, LATEST_HANDSHAKE, LISTS, METHOD_NOT_FOUND, Kind
from plait.wire.tools import ToolCallRequest

_OWNING = {"tools/call": Kind.TOOLS, "prompts/get": Kind.PROMPTS, "resources/read": Kind.RESOURCES}


class Greeted(Protocol):
    """On whose behalf a server is greeted."""

    @property
    def capabilities(self) -> Fields: ...
    @property
    def revision(self) -> str: ...


class ScriptedServer:
    """It is its own Opener: mount it, and it may be opened, ended and opened again.

    What is asked of it and has no script gets a usual answer: a tool says its name and arguments.
    """

    def __init__(
        self,
        name: str = "fake",
        *,
        tools: Entries = (),
        prompts: Entries = (),
        resources: Entries = (),
        templates: Entries = (),
        capabilities: Mapping[str, object] | None = None,
        instructions: str = "",
        revision: str = LATEST_HANDSHAKE,
    ) -> None:
        self.name = name
        self.lists: dict[Kind, Entries] = {
            Kind.TOOLS: tools,
            Kind.PROMPTS: prompts,
            Kind.RESOURCES: resources,
            Kind.TEMPLATES: templates,
        }
        self.capabilities = capabilities
        """What it declares; None: what it has lists of."""
        self.instructions = ""
        """What it is remembered to have said last time."""
        self.words = instructions
        self.revision = revision
        self.timeout = 60.0
        self.era = "auto"
        """How it is greeted, as a configuration may say."""
        self.memory = EraMemory()
        self.answers: dict[str, Answer] = {}
        """What to answer a method with, instead of the usual."""
        self.requests: list[tuple[str, Message]] = []
        self.notifications: list[tuple[str, Message]] = []
        self.behalf: list[Greeted] = []
        """On whose behalf it was greeted, each time."""
        self.failures: list[PlaitError] = []
        """What its next starts fail with."""
        self.wires: list[Wire] = []
        """One for every start that got so far."""

    def __repr__(self) -> str:
        return f"<ScriptedServer {self.name}: {len(self.requests)} requests so far>"

    async def open(self, listener: Listener, behalf: Awaitable[Greeted]) -> Link:
        if self.failures:
            raise self.failures.pop(0)
        wire = Wire(self)
        self.wires.append(wire)
        client = McpClient(wire, name=self.name, timeout=self.timeout, listener=listener)
        await wire.open(client)
        try:
            known = await behalf
            self.behalf.append(known)
            return await greet(client, known.capabilities, known.revision, era=self.era, memory=self.memory)
        except BaseException:
            await wire.aclose()
            raise

    # ---- what it was asked

    @property
    def calls(self) -> list[ToolCallRequest]:
        """Every call of a tool, by its own name here. `tool_call(MountPrefix.none(), …)` compares."""
        return [
            ToolCallRequest(str(params["name"]), arguments if isinstance(arguments, dict) else {})
            for params in self.asked("tools/call")
            for arguments in [params.get("arguments")]
        ]

    def asked(self, method: str) -> list[Message]:
        """The params of every such request, in order."""
        return [params for asked, params in self.requests if asked == method]

    def told(self, method: str) -> list[Message]:
        return [params for told, params in self.notifications if told == method]

    # ---- what it does

    @property
    def wire(self) -> Wire:
        """Of its life now."""
        return self.wires[-1]

    def notify(self, method: str, params: Mapping[str, object] | None = None) -> None:
        message: Message = {"jsonrpc": "2.0", "method": method}
        self.wire.say(message if params is None else {**message, "params": params})

    def updated(self, uri: str) -> None:
        """Tell that a resource is another one now."""
        self.notify("notifications/resources/updated", {"uri": uri})

    def change(self, kind: Kind, entries: Entries) -> None:
        """Another list from now on, and tell so."""
        self.lists[kind] = entries
        self.notify(next(method for method, kinds in CHANGED.items() if kind in kinds))

    def ask(self, id: object, method: str, params: Mapping[str, object] | None = None) -> None:
        """Put a question to the client; the answer comes to `wire.replies`."""
        self.wire.say({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})

    async def question(self, method: str, params: Mapping[str, object] | None = None) -> Message:
        """Ask the client, and wait: the whole message that it answers with."""
        id, answer = self.wire.expect()
        self.ask(id, method, params)
        return await answer

    def hang(self, method: str) -> Held:
        """Do not answer this from now on; the test may, with the last one's `answer`."""
        held = Held()
        self.answers[method] = lambda params: held
        return held

    def fail(self, method: str, code: int = -32000, message: str = "no") -> None:
        """Answer this with an error from now on."""
        self.answers[method] = lambda params: Refusal(code, message)

    def end(self, reason: str = "it exited with code 1") -> None:
        self.wire.abort(reason)

    # ---- answering (its wire calls this)

    def answer(self, method: str, params: Message, report: Reported) -> object:
        special = self.answers.get(method)
        if special is not None:
            return special(params)
        if method in LISTS:
            kind = LISTS[method]
            return {kind.value: listed(kind, self.lists[kind])}
        if method in _OWNING:
            kind = _OWNING[method]
            body = body_of(kind, self.lists[kind], str(params.get(ADDRESS_FIELD[method])))
            if body is not None:
                return played(kind, body, params, report(params))
        return self._usual(method, params)

    def _usual(self, method: str, params: Message) -> object:
        match method:
            case "initialize":
                return self.greeting()
            case "tools/call":
                return text_result(
                    f"{self.name}: {params['name']} {encode(params.get('arguments')).decode()}"
                )
            case "prompts/get":
                return {"messages": [], "description": f"{self.name}: {params['name']}"}
            case "resources/read":
                return {"contents": [{"uri": params["uri"], "text": self.name}]}
            case "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" | "ping":
                return {}
        return Refusal(METHOD_NOT_FOUND, f"Method not found: {method}")

    def greeting(self) -> Message:
        """Its answer to `initialize`."""
        declared = self.capabilities
        if declared is None:
            declared = {kind.capability: {} for kind in Kind if self.lists[kind]}
        return {
            "protocolVersion": self.revision,
            "capabilities": declared,
            "serverInfo": {"name": self.name, "version": "1"},
            "instructions": self.words,
        }
