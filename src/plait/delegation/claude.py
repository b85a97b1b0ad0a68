"""ClaudeDelegator: a task done by Claude, over the official client, with whatever tools it is given.

The client is an extra and takes seconds to import: that happens off the loop, with the first question.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import logging
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, cast

from plait.config.delegation import DelegationConfig
from plait.delegation import faults
from plait.delegation.conversation import Answer, Conversation, Finished, Outcome, Use
from plait.delegation.loop import Execute, Say, converse
from plait.delegation.messages import read, render
from plait.delegation.schema import Toolset, as_text, read_definition, wanted
from plait.errors import DelegationFailed
from plait.wire.tools import ToolDefinition

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import MessageParam, ToolParam

_log = logging.getLogger("plait.delegation")

KEY_VARIABLE = "ANTHROPIC_API_KEY"
URL_VARIABLE = "ANTHROPIC_BASE_URL"
URL = "https://api.anthropic.com"
API_VERSION = "2026-10-21"
"""What `messages` is written for. Pinned, so that a newer client changes nothing before we have (S1-R3)."""
PATIENCE = 120.0
"""Seconds that the API may be silent."""

Tool = Mapping[str, object] | ToolDefinition
Call = Callable[[str, dict[str, object]], Awaitable[object]]
"""Does what the model asks for; what it raises, the model is told."""


def absence(config: DelegationConfig, environ: Mapping[str, str]) -> str | None:
    """Why no Claude can be asked; None if one can. Imports nothing."""
    if not key_of(config, environ):
        return f"there is no key: set {KEY_VARIABLE} or delegation.api_key"
    if importlib.util.find_spec("anthropic") is None:
        return "the package anthropic is not installed: pip install 'plait[delegate]'"
    return None


def key_of(config: DelegationConfig, environ: Mapping[str, str]) -> str:
    return environ.get(KEY_VARIABLE) or config.api_key or ""


class ClaudeDelegator:
    def __init__(
        self,
        config: DelegationConfig,
        api_key: str,
        *,
        base_url: str | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Raises DelegationFailed where there is no key."""
        if not api_key:
            raise DelegationFailed(f"there is no key for Claude: set {KEY_VARIABLE} or delegation.api_key")
        self._config = config
        self._key = api_key
        self._url = base_url or config.base_url or URL
        self._sleep = sleep

    @classmethod
    def from_environment(cls, config: DelegationConfig, environ: Mapping[str, str]) -> ClaudeDelegator:
        return cls(config, key_of(config, environ), base_url=config.base_url or environ.get(URL_VARIABLE))

    def __repr__(self) -> str:
        return f"<ClaudeDelegator {self._config.claude_model}, key {faults.MASK}>"

    async def delegate(
        self,
        task: str,
        tools: Sequence[Tool],
        call: Call,
        *,
        say: Say = lambda words: None,
        model: str | None = None,
        max_turns: int | None = None,
    ) -> str:
        """What the model says in the end. Raises DelegationFailed."""
        read_ = [definition for tool in tools if (definition := read_definition(tool)) is not None]
        excluded = self._config.excluded_tools
        toolset = Toolset.of(each for each in read_ if wanted((each.name,), (), excluded))
        conversation = Conversation(task, self._config, max_turns)
        finished = await self.run(conversation, toolset, _executing(toolset, call), say, model)
        return finished.text

    async def run(
        self,
        conversation: Conversation,
        toolset: Toolset,
        execute: Execute,
        say: Say,
        model: str | None = None,
    ) -> Finished:
        """Do a whole conversation, to its end."""
        chosen = self._model(model)
        client = await asyncio.to_thread(_connect, self._key, self._url)
        async with client:
            brain = _Claude(client, chosen, toolset, self._config.retries, self._key, self._sleep)
            return await converse(conversation, brain, execute, say)

    def _model(self, asked: str | None) -> str:
        config = self._config
        if asked is None or asked == config.claude_model:
            return config.claude_model
        if any(fnmatchcase(asked, pattern) for pattern in config.allowed_models):
            return asked
        raise DelegationFailed(
            f"the model {asked!r} may not be asked for; delegation.allowed_models has those that may"
        )


