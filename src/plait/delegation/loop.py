"""Drives a conversation: the model, then its tools side by side, then the model again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol

from plait.delegation.conversation import Answer, Conversation, Finished, Outcome, Use
from plait.errors import DelegationFailed

Execute = Callable[[Use], Awaitable[Outcome]]
"""Does a call, once. Whatever goes wrong with it is an outcome: the model can do something about it."""
Say = Callable[[str], None]
"""Told what happens, while it does."""


class Brain(Protocol):
    """A model that can be asked at any time."""

    async def think(self, conversation: Conversation, say: Say) -> Answer: ...


async def converse(conversation: Conversation, brain: Brain, execute: Execute, say: Say) -> Finished:
    """To the end. Raises DelegationFailed, also where its time is over."""
    async with timed(conversation):
        while True:
            answer = await brain.think(conversation, say)
            finished = await heard(conversation, answer, execute, say)
            if finished is not None:
                return finished


async def heard(conversation: Conversation, answer: Answer, execute: Execute, say: Say) -> Finished | None:
    """The end, or, after all its calls, None: then the model is to be asked again."""
    match conversation.hear(answer):
        case Finished() as finished:
            return finished
        case uses:
            if uses:
                conversation.give(await _all(uses, execute, say))
            return None


async def _all(uses: Sequence[Use], execute: Execute, say: Say) -> list[Outcome]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_one(use, execute, say)) for use in uses]
    return [task.result() for task in tasks]


async def _one(use: Use, execute: Execute, say: Say) -> Outcome:
    say(f"[calls {use.name}]")
    outcome = await execute(use)
    say(f"[{use.name} {'failed' if outcome.is_error else 'answered'}]")
    return outcome


@contextlib.asynccontextmanager
async def timed(conversation: Conversation) -> AsyncIterator[None]:
    """What is done in here counts as time of the task, and ends with it."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    deadline = asyncio.timeout(conversation.seconds_left)
    try:
        async with deadline:
            yield
    except TimeoutError:
        if not deadline.expired():
            raise
        raise DelegationFailed("the task took too long; see delegation.budget.seconds") from None
    finally:
        conversation.seconds += loop.time() - start
