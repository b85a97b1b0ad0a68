"""The nouns that cross the program: a request in flight, its reply, and the effects of sessions."""

from collections.abc import Awaitable, Callable, Collection
from typing import Generic, Protocol, TypeVar, runtime_checkable

from msgspec import Raw, Struct

from plait.wire.envelope import Fields, error_body

Waiter = TypeVar("Waiter")


class Verdict(Struct, frozen=True, gc=False):
    """What a guard decided about a request, for the record."""

    decision: str
    rule: str
    reason: str


class Reply(Struct, gc=False):
    """What goes back. Exactly one of result and error is set."""

    result: Raw | None = None
    error: Raw | None = None
    verdict: Verdict | None = None
    """Set by the guard that refused the request."""
    asks: bool = False
    """Is the result a question to a modern client (`input_required`), and no answer yet?"""


def refuse(code: int, message: str, data: object = None) -> Reply:
    """A JSON-RPC error of our own."""
    return Reply(error=error_body(code, message) if data is None else error_body(code, message, data))


class Caller(Protocol):
    """Who a request comes from, and how to reach them while it runs."""

    @property
    def identity(self) -> str: ...
    @property
    def revision(self) -> str: ...
    @property
    def capabilities(self) -> Fields:
        """What the client declared it can do, unread."""

    def notify(self, method: str, params: Fields | None, within: bytes | None = None) -> bool | None:
        """Tell the client something. It is dropped, and counted, if the client does not read: False.

        `within` is the id of the request of the client's that it belongs to, where it does to one: over
        HTTP it then goes on the stream of that request.
        """

    async def ask(
        self,
        method: str,
        params: Fields | None,
        on_progress: "OnProgress | None" = None,
        within: bytes | None = None,
    ) -> Reply:
        """Ask the client something on behalf of a server."""


OnProgress = Callable[[Fields], None]


@runtime_checkable
class Leveled(Protocol):
    """A caller that can say from which severity on it wants log messages."""

    level: int | None
    """Index into LEVELS; None as long as it has not said."""


def level_of(caller: Caller) -> int | None:
    return caller.level if isinstance(caller, Leveled) else None


class Destination(Protocol):
    """Where a request will go: found before any guard looks at it, so that all judge the same name."""

    @property
    def exposed(self) -> str: ...
    @property
    def native_name(self) -> str: ...
    @property
    def server(self) -> str:
        """The prefix of the mount."""

    @property
    def output_schema(self) -> Raw | None:
        """What a tool promises of its structured content, unread."""

    @property
    def recorded(self) -> Collection[str] | None:
        """The audit has the tool's arguments, but for those under these names; None: only their shape."""

    def declared(self) -> dict[str, str]:
        """What the tool's own schema says of its parameters: name → `command` or `url`."""


class Exchange(Struct, gc=False):
    """One request on its way in. Guards read it; only the router rewrites it."""

    id: bytes
    method: str
    params: Fields
    address: str
    caller: Caller
    meta: Fields | None = None
    """`params._meta`, opened one level, if there is one."""
    destination: Destination | None = None
    """None as long as it is not known, or where there is none that this caller may see."""


Handler = Callable[[Exchange], Awaitable[Reply]]


class Send(Struct, gc=False):
    """Effect: write this message to the peer."""

    data: bytes


class Dispatch(Struct, gc=False):
    """Effect: run this exchange through the pipeline, and give its reply to `answer`."""

    exchange: Exchange


class Abandon(Struct, gc=False):
    """Effect: the peer no longer wants the answer to this request of its."""

    id: bytes


class Settle(Struct, Generic[Waiter], gc=False):
    """Effect: a request of ours has its reply."""

    waiter: Waiter
    reply: Reply


class Fail(Struct, Generic[Waiter], gc=False):
    """Effect: the reply to a request of ours came, and is none."""

    waiter: Waiter
    what: str


class Advance(Struct, Generic[Waiter], gc=False):
    """Effect: the peer reports progress on a request of ours."""

    waiter: Waiter
    params: Fields


class Hear(Struct, gc=False):
    """Effect: the peer told us something that needs no answer."""

    method: str
    params: Fields


class Consult(Struct, gc=False):
    """Effect: the server asks something that only a client can answer."""

    id: bytes
    method: str
    params: Fields


class Count(Struct, gc=False):
    """Effect: something was dropped; say so where people look."""

    what: str
    """A short fixed name, the key of the counter."""
    detail: str = ""


ServingEffect = Send | Dispatch | Abandon | Settle[Waiter] | Advance[Waiter] | Hear | Count
CallingEffect = Send | Settle[Waiter] | Fail[Waiter] | Advance[Waiter] | Hear | Consult | Abandon | Count
