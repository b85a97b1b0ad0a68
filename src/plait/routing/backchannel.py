"""Servers asking clients: sampling, elicitation, roots. Whom to ask, and may they be asked?"""

import asyncio
from collections.abc import Sequence

from msgspec import MsgspecError, Struct

from plait.session.exchange import Caller, Exchange, OnProgress, Reply, refuse
from plait.session.negotiation import may_ask
from plait.wire.address import as_raw, read_text
from plait.wire.envelope import Fields
from plait.wire.modern import is_modern
from plait.wire.spec import CLIENT_FEATURE, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND

PATIENCE = 600.0
"""Seconds a person may take to answer."""


class Question(Struct):
    """What a server asks."""

    prefix: str
    """Of the server."""
    method: str
    params: Fields
    declared: Fields
    """What it was told that its client can do."""


async def ask(
    question: Question, working_for: Sequence[Exchange], present: Sequence[Caller], on_progress: OnProgress
) -> Reply:
    """Put a server's question to the client it concerns: of those it works for, or those present."""
    method = question.method
    if method not in CLIENT_FEATURE:
        return refuse(METHOD_NOT_FOUND, f"no client answers {method}")
    caller = _whom(working_for, present)
    if CLIENT_FEATURE[method] not in question.declared and not (caller and is_modern(caller.revision)):
        return refuse(METHOD_NOT_FOUND, f"{method}: no client behind this session can be asked that")
    if caller is None:
        return refuse(INVALID_REQUEST, f"{method}: cannot tell which client this question is for")
    problem = may_ask(caller.capabilities, method, question.params)
    if problem is not None:
        declared = CLIENT_FEATURE[method] in caller.capabilities
        return refuse(INVALID_PARAMS if declared else METHOD_NOT_FOUND, f"{method}: {problem}")
    try:
        async with asyncio.timeout(PATIENCE):
            put = signed(question.prefix, method, question.params)
            return await caller.ask(method, put, on_progress, _within(working_for))
    except TimeoutError:
        return refuse(INVALID_REQUEST, f"{method}: the client did not answer within {PATIENCE:g} s")


def _whom(working_for: Sequence[Exchange], present: Sequence[Caller]) -> Caller | None:
    """The one client the server works for; if it works for none, the one client there is.

    Never a guess: on a pipe nothing links a question to the call that raised it.
    """
    callers = {exchange.caller for exchange in working_for} or set(present)
    return callers.pop() if len(callers) == 1 else None


def _within(working_for: Sequence[Exchange]) -> bytes | None:
    """The request that the question was asked for, if there can be only one."""
    return working_for[0].id if len(working_for) == 1 else None


def signed(prefix: str, method: str, params: Fields) -> Fields:
    """A form is shown to a person, who must see which server asks; all the client knows is us."""
    if method != "elicitation/create" or not prefix:
        return params
    try:
        message = read_text(params["message"])
    except (KeyError, MsgspecError, UnicodeDecodeError):
        return params
    return {**params, "message": as_raw(f"[{prefix}] {message}")}
