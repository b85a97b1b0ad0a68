"""What a layer is, and how layers become one handler."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from plait.session.exchange import Exchange, Handler, Reply

Layer = Callable[[Exchange, Handler], Awaitable[Reply]]
"""Call `call_next(exchange)` to let it pass; return a Reply of your own to refuse it."""


def compose(layers: Sequence[Layer], handler: Handler) -> Handler:
    """Fold the layers around the handler, once, at start-up. The first is the outermost."""
    for layer in reversed(layers):
        handler = partial(_through, layer, handler)
    return handler


def _through(layer: Layer, call_next: Handler, exchange: Exchange) -> Awaitable[Reply]:
    return layer(exchange, call_next)
