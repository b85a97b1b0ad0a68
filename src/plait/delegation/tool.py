"""DelegateTaskTool: `delegate_task`, the tool by which a client hands a task on.

Nothing is gained by it: every call that a model makes for the task goes the way of the client's own.
"""

from collections.abc import Awaitable

from msgspec import MsgspecError
from msgspec.json import decode

from plait.config.delegation import DelegationConfig, DelegationTarget
from plait.config.environment import depth_of
from plait.delegation import host
from plait.delegation.calls import Calls, depth_within
from plait.delegation.claude import ClaudeDelegator
from plait.delegation.conversation import Conversation, Finished, Use
from plait.delegation.engine import Decision, DelegationEngine
from plait.delegation.job import Job, Task, read_task
from plait.delegation.loop import Say, converse, heard, timed
from plait.delegation.schema import Toolset
from plait.delegation.suspended import Waiting
from plait.delegation.targets import Surroundings, Targets
from plait.errors import DelegationFailed, NotFound, PlaitError
from plait.providers.adapter import progress_of
from plait.providers.function import schema_of
from plait.providers.pinned.part import Part, listing
from plait.providers.pinned.toolbox import Hints, in_both_forms
from plait.session.exchange import Caller, Exchange, Reply, refuse
from plait.session.negotiation import fields_of
from plait.upstream.base import Link
from plait.upstream.client import Listener
from plait.upstream.opening import Behalf
from plait.wire.address import as_raw, read_text
from plait.wire.content import error_result
from plait.wire.envelope import EMPTY, Fields
from plait.wire.modern import is_modern
from plait.wire.spec import METHOD_NOT_FOUND

NAME = "delegate_task"
ABOUT = (
    "Hands a whole task on to another model, which may use the same tools as you, and returns what it says. "
    "Without a target it is decided which one fits; 'local' in the answer means: do it yourself."
)
QUESTION = "model"
"""The key of the question to a modern client."""


