"""What a layer is, and how layers become one handler."""

import enum
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol, runtime_checkable

from plait.pipeline.rules import Subject
from plait.session.exchange import Caller, Exchange, Handler, Reply

Layer = Callable[[Exchange, Handler], Awaitable[Reply]]
"""Call `call_next(exchange)` to let it pass; return a Reply of your own to refuse it."""


class Stage(enum.IntEnum):
    """Where the guards we ship stand, from the outside in. A layer without a stage is a custom one."""

    AUDIT = 0
    """Outermost: what is refused further in is recorded too."""
    CUSTOM = 1
    """Before the guards that judge, so that they judge what is really sent."""
    PERMISSIONS = 2
    SECURITY = 3
    LIMITS = 4


@runtime_checkable
class Hiding(Protocol):
    """A layer that hides things: what it hides is neither listed, found nor suggested.

    One that says `hides = False` hides nothing from anybody, and is not asked.
    """

    def visible(self, caller: Caller, subject: Subject) -> bool: ...


def visibility(layers: Sequence[Layer]) -> Callable[[Caller, Subject], bool] | None:
    """What all guards that hide things let a caller see; None if there is no such guard."""
    guards: list[object] = list(layers)
    hiding = [
        guard.visible for guard in guards if isinstance(guard, Hiding) and getattr(guard, "hides", True)
    ]
    if not hiding:
        return None
    return lambda caller, subject: all(visible(caller, subject) for visible in hiding)


def arrange(layers: Sequence[Layer]) -> list[Layer]:
    """The layers by stage, whatever order they are given in; custom ones keep theirs."""
    return sorted(layers, key=lambda layer: getattr(layer, "stage", Stage.CUSTOM))


def compose(layers: Sequence[Layer], handler: Handler) -> Handler:
    """Fold the layers around the handler, once, at start-up. The first is the outermost."""
    for layer in reversed(layers):
        handler = partial(_through, layer, handler)
    return handler


def _through(layer: Layer, call_next: Handler, exchange: Exchange) -> Awaitable[Reply]:
    return layer(exchange, call_next)
