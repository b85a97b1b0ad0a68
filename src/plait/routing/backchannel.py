"""Servers asking clients: sampling, elicitation, roots. Whom to ask, and may they be asked?"""

import asyncio
from collections.abc import Sequence

from msgspec import MsgspecError

from plait.routing.notifications import Audience
from plait.session.exchange import Caller, Exchange, OnProgress, Reply, refuse
from plait.session.negotiation import may_ask
from plait.wire.address import as_raw, read_text
from plait.wire.envelope import Fields
from plait.wire.spec import CLIENT_FEATURE, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND

PATIENCE = 600.0
"""Seconds a person may take to answer."""


class BackChannel:
    def __init__(self, audience: Audience) -> None:
        self._audience = audience

    async def ask(
        self,
        prefix: str,
        method: str,
        params: Fields,
        working_for: Sequence[Exchange],
        on_progress: OnProgress,
    ) -> Reply:
        """Put a server's question to the client it concerns."""
        if method not in CLIENT_FEATURE:
            return refuse(METHOD_NOT_FOUND, f"no client answers {method}")
        caller = self._whom(working_for)
        if caller is None:
            return refuse(INVALID_REQUEST, f"{method}: cannot tell which client this question is for")
        problem = may_ask(caller.capabilities, method, params)
        if problem is not None:
            declared = CLIENT_FEATURE[method] in caller.capabilities
            return refuse(INVALID_PARAMS if declared else METHOD_NOT_FOUND, f"{method}: {problem}")
        try:
            async with asyncio.timeout(PATIENCE):
                return await caller.ask(method, _signed(prefix, method, params), on_progress)
        except TimeoutError:
            return refuse(INVALID_REQUEST, f"{method}: the client did not answer within {PATIENCE:g} s")

    def _whom(self, working_for: Sequence[Exchange]) -> Caller | None:
        """The one client the server works for; if it works for none, the one client there is.

        Never a guess: on a pipe nothing links a question to the call that raised it.
        """
        callers = {exchange.caller for exchange in working_for} or set(self._audience)
        return callers.pop() if len(callers) == 1 else None


def _signed(prefix: str, method: str, params: Fields) -> Fields:
    """A form is shown to a person, who must see which server asks; all the client knows is us."""
    if method != "elicitation/create" or not prefix:
        return params
    try:
        message = read_text(params["message"])
    except (KeyError, MsgspecError, UnicodeDecodeError):
        return params
    return {**params, "message": as_raw(f"[{prefix}] {message}")}
