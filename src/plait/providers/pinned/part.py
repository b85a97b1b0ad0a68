"""The link to a part of plait: it is asked like any server, and answers from here."""

from collections.abc import Awaitable, Callable, Collection, Mapping

from plait.session.exchange import Exchange, Reply, refuse
from plait.wire.address import as_raw
from plait.wire.envelope import Fields
from plait.wire.spec import METHOD_NOT_FOUND

Answer = Callable[[Fields, Exchange | None], Awaitable[Reply]]
"""From the params of a request, and the client's exchange if it is a client's, to its reply."""


class Part:
    instructions = ""
    warning: str | None = None

    def __init__(
        self,
        answers: Mapping[str, Answer],
        capabilities: Mapping[str, Collection[str]],
        closed: Callable[[], None] = lambda: None,
    ) -> None:
        """`capabilities`: with the details that are offered of each."""
        self._answers = answers
        self._offered = capabilities
        self._closed = closed
        self.capabilities: Fields = {
            name: as_raw(dict.fromkeys(details, True)) for name, details in capabilities.items()
        }

    async def request(self, method: str, params: Fields | None, exchange: Exchange | None = None) -> Reply:
        answer = self._answers.get(method)
        if answer is None:
            return refuse(METHOD_NOT_FOUND, f"Method not found: {method}")
        return await answer(params or {}, exchange)

    def notify(self, method: str, params: Fields | None = None) -> None:
        """There is nothing that it needs to be told."""

    def supports(self, capability: str, detail: str | None = None) -> bool:
        return capability in self._offered and (detail is None or detail in self._offered[capability])

    def working_for(self) -> list[Exchange]:
        return []

    async def aclose(self) -> None:
        self._closed()


def listing(kind: str, entries: Callable[[], list[object]]) -> Answer:
    """The answer to a list request: the entries of this moment."""

    async def answer(params: Fields, exchange: Exchange | None) -> Reply:
        return Reply(result=as_raw({kind: entries()}))

    return answer