def _executing(toolset: Toolset, call: Call) -> Execute:
    async def execute(use: Use) -> Outcome:
        name = toolset.find(use.name)
        if name is None:
            return Outcome(use.id, not_on_offer(use.name), is_error=True)
        if not isinstance(use.input, dict):
            return Outcome(use.id, "the input of a tool is an object", is_error=True)
        try:
            return Outcome(use.id, as_text(await call(name, use.input)))
        except Exception as problem:
            return Outcome(use.id, str(problem) or type(problem).__name__, is_error=True)

    return execute


def not_on_offer(name: str) -> str:
    return f"there is no tool {name!r} for this task; use only those that were listed"


class _Claude:
    """The model, for one task. Only the question is ever put again: what a tool did stays done."""

    def __init__(
        self,
        client: AsyncAnthropic,
        model: str,
        toolset: Toolset,
        retries: int,
        key: str,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._client = client
        self._model = model
        self._tools = cast("list[ToolParam]", toolset.anthropic())
        self._retries = retries
        self._key = key
        self._sleep = sleep
        self._warned = False

    async def think(self, conversation: Conversation, say: Say) -> Answer:
        for attempt in range(self._retries + 1):
            answer = await self._ask(conversation, say)
            if isinstance(answer, Answer):
                return answer
            words = faults.without(self._key, answer.words)
            if not answer.passing:
                raise DelegationFailed(words)
            if attempt < self._retries:
                say(f"[{words}; asking again]")
                await self._sleep(faults.pause(answer, attempt))
        raise DelegationFailed(f"{words}; asked {self._retries + 1} times")

    async def _ask(self, conversation: Conversation, say: Say) -> Answer | faults.Fault:
        import anthropic  # noqa: PLC0415  an extra, imported already
        import httpx2  # noqa: PLC0415  what it speaks HTTP with: the errors of a stream are its own

        try:
            message = await self._stream(conversation, say)
        except anthropic.APIStatusError as problem:
            return faults.of_status(problem.status_code, problem.body, problem.response.headers, self._model)
        except (anthropic.APIError, httpx2.HTTPError) as problem:
            return faults.Fault(f"Anthropic cannot be reached: {problem}", passing=True)
        except (ValueError, RuntimeError) as problem:
            return faults.Fault(f"Anthropic's answer cannot be read: {problem}", passing=True)
        if message.get("stop_reason") is None:
            return faults.Fault("Anthropic's answer broke off", passing=True)
        return read(message)

    async def _stream(self, conversation: Conversation, say: Say) -> dict[str, object]:
        with self._ageing():
            asked = self._client.messages.stream(
                model=self._model,
                max_tokens=conversation.max_tokens,
                tools=self._tools,
                messages=cast("list[MessageParam]", render(conversation)),
            )
        async with asked as stream:
            async for event in stream:
                if event.type == "text":
                    say(event.text)
            return (await stream.get_final_message()).to_dict(mode="json")

    @contextlib.contextmanager
    def _ageing(self) -> Iterator[None]:
        """The client warns of models that will be gone: told once a task, and with the setting."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DeprecationWarning)
            yield
        if caught and not self._warned:
            self._warned = True
            first = str(caught[0].message).partition("\n")[0]
            _log.warning("%s Set delegation.claude_model to a newer one.", first)


def _connect(key: str, url: str) -> AsyncAnthropic:
    """Its own retries are off: it has none for streams that break off, and one way is enough."""
    anthropic = importlib.import_module("anthropic")
    client: AsyncAnthropic = anthropic.AsyncAnthropic(
        api_key=key,
        base_url=url,
        max_retries=0,
        timeout=PATIENCE,
        default_headers={"anthropic-version": API_VERSION},
    )
    return client