class DelegateTaskTool:
    """Mounted as `delegate`."""

    instructions = ""
    name = NAME

    def __init__(self, config: DelegationConfig, around: Surroundings) -> None:
        self.targets = Targets(config, around)
        self._engine = DelegationEngine(config)
        self._config = config
        self._around = around
        self._depth = depth_of(around.environ)
        self._waiting = Waiting()

    @property
    def definition(self) -> dict[str, object]:
        schema = {key: value for key, value in schema_of(Task).items() if key != "description"}
        hints = Hints(idempotent_hint=False, open_world_hint=True)
        return {"name": NAME, "description": ABOUT, "inputSchema": schema, "annotations": hints}

    async def open(self, listener: Listener, behalf: Awaitable[Behalf]) -> Link:
        tools = listing("tools", lambda: [self.definition])
        return Part({"tools/list": tools, "tools/call": self.call}, {"tools": ()})

    async def call(self, params: Fields, exchange: Exchange | None) -> Reply:
        """Whatever goes wrong is a result that says so."""
        if exchange is None:
            return refuse(METHOD_NOT_FOUND, "tools are called for clients only")
        try:
            name = read_text(params["name"])
            if name != NAME:
                raise NotFound(name)
            return await self._handle(read_task(params.get("arguments", EMPTY)), params, exchange)
        except (MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            return Reply(result=error_result(f"{NAME}: invalid arguments: {problem}"))
        except PlaitError as problem:
            return Reply(result=error_result(f"{NAME}: {problem}"))

    async def _handle(self, given: Task, params: Fields, exchange: Exchange) -> Reply:
        self._check_depth(exchange)
        if "requestState" in params and is_modern(exchange.caller.revision):
            return await self._resume(params, exchange)
        await self._around.settled(exchange.caller)
        decision = self.decide(given, exchange.caller)
        if decision.target is DelegationTarget.LOCAL:
            message = f"not handed on: do it yourself ({decision.reason})"
            local = {"status": "local", "message": message, "task": given.task}
            return Reply(result=in_both_forms(local))
        return await self._hand_on(self._job(given, decision, exchange.caller), exchange)

    def _check_depth(self, exchange: Exchange) -> None:
        depth = depth_within(exchange, self._depth)
        if depth >= self._config.max_depth:
            raise DelegationFailed(f"this is within {depth} delegations already; see delegation.max_depth")

    # ---- deciding

    def decide(self, given: Task, caller: Caller) -> Decision:
        """Who does it. Raises DelegationFailed where somebody was asked for who is not there."""
        asked = None if given.target is None else _target(given.target)
        if asked is None or asked is DelegationTarget.AUTO:
            return self._engine.decide(given.task, self.targets.available(caller), asked)
        absence = self.targets.absence(asked, caller)
        if absence is not None:
            raise DelegationFailed(f"{asked.value} was asked for and is not there: {absence}")
        return Decision(asked, "it was asked for")

    def _job(self, given: Task, decision: Decision, caller: Caller) -> Job:
        narrowing = (decision.tools, tuple(given.tools or ()))
        toolset = self.targets.tools(caller, decision.target, narrowing)
        conversation = Conversation(given.task, self._config, given.max_turns)
        return Job(given, decision.target, decision.reason, conversation, toolset)

    # ---- doing it

    async def _hand_on(self, job: Job, exchange: Exchange) -> Reply:
        if job.target is DelegationTarget.HOST:
            return await self._ask_host(job, exchange)
        calls = self._calls(job, exchange)
        if self.targets.keyless is not None:
            return await self._flow_task(job, calls, exchange.caller)
        delegator = ClaudeDelegator.from_environment(self._config, self._around.environ)
        say = _saying(exchange)
        return job.done(await delegator.run(job.conversation, job.toolset, calls, say, job.given.model))

    def _calls(self, job: Job, exchange: Exchange) -> Calls:
        depth = depth_within(exchange, self._depth)
        return Calls(exchange, job.toolset, self._around.dispatch, depth)

    async def _flow_task(self, job: Job, calls: Calls, caller: Caller) -> Reply:
        """Without a key: the one tool of claude-flow that takes a whole task."""
        wanted = self._config.claude_flow_task
        name = self.targets.task_tool(caller, job.toolset)
        if wanted is None or name is None:
            raise DelegationFailed("the tool of delegation.claude_flow_task is not on offer for this task")
        job.conversation.calls = 1
        async with timed(job.conversation):
            outcome = await calls(Use("", name, _filled(wanted.arguments, job.given.task)))
        if outcome.is_error:
            raise DelegationFailed(f"claude-flow's {wanted.tool}: {outcome.text}")
        return job.done(Finished(outcome.text))

    # ---- by the client's own model

    async def _ask_host(self, job: Job, exchange: Exchange) -> Reply:
        if not host.takes_tools(exchange.caller):
            job.toolset = Toolset({})
        if is_modern(exchange.caller.revision):
            return self._asks(job)
        brain = host.AskingHost(exchange, job.toolset)
        calls = self._calls(job, exchange)
        return job.done(await converse(job.conversation, brain, calls, _saying(exchange)))

    def _asks(self, job: Job) -> Reply:
        asked = {"method": host.METHOD, "params": host.question(job.conversation, job.toolset)}
        body = {"inputRequests": {QUESTION: asked}, "requestState": self._waiting.put(job)}
        return Reply(result=as_raw({"resultType": "input_required", **body}), asks=True)

    async def _resume(self, params: Fields, exchange: Exchange) -> Reply:
        """A later round of a modern client, whose state was found to be its own."""
        job = self._waiting.take(read_text(params["requestState"]))
        if job is None:
            raise DelegationFailed("this round was answered already, or is too old: make the call anew")
        answer = fields_of(params.get("inputResponses")).get(QUESTION)
        if answer is None:  # "Missing answers": it is asked again rather than failed
            return self._asks(job)
        conversation, calls = job.conversation, self._calls(job, exchange)
        async with timed(conversation):
            finished = await heard(conversation, host.read(decode(answer)), calls, _saying(exchange))
        return self._asks(job) if finished is None else job.done(finished)


def _target(text: str) -> DelegationTarget:
    try:
        return DelegationTarget.of(text)
    except ValueError as problem:
        raise DelegationFailed(f"invalid target: {problem}") from None


def _filled(value: object, task: str) -> object:
    """`{task}` stands for the task, in every text."""
    match value:
        case str():
            return value.replace("{task}", task)
        case dict():
            return {key: _filled(inner, task) for key, inner in value.items()}
        case list():
            return [_filled(inner, task) for inner in value]
    return value


def _saying(exchange: Exchange) -> Say:
    """What happens is progress of the call, where the client asked for that."""
    report = progress_of(exchange)
    told = 0

    def say(words: str) -> None:
        nonlocal told
        told += 1
        if report is not None:
            report(told, None, words)

    return say
