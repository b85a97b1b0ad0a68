"""HTTP+SSE, the transport of revision 2024-11-05: one stream of events comes in, messages go out by POST."""

import asyncio
from collections.abc import Callable

from plait.errors import UpstreamBroken, UpstreamError, UpstreamUnavailable
from plait.outbound.hosts import InvalidUrl
from plait.outbound.parsing import join_url, parse_url
from plait.tasks import TaskSet
from plait.upstream.base import Receiver
from plait.upstream.bodies import beginning
from plait.upstream.endpoint import Endpoint
from plait.upstream.listening import Listening, is_stream

WELCOME = 30.0
"""Seconds for the first event, which says where messages go."""


class EventSource:
    """One conversation, which lasts as long as its stream. `lost` is told why it is over."""

    def __init__(
        self, endpoint: Endpoint, receiver: Receiver, limit: int, lost: Callable[[str], None]
    ) -> None:
        self._endpoint = endpoint
        self._receiver = receiver
        self._limit = limit
        self._lost = lost
        self._tasks = TaskSet()
        self._address: asyncio.Future[Endpoint] = asyncio.get_running_loop().create_future()

    async def open(self) -> None:
        """Raises UpstreamError if there is no such stream, or nothing comes on it."""
        self._tasks.start(self._hear())
        try:
            async with asyncio.timeout(WELCOME):
                await asyncio.shield(self._address)
        except TimeoutError:
            raise UpstreamUnavailable(f"it did not say where messages go within {WELCOME:g} s") from None

    async def ask(self, id: bytes, method: str, message: bytes) -> None:
        """Send a request. Its reply comes on the stream, sooner or later."""
        await self.tell(message)

    async def tell(self, message: bytes) -> None:
        async with (await self._address).post(message) as response:
            if response.status >= 300:
                raise await self._endpoint.refusal(response)
            await beginning(response)

    async def stand(self) -> None:
        """Its one stream is open already."""

    async def aclose(self) -> None:
        await self._tasks.aclose()
        if self._address.done() and not self._address.cancelled():
            self._address.exception()  # whoever opened it has heard of it, or is gone

    async def _hear(self) -> None:
        listening = Listening(self._receiver, self._limit, noticed=self._noticed)
        try:
            async with self._endpoint.listen() as response:
                if not is_stream(response):
                    raise await self._endpoint.refusal(response)
                self._base = response.url
                reason = await listening.hear(response)
        except UpstreamError as problem:
            self._fail(problem)
            return
        if self._address.done() and self._address.exception() is None:
            self._lost(f"its event stream is over: {reason}")
        self._fail(UpstreamBroken(f"{reason}, without saying where messages go"))

    def _noticed(self, kind: bytes, data: bytes) -> None:
        """ "When a client connects, the server MUST send an `endpoint` event containing a URI for the
        client to use for sending messages" (2024-11-05). It must not send us, and our credentials, elsewhere.
        """
        if kind != b"endpoint" or self._address.done():
            return
        here = parse_url(self._base)
        try:
            there = join_url(here, data.decode(errors="replace").strip())
        except InvalidUrl as problem:
            self._fail(UpstreamBroken(f"the place it names for messages is no URL: {problem}"))
            return
        if there.origin != here.origin:
            self._fail(UpstreamBroken(f"it sends us to another origin, {there.host.name}, for messages"))
            return
        self._address.set_result(self._endpoint.at(there.text))

    def _fail(self, problem: UpstreamError) -> None:
        if not self._address.done():
            self._address.set_exception(problem)
